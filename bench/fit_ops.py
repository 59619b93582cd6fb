"""Fits the utilisation tables of src/predict/op_tables.c on the calibrate rows.

usage: /usr/bin/python3 bench/fit_ops.py > src/predict/op_tables.c
"""
import sys

import numpy as np

import op_rows as o
from grid_fit import Grid

GEMM = [(0, 2, 9), (4, 2, 7), (4, 2, 7)]
PREFILL = [(0, 2, 9), (0, 2, 7)]
DECODE = [(0, 2, 10), (0, 2, 8)]
CONV = [(6, 2, 8), (3, 2, 5), (4, 2, 6)]
STREAM = [(12, 2, 11)]


def attention(r):
    if r.get('window') not in (None, '', '0', '-1'):
        return None
    d = int(r['d'])
    if d not in (64, 128):
        return None
    h = int(r['h'])
    return dict(b=int(r['b']), h=h, hkv=int(r['h_kv'] or h) or h, s=int(r['s']), d=d)


def prefill_sol(x):
    e = o.DTYPES[x['dtype']][1]
    half = 0.5 if x['row']['causal'] == 'True' else 1
    flop = 4.0 * x['b'] * x['h'] * x['s'] ** 2 * x['d'] * half
    byts = x['b'] * x['s'] * x['d'] * (x['h'] * (e + 2) + 2 * x['hkv'] * e)
    return o.math_s(flop, x['dev'], x['dtype']), byts / x['dev']['mem_bw_Bps']


def decode_sol(x):
    e = {'fp8': 1, 'bf16': 2, 'fp16': 2}[x['row']['kv_dtype'] or x['dtype']]
    byts = 2.0 * x['b'] * x['s'] * x['hkv'] * x['d'] * e + 4.0 * x['b'] * x['h'] * x['d']
    flop = 4.0 * x['b'] * x['h'] * x['s'] * x['d']
    return o.math_s(flop, x['dev'], x['dtype']), byts / x['dev']['mem_bw_Bps']


def conv(r):
    ks, hw, stride, pad = (int(r[c]) for c in ('kernel_size', 'hw', 'stride', 'pad'))
    out = (hw + 2 * pad - ks) // stride + 1
    if out < 1:
        return None
    b, cin, cout = int(r['b']), int(r['c_in']), int(r['c_out'])
    return dict(b=b, m=b * out * out, n=cout, k=cin * ks * ks, read=b * cin * hw * hw,
                ks=ks)


def conv_sol(x):
    e = o.DTYPES[x['dtype']][1]
    flop = 2.0 * x['m'] * x['n'] * x['k']
    byts = e * (x['read'] + x['m'] * x['n'] + x['k'] * x['n'])
    return o.math_s(flop, x['dev'], x['dtype']), byts / x['dev']['mem_bw_Bps']


def stream(r):
    if not r.get('gbps'):
        return None
    return dict(bytes=float(r['gbps']) * 1e9 * float(r['time_us']) * 1e-6)


def embedding(r):
    return dict(bytes=4.0 * int(r['rows']) * int(r['cols']))  # fp16 read and written


def stream_sol(x):
    return 0.0, x['bytes'] / x['dev']['mem_bw_Bps']


KINDS = [  # name, file, shape, ideal time, coordinates, axes
    ('GEMM', 'ops_gemm.csv.gz', o.gemm, o.gemm_sol,
     lambda x: [x['m'], x['n'] * x['b'], x['k']], GEMM),
    ('PREFILL', 'ops_attention_prefill.csv.gz', attention, prefill_sol,
     lambda x: [x['s'], x['b'] * x['h']], PREFILL),
    ('DECODE', 'ops_attention_decode.csv.gz', attention, decode_sol,
     lambda x: [x['s'], x['b'] * x['hkv']], DECODE),
    ('CONV', 'ops_conv2d.csv.gz', conv, conv_sol,
     lambda x: [x['m'], x['n'], x['k']], CONV),
    ('ELEMENTWISE', 'ops_elementwise.csv.gz', stream, stream_sol, lambda x: [x['bytes']], STREAM),
    ('NORM', 'ops_layernorm.csv.gz', stream, stream_sol, lambda x: [x['bytes']], STREAM),
    ('SOFTMAX', 'ops_softmax.csv.gz', stream, stream_sol, lambda x: [x['bytes']], STREAM),
    ('EMBEDDING', 'ops_embedding.csv.gz', embedding, stream_sol, lambda x: [x['bytes']], STREAM),
]
CLASSES = {'32': 'TV_WIDTH_32', '16': 'TV_WIDTH_16', '8': 'TV_WIDTH_8', '4': 'TV_WIDTH_4',
           'w8': 'TV_WIDTH_W8', 'w4': 'TV_WIDTH_W4'}


def measured(file, shape, sol):
    """Rows with coordinates and the logarithm of the utilisation."""
    out = []
    for x in o.load(file, shape):
        if x['repo'] == 'stas00/ml-engineering':  # maxima over shapes, not a shape's time
            continue
        x['math'], x['stream'] = sol(x)
        out.append(x)
    return out


def floor_of(rows):
    """What the smallest kernels of a group take: start-up that no shape avoids."""
    short = [x['t'] for x in rows if x['repo'] not in o.FLOOR_S]
    return 0.85 * float(np.percentile(short, 1)) if len(short) > 100 else 2e-6


def utilisation(rows, floor):
    ideal = np.array([max(x['math'], x['stream']) for x in rows])
    t = np.array([x['t'] for x in rows])
    return np.log(ideal / np.maximum(t - floor, 0.15 * t))


def coordinates(rows, at):
    return np.log2(np.maximum(1, np.array([at(x) for x in rows], float)))


def fit(rows, at, axes):
    g = Grid(axes)
    floor = floor_of(rows)
    x, y = coordinates(rows, at), utilisation(rows, floor)
    v = g.fit(x, y, smooth=0.3)
    # the spread that a new shape would meet: a fifth of the rows held out
    order = np.random.default_rng(1).permutation(len(rows))
    held = order[:len(rows) // 5]
    kept = order[len(rows) // 5:]
    w = g.fit(x[kept], y[kept], smooth=0.3)
    ideal = np.array([max(r['math'], r['stream']) for r in rows])[held]
    said = floor + ideal / np.exp(g.at(w, x[held]))
    real = np.array([r['t'] for r in rows])[held]
    spread = np.median(np.abs(np.log(said / real))) * 1.4826
    return v, float(spread), floor


def groups(rows):
    out = {}
    for x in rows:
        if x['fold'] == 'calibrate' and not x['doubt']:
            width = x['cls']
            out.setdefault((x['key'], width), []).append(x)
    return {k: v for k, v in out.items() if len(v) >= 150}


def numbers(v):
    q = [int(max(-9999, min(9999, round(a * 1000)))) for a in v]
    lines, line = [], '    '
    for n in q:
        word = f'{n}, '
        if len(line) + len(word) > 99:
            lines.append(line.rstrip())
            line = '    '
        line += word
    lines.append(line.rstrip())
    return '\n'.join(lines)


HEAD = '''/* Utilisation of the ideal time per operator, card generation and width: generated by
 * bench/fit_ops.py from the calibrate rows of the measured operators, not to be edited.
 * Values are 1000 ln(ideal / (measured - floor)) on a grid of log2 coordinates. Sources: kernel
 * tables of ai-dynamo/aiconfigurator (Apache-2.0), sitar-lab/NeuSight (MIT),
 * microsoft/vidur (MIT), as
 * collected on 2026-11-30. */
#include "efficiency.h"
'''


def main():
    if not o.there():
        print('skipped: ../shared/data/measured is not there', file=sys.stderr)
        return
    print(HEAD)
    index = []
    for name, file, shape, sol, at, axes in KINDS:
        for (key, width), rows in sorted(groups(measured(file, shape, sol)).items(), key=str):
            v, spread, floor = fit(rows, at, axes)
            ident = f'{name}_{key[0] or key[1]}_{width}'.lower()
            fed = np.mean([o.sustained(r['dev'], r['dtype']) for r in rows])
            print(f'static const short {ident}[] = {{\n{numbers(v)}\n}};\n')
            arch = f'"{key[1]}"' if key[1] else 'NULL'
            pad = axes + [(0, 1, 1)] * (3 - len(axes))
            ax = ', '.join(f'{{{a}, {b}, {c}}}' for a, b, c in pad)
            index.append(f'    {{TV_TABLE_{name}, {CLASSES[width]}, {key[0]}, {arch}, '
                         f'{{{ax}}},\n     {ident}, {spread:.3f}, {floor:.3g}, '
                         f'{fed:.2f}, {len(rows)}}},')
            print(ident, len(rows), round(spread, 3), file=sys.stderr)
    print('const tv_op_table tv_op_tables[] = {')
    print('\n'.join(index))
    print('};\n')
    print('const size_t tv_op_table_count = sizeof tv_op_tables / sizeof *tv_op_tables;')


if __name__ == '__main__':
    main()
