"""How far off the predictor's operator times are, on rows that no table was fitted on.

Compiles the predictor's own look-up, predicts every measured row, prints the error by operator,
card and width: n, median and p90 of |error|, bias (median signed error; plus = predicted longer).

usage: /usr/bin/python3 bench/op_accuracy.py [calibrate|validate] [doubt]
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

import fit_ops as f
import op_rows as o

TABLE = {name: i for i, (name, *_) in enumerate(f.KINDS)}
WIDTH = {'32': 0, '16': 1, '8': 2, '4': 3, 'w8': 4, 'w4': 5}


def build(folder):
    program = os.path.join(folder, 'op_times')
    sources = ['bench/op_times.c', 'src/predict/efficiency.c', 'src/predict/op_tables.c',
               'src/base/str.c', 'src/base/arena.c']
    subprocess.run(['cc', '-O2', '-D_GNU_SOURCE', '-Isrc', '-w', *sources, '-lm', '-o', program],
                   check=True)
    return program


def line(name, at, x):
    peak = o.rate(x['dev'], x['dtype'])
    shape = (list(at(x)) + [1, 1])[:3]
    cc, arch = x['key']
    flop = x['math'] * peak * o.sustained(x['dev'], x['dtype'])
    byts = x['stream'] * x['dev']['mem_bw_Bps']
    return ' '.join(map(str, [TABLE[name], WIDTH[x['cls']], cc, arch.replace(' ', '_') or '-', peak,
                              x['dev']['mem_bw_Bps'], x['dev']['tdp_w'] or 0, flop, byts, *shape]))


def main():
    if not o.there():
        print('skipped: ../shared/data/measured is not there', file=sys.stderr)
        return
    fold = 'calibrate' if 'calibrate' in sys.argv else 'validate'
    doubt = 'doubt' in sys.argv
    print('| operator | card | type | n | median | p90 | bias | within the interval |')
    print('| --- | --- | --- | --: | --: | --: | --: | --: |')
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        for name, file, shape, sol, at, _ in f.KINDS:
            rows = [x for x in f.measured(file, shape, sol)
                    if x['fold'] == fold and x['doubt'] == doubt]
            if not rows:
                continue
            text = '\n'.join(line(name, at, x) for x in rows)
            out = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
            groups = {}
            for x, said in zip(rows, out.stdout.splitlines()):
                s, _, spread = map(float, said.split())
                e = s / x['t'] - 1
                inside = x['t'] / s - 1 < 1.64 * spread and s / x['t'] - 1 < 1.64 * spread
                groups.setdefault((x['slug'], x['dtype']), []).append((e, inside))
            for (slug, dtype), v in sorted(groups.items()):
                e = np.array([a for a, _ in v])
                a = np.abs(e)
                print(f'| {name.lower()} | {slug} | {dtype} | {len(v)} '
                      f'| {100 * np.median(a):.1f} % '
                      f'| {100 * np.percentile(a, 90):.1f} % | {100 * np.median(e):+.1f} % '
                      f'| {100 * np.mean([b for _, b in v]):.0f} % |')


if __name__ == '__main__':
    main()
