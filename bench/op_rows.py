"""Reads the measured operator rows and says what each would cost on an ideal card.

Knows the columns of ops_*.csv.gz and the catalogue's peak rates. Knows nothing of tables or fits.
Run from a repository root that has ../shared/data beside it; scripts skip when it is absent.
"""
import csv
import gzip
import json
import os

SHARED = os.path.join('..', 'shared', 'data')
MEASURED = os.path.join(SHARED, 'measured')

# Slugs that name no single card, with the member that the source's notes point to.
STANDS_FOR = {
    'nvidia-a100-80gb': 'nvidia-a100-sxm4-80gb',
    'nvidia-h100-80gb': 'nvidia-h100-sxm5-80gb',
    'nvidia-a100': 'nvidia-a100-sxm4-80gb',
}

# dtype column -> (rate key, bytes of an activation, bytes of a weight, class of the table)
DTYPES = {
    'bf16': ('bf16_tensor', 2, 2, '16'),
    'fp16': ('fp16_tensor_fp32acc', 2, 2, '16'),
    'fp32': ('fp32', 4, 4, '32'),
    'fp8': ('fp8_tensor_fp32acc', 1, 1, '8'),
    'nvfp4': ('fp4_tensor', 0.5625, 0.5625, '4'),
    'int8_wo': ('bf16_tensor', 2, 1, 'w8'),
    'int4_wo': ('bf16_tensor', 2, 0.5625, 'w4'),
}

# Event-timed single calls carry a launch of 20-35 us (measured/NOTES.md).
FLOOR_S = {'sitar-lab/NeuSight': 100e-6}


def there():
    return os.path.isdir(MEASURED)


def devices():
    with open(os.path.join(SHARED, 'catalogue', 'accelerators.jsonl')) as f:
        return {r['slug']: r for r in map(json.loads, f)}


def rate(dev, dtype):
    fl = dev['flops']
    if dtype == 'fp16':
        return fl['fp16_tensor_fp32acc'] or fl['fp16_tensor'] or fl['fp16_nontensor'] or fl['fp32']
    if dtype == 'fp8':
        return fl['fp8_tensor_fp32acc'] or fl['fp8_tensor']
    return fl[DTYPES[dtype][0]]


# Picojoules a FLOP costs the whole board while its math units run without pause, by compute
# capability: the same table stands in src/predict/efficiency.c with its reasons.
PJ_32 = ((89, 7.5), (80, 14.5), (0, 16.6))
PJ_16 = ((120, 1.35), (100, 0.56), (90, 0.8), (89, 1.29), (86, 2.38), (80, 1.33), (0, 2.5))


def sustained(dev, dtype):
    """Share of the peak that the board's power feeds for long."""
    cc, _ = key(dev)
    if not cc or not dev['tdp_w']:
        return 1.0
    cls = DTYPES[dtype][3]
    steps = PJ_32 if cls == '32' else PJ_16
    need = next(pj for least, pj in steps if cc >= least) * {'8': 0.6, '4': 0.35}.get(cls, 1)
    return min(1.0, dev['tdp_w'] / rate(dev, dtype) * 1e12 / need)


def math_s(flop, dev, dtype):
    return flop / (rate(dev, dtype) * sustained(dev, dtype))


def key(dev):
    """Which tables a card reads: its compute capability, or the architecture's name."""
    if dev['compute_capability']:
        return int(round(float(dev['compute_capability']) * 10)), ''
    return 0, dev['arch']


def rows(name):
    with gzip.open(os.path.join(MEASURED, name), 'rt') as f:
        for r in csv.DictReader(f):
            t = float(r['time_us']) * 1e-6 if r['time_us'] else 0
            if t > 0 and t >= FLOOR_S.get(r['repo'], 0):
                yield r, t


def load(name, shape):
    """[(fold, doubt, slug, device, dtype, row, seconds, shape(row))] with known cards only."""
    cards = devices()
    out = []
    for r, t in rows(name):
        slug = STANDS_FOR.get(r['gpu'], r['gpu'])
        dev = cards.get(slug)
        if not dev or r['dtype'] not in DTYPES or not rate(dev, r['dtype']):
            continue
        s = shape(r)
        if s is None:
            continue
        out.append(dict(fold=r['fold'], doubt=bool(r['doubt']), slug=slug, dev=dev,
                        dtype=r['dtype'], cls=DTYPES[r['dtype']][3], repo=r['repo'], t=t,
                        engine=r.get('engine', ''), row=r, key=key(dev), **s))
    return out


def gemm(r):
    if 'NOT' in (r.get('notes') or ''):
        return None
    m, n, k = int(r['m']), int(r['n']), int(r['k'])
    b = int(float(r['b'])) if r.get('b') else 1
    return dict(m=m, n=n, k=k, b=b)


def gemm_sol(x):
    _, act, wgt, _ = DTYPES[x['dtype']]
    flop = 2.0 * x['b'] * x['m'] * x['n'] * x['k']
    out = 2 if act < 2 else act
    byts = x['b'] * (x['m'] * x['k'] * act + x['k'] * x['n'] * wgt + x['m'] * x['n'] * out)
    return math_s(flop, x['dev'], x['dtype']), byts / x['dev']['mem_bw_Bps']
