"""A smooth table on a regular grid, fitted to scattered points by penalised least squares.

Knows nothing of operators: coordinates in, values out. The fit is made robust by reweighting.
"""
import numpy as np


class Grid:
    def __init__(self, axes):
        self.axes = [np.asarray(a, float) for a in axes]  # (first, step, count) each
        self.count = [int(a[2]) for a in self.axes]
        self.size = int(np.prod(self.count))

    def corners(self, x):
        """Indices and weights of the 2^d corners for points x (n, d)."""
        n, d = x.shape
        index = np.zeros((n, 1), int)
        weight = np.ones((n, 1))
        for j in range(d):
            first, step, count = self.axes[j]
            p = np.clip((x[:, j] - first) / step, 0, count - 1)
            low = np.minimum(p.astype(int), int(count) - 2) if count > 1 else np.zeros(n, int)
            frac = p - low
            if count > 1:
                index = np.concatenate([index * int(count) + low[:, None],
                                        index * int(count) + low[:, None] + 1], 1)
                weight = np.concatenate([weight * (1 - frac)[:, None], weight * frac[:, None]], 1)
        return index, weight

    def roughness(self):
        """Rows of second differences along every axis, and first differences, weaker."""
        rows = []
        idx = np.arange(self.size).reshape(self.count)
        for axis, count in enumerate(self.count):
            moved = np.moveaxis(idx, axis, 0)
            for i in range(count - 2):
                a, b, c = moved[i].ravel(), moved[i + 1].ravel(), moved[i + 2].ravel()
                for p, q, r in zip(a, b, c):
                    rows.append((1.0, [p, q, r], [1, -2, 1]))
            for i in range(count - 1):
                for p, q in zip(moved[i].ravel(), moved[i + 1].ravel()):
                    rows.append((0.05, [p, q], [1, -1]))
        m = np.zeros((len(rows), self.size))
        for i, (w, cols, vals) in enumerate(rows):
            m[i, cols] = np.array(vals, float) * w
        return m

    def fit(self, x, y, smooth=1.0, prior=None, weights=None, rounds=8):
        index, corner = self.corners(x)
        n = len(y)
        a = np.zeros((n, self.size))
        np.add.at(a, (np.repeat(np.arange(n), index.shape[1]), index.ravel()), corner.ravel())
        r = self.roughness()
        penalty = smooth * r.T @ r + 1e-6 * np.eye(self.size)
        base = np.zeros(self.size) if prior is None else prior
        w = np.ones(n) if weights is None else weights.copy()
        robust = np.ones(n)
        v = base
        for _ in range(rounds):
            ww = w * robust
            v = np.linalg.solve(a.T @ (a * ww[:, None]) + penalty,
                                a.T @ (ww * y) + penalty @ base)
            e = np.abs(a @ v - y)
            robust = 1 / np.maximum(1, e / 0.08)  # Huber at 8 %: aims at the median
        return v

    def at(self, v, x):
        index, corner = self.corners(x)
        return (v[index] * corner).sum(1)
