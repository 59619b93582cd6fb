#!/usr/bin/env python3
"""How fast and in how much memory `trivet trace` reads a profile of many gigabytes, and whether it
agrees with two other readers: Python's json module with the arithmetic spelled out below, and
HolisticTraceAnalysis where it is installed (it rounds time stamps with decimals to whole
microseconds: on profiles of whole microseconds both agree to all digits).

trace_speed.py make FILE [--gb 2] [--ranks 1]    writes a profile as PyTorch does (.gz, .zst)
trace_speed.py run TRIVET FILE                   MB/s per core, peak memory
trace_speed.py compare TRIVET FILE               beside json and HolisticTraceAnalysis"""
import argparse
import gzip
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

KERNELS = [
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>"
     "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8::Params)", 412),
    ("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn", 371),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>,"
     " at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>,"
     " at::detail::Array<char*, 3>)", 24),
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
     "(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*,"
     " float*, float*,"
     " c10::BFloat16*)", 31),
    ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 32, 4,"
     " false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)", 188),
]
OPS = ["aten::linear", "aten::t", "aten::transpose", "aten::as_strided", "aten::matmul", "aten::mm",
       "aten::_unsafe_view", "aten::add", "aten::native_layer_norm", "aten::empty"]


def head(rank, ranks):
    device = ('{"id": %d, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85051572224, '
              '"computeMajor": 8, "computeMinor": 0, "numSms": 108}')
    return ('{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    ' +
            ",\n    ".join(device % i for i in range(8)) +
            '\n  ],\n  "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d, '
            '"nccl_version": "2.21.5"},\n  "record_shapes": 1,\n  "traceEvents": [\n'
            % (rank, ranks))


def op(name, ts, dur, i):
    return ('  {\n    "ph": "X", "cat": "cpu_op", "name": "%s", "pid": 4711, "tid": 4711,\n'
            '    "ts": %.3f, "dur": %.3f,\n    "args": {\n      "External id": %d,'
            '"Record function id": 0, "Concrete Inputs": ["", "", ""], "Input type": '
            '["c10::BFloat16", "c10::BFloat16", ""], "Input Strides": [[4096, 1], [1, 4096], []], '
            '"Input Dims": [[8192, 4096], [4096, 4096], []], "Ev Idx": %d\n    }\n  },\n'
            % (name, ts, dur, i, i))


def launch(ts, dur, i):
    return ('  {\n    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, '
            '"tid": 4711,\n    "ts": %.3f, "dur": %.3f,\n    "args": {\n      "External id": %d, '
            '"cbid": 211, "correlation": %d\n    }\n  },\n' % (ts, dur, i, i) +
            '  {\n    "ph": "s", "id": %d, "pid": 4711, "tid": 4711, "ts": %.3f,\n   '
            ' "cat": "ac2g",'
            ' "name": "ac2g"\n  },\n' % (i, ts))


def kernel(name, ts, dur, i, stream, extra=""):
    return ('  {\n    "ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": %d,\n   '
            ' "ts": %.3f,'
            ' "dur": %.3f,\n    "args": {\n      "External id": %d,\n      "queued": 0,'
            ' "device": 0, '
            '"context": 1,\n      "stream": %d, "correlation": %d,\n      "registers per'
            ' thread": 96,'
            '\n      "shared memory": 41744,\n      "blocks per SM": 2.370370,\n      '
            '"warps per SM": 18.962963,\n      "grid": [32, 8, 1],\n      "block": [256, 1, 1],\n'
            '      "est. achieved occupancy %%": 25%s\n    }\n  },\n'
            % (name, stream, ts, dur, i, stream, i, extra) +
            '  {\n    "ph": "f", "id": %d, "pid": 0, "tid": %d, "ts": %.3f,\n    "cat": "ac2g", '
            '"name": "ac2g", "bp": "e"\n  },\n' % (i, stream, ts))


def collective(ts, dur, i):
    extra = (',\n      "Collective name": "allreduce", "In msg nelems": 6553600, "Out msg nelems": '
             '6553600, "Group size": 8, "dtype": "BFloat16", "In split size": "[]", "Out'
             ' split size":'
             ' "[]", "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"')
    return kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                  ts, dur, i, 20, extra)


def mark(name, ts, dur, i, cat="user_annotation"):
    return ('  {\n    "ph": "X", "cat": "%s", "name": "%s", "pid": 4711, "tid": 4711,\n   '
            ' "ts": %.3f,'
            ' "dur": %.3f,\n    "args": {\n      "External id": %d,"Record function id": 0, '
            '"Ev Idx": %d\n    }\n  },\n' % (cat, name, ts, dur, i, i))


def step(rng, number, ts, i, lag):
    """One training step as text: the host runs ahead of the device by a few kernels."""
    out = []
    begin, gpu, comm_free = ts, ts + 400.0, 0.0
    wait = 900.0 + rng.random() * 200
    out.append(mark("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", ts, wait, i))
    ts += wait
    out.append(kernel_copy(ts, i + 1))
    i += 2
    for layer in range(96):
        for name in OPS:
            dur = 3.0 + rng.random() * 4
            out.append(op(name, ts, dur, i))
            i += 1
            ts += dur * 0.3
        for name, us in KERNELS:
            us *= 0.8 + 0.4 * rng.random()
            out.append(launch(ts, 4.0, i))
            gpu = max(gpu, ts + 6.0)
            out.append(kernel(name, gpu, us, i, 7))
            gpu += us + 1.2
            ts += 6.5
            i += 1
        if layer % 8 == 7:
            out.append(launch(ts, 4.0, i))
            at = max(gpu - 500.0, comm_free + 1, ts + 6)
            us = 700.0 + rng.random() * 200 + lag
            out.append(collective(at, us, i))
            comm_free = at + us
            i += 1
    end = max(ts, gpu, comm_free) + 20.0
    out.append(mark("ProfilerStep#%d" % number, begin, end - begin, i))
    return "".join(out), end, i + 1


def kernel_copy(ts, i):
    return ('  {\n    "ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", '
            '"pid": 0, "tid": 7,\n    "ts": %.3f, "dur": 812.500,\n    "args": {\n      '
            '"External id": %d,\n      "device": 0, "context": 1,\n      "stream": 7,'
            ' "correlation": '
            '%d,\n      "bytes": 19660800, "memory bandwidth (GB/s)": 24.197908\n    }\n  },\n'
            % (ts + 8, i, i))


def opened(path):
    if path.endswith(".gz"):
        return gzip.open(path, "wt", compresslevel=1)
    if path.endswith(".zst"):
        pipe = subprocess.Popen(["zstd", "-q", "-f", "-o", path], stdin=subprocess.PIPE, text=True)
        return pipe.stdin
    return open(path, "w", encoding="ascii", buffering=1 << 20)


def make(path, gb, ranks):
    for rank in range(ranks):
        name = path if ranks == 1 else path.replace("rank0", "rank%d" % rank)
        rng = random.Random(4 + rank)
        with opened(name) as f:
            written = f.write(head(rank, max(ranks, 8)))
            ts, i, number = 4203669603187.439, 1, 0
            while written < gb * 1e9:
                text, ts, i = step(rng, number, ts, i, 150.0 * (ranks > 1 and rank == 0))
                written += f.write(text)
                number += 1
            f.write('  {\n    "name": "Record Window End", "ph": "i", "s": "g",\n    "pid":'
                    ' "", "tid": '
                    '"", "ts": %.3f\n  }\n  ],\n  "baseTimeNanoseconds": 1735632360000000000,\n'
                    '  "traceName": "made"\n}\n' % ts)
        print(f"{name}: {number} steps, {i} events of devices and operations, "
              f"{os.path.getsize(name) / 1e9:.2f} GB on disk")


def measured(words):
    """Runs a program: its output, user and system seconds, peak resident bytes."""
    with tempfile.TemporaryFile() as out:
        begin = time.monotonic()
        child = subprocess.Popen(words, stdout=out)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - begin
        if status:
            raise SystemExit(f"{words}: status {status}")
        out.seek(0)
        return out.read(), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, wall


def run(trivet, path):
    out, cpu, peak, wall = measured([trivet, "trace", "--json", path])
    facts = json.loads(out)
    size = os.path.getsize(path)
    kernels = sum(row["count"] for row in facts["classes"].values())
    print(f"{size / 1e6:.0f} MB on disk: {wall:.2f} s, {cpu:.2f} s of one core, "
          f"{size / 1e6 / cpu:.0f} MB/s per core, peak {peak / 2**20:.0f} MiB; {kernels} pieces of "
          f"device work: {(peak - 64 * 2**20) / kernels:.1f} bytes each above 64 MiB")
    return facts, cpu


# ---- the same by Python's json ----

def union(spans):
    total, end = 0.0, None
    for a, b in sorted(spans):
        if end is None or a > end:
            total += b - a
            end = b
        elif b > end:
            total += b - end
            end = b
    return total


def by_json(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt") as f:
        doc = json.load(f)
    events = doc if isinstance(doc, list) else doc["traceEvents"]
    device = [e for e in events if e.get("ph") == "X" and
              e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")]
    spans = lambda keep: [(e["ts"], e["ts"] + e["dur"]) for e in device if keep(e)]
    is_comm = lambda e: "nccl" in e["name"].lower()
    is_kernel = lambda e: e["cat"] in ("kernel", "Kernel")
    comm = union(spans(lambda e: is_kernel(e) and is_comm(e)))
    compute = union(spans(lambda e: is_kernel(e) and not is_comm(e)))
    both = union(spans(is_kernel))
    return {"busy_union_s": union(spans(lambda e: True)) * 1e-6, "nccl_union_s": comm * 1e-6,
            "compute_union_s": compute * 1e-6, "overlap_s": (comm + compute - both) * 1e-6,
            "kernels": sum(map(is_kernel, device)),
            "steps": len({e["name"] for e in events
                          if str(e.get("name")).startswith("ProfilerStep#")})}


def by_hta(path):
    from hta.trace_analysis import TraceAnalysis  # only where it is installed
    with tempfile.TemporaryDirectory() as folder:
        name = "rank0.json.gz" if path.endswith(".gz") else "rank0.json"
        shutil.copy(path, pathlib.Path(folder) / name)
        analysis = TraceAnalysis(trace_files={0: str(pathlib.Path(folder) / name)},
                                 include_last_profiler_step=True)
        split = analysis.get_temporal_breakdown(visualize=False).iloc[0]
        overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]
    return {"idle_s": float(split["idle_time(us)"]) * 1e-6,
            "compute_union_s": float(split["compute_time(us)"]) * 1e-6,
            "overlap": float(overlap["comp_comm_overlap_pctg"]) / 100}


def compare(trivet, path):
    ours, cpu = run(trivet, path)
    for name, other in (("json", by_json), ("HolisticTraceAnalysis", by_hta)):
        begin, at = time.process_time(), time.monotonic()
        try:
            theirs = other(path)
        except ImportError as e:
            print(f"{name}: not installed ({e})")
            continue
        took = time.process_time() - begin
        took += resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime * 0
        worst = max(abs(ours[k] - v) / max(abs(v), 1e-9) for k, v in theirs.items())
        print(f"{name}: {took:.2f} s of CPU ({time.monotonic() - at:.2f} s), "
              f"{took / cpu:.0f} times "
              f"ours; largest difference {worst:.2e}: " +
              ", ".join(f"{k} {ours[k]:.6g} / {v:.6g}" for k, v in theirs.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    made = parts.add_parser("make")
    made.add_argument("file")
    made.add_argument("--gb", type=float, default=2)
    made.add_argument("--ranks", type=int, default=1, help="rank0 in FILE's name is replaced")
    for name in ("run", "compare"):
        one = parts.add_parser(name)
        one.add_argument("trivet")
        one.add_argument("file")
    options = parser.parse_args()
    if options.part == "make":
        make(options.file, options.gb, options.ranks)
    elif options.part == "run":
        run(options.trivet, options.file)
    else:
        compare(options.trivet, options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
