"""Databases as Nsight Systems exports them: nsys_files.py FOLDER STAMP

Two trainings of five steps: one whose batches are copied from pageable memory and loaded in
between, one that only computes, with the names in the columns themselves as old exports have
them; and one database that is no export."""
import pathlib
import sqlite3
import sys

MS = 1_000_000


class Export:
    def __init__(self, path, old=False):
        path.unlink(missing_ok=True)
        self.db = sqlite3.connect(path)
        self.db.execute("PRAGMA page_size = 512")
        self.strings = {}
        self.old = old
        name = "TEXT" if old else "INTEGER"
        self.db.execute("CREATE TABLE StringIds "
                        "(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        self.db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL "
            "(start INTEGER NOT NULL, end INTEGER NOT NULL, "
            "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, "
            f"correlationId INTEGER, globalPid INTEGER, demangledName {name} NOT NULL, "
            f"shortName {name} NOT NULL, gridX INTEGER NOT NULL)")
        self.db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY "
            "(start INTEGER NOT NULL, end INTEGER NOT NULL, "
            "deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "
            "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER)")
        self.db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME "
            "(start INTEGER NOT NULL, end INTEGER NOT NULL, "
            "eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER "
            "NOT NULL, returnValue INTEGER NOT NULL)")
        self.db.execute(
            "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT "
            "NULL, text TEXT, globalTid INTEGER, textId INTEGER)")
        self.db.execute("CREATE TABLE TARGET_INFO_GPU (id INTEGER NOT NULL, name TEXT)")
        self.db.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100-SXM4-80GB')")

    def name(self, text):
        if self.old:
            return text
        if text not in self.strings:
            self.strings[text] = len(self.strings) + 1
            self.db.execute("INSERT INTO StringIds VALUES (?, ?)", (self.strings[text], text))
        return self.strings[text]

    def kernel(self, start, dur, name, call):
        self.db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
                        "VALUES (?, ?, 0, 1, 7, ?, 1, ?, ?, 1)",
                        (start, start + dur, call, self.name(name), self.name("Kernel")))

    def copy(self, start, dur, size, src, call):
        self.db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 7, ?, ?, 1, ?, 2)",
                        (start, start + dur, call, size, src))

    def call(self, start, dur, name, call):
        self.old, old = False, self.old
        self.db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, 1, ?, ?, 0)",
                        (start, start + dur, call, self.name(name)))
        self.old = old

    def span(self, start, dur, text):
        self.db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, 1, NULL)",
                        (start, start + dur, text))

    def close(self):
        self.db.commit()
        self.db.close()


def loading(path):
    out = Export(path)
    for step in range(5):
        at = step * 100 * MS
        out.span(at, 100 * MS, f"ProfilerStep#{step}")
        out.span(at, 60 * MS, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
        out.call(at + 60 * MS, MS, "cudaMemcpyAsync_v3020", 10 * step + 1)
        out.copy(at + 60 * MS, 4 * MS, 40_000_000, 0, 10 * step + 1)
        out.call(at + 64 * MS, MS // 100, "cudaLaunchKernel_v7000", 10 * step + 2)
        out.kernel(at + 64 * MS, 26 * MS, "ampere_sgemm_128x64_nn", 10 * step + 2)
        out.call(at + 65 * MS, MS // 100, "cudaLaunchKernel_v7000", 10 * step + 3)
        out.kernel(at + 90 * MS, 10 * MS, "void at::native::vectorized_elementwise_kernel<4>",
                   10 * step + 3)
        out.call(at + 66 * MS, 34 * MS, "cudaStreamSynchronize_v3020", 10 * step + 4)
    out.close()


def computing(path):
    out = Export(path, old=True)
    for step in range(5):
        at = step * 50 * MS
        out.span(at, 50 * MS, f"step {step}")
        out.call(at, MS // 100, "cudaLaunchKernel", 10 * step + 1)
        out.kernel(at, 49 * MS, "volta_sgemm_128x64_nn", 10 * step + 1)
    out.close()


def other(path):
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE people (name TEXT)")
    db.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT name AS start FROM people")
    db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    db.commit()
    db.close()


def main(folder, stamp):
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    loading(out / "loading.sqlite")
    computing(out / "computing.sqlite")
    other(out / "other.sqlite")
    pathlib.Path(stamp).write_text("written\n")


main(*sys.argv[1:])
