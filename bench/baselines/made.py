"""Writes four made graphs to DIR: road (a grid, numeric target), transfers (6 columns of amounts; neighbours' other columns
matter), payments (2 % positives, an interaction two hops away) and sensors (a grid of binary columns).

    python3 bench/baselines/made.py DIR
"""
import pathlib
import sys

import numpy as np
import scipy.sparse as sp


def adjacency(n, source, target):
    """Returns the symmetric adjacency matrix of n nodes, without loops and weights."""
    a = sp.coo_matrix((np.ones(len(source)), (source, target)), shape=(n, n)).tocsr()
    a = a + a.T
    a.data[:] = 1
    a.setdiag(0)
    a.eliminate_zeros()
    return a


def grid(side, rng, drop=0.1, short=0.02):
    """Returns a square grid that lacks some edges and has a few short cuts."""
    i = np.arange(side * side).reshape(side, side)
    source = np.concatenate([i[:-1].ravel(), i[:, :-1].ravel()])
    target = np.concatenate([i[1:].ravel(), i[:, 1:].ravel()])
    keep = rng.random(len(source)) > drop
    source, target = source[keep], target[keep]
    more = int(short * len(source))
    source = np.concatenate([source, rng.integers(0, side * side, more)])
    target = np.concatenate([target, rng.integers(0, side * side, more)])
    return adjacency(side * side, source, target)


def power(n, edges, rng):
    """Returns a graph whose sources follow a power law."""
    weight = (1 + np.arange(n)) ** -0.6
    weight = rng.permutation(weight) / weight.sum()
    return adjacency(n, rng.choice(n, edges, p=weight), rng.integers(0, n, edges))


def mean(a):
    """Returns the matrix that takes the mean over neighbours."""
    degree = np.maximum(np.asarray(a.sum(1)).ravel(), 1)
    return sp.diags(1 / degree) @ a


def road():
    rng = np.random.default_rng(0)
    a = grid(70, rng)
    n, near = a.shape[0], mean(a)
    f = rng.standard_normal((n, 1))
    for _ in range(12):
        f = 0.5 * f + 0.5 * (near @ f)
    f = (f / f.std()).ravel()
    x = np.column_stack([
        f + rng.standard_normal(n) * 0.7,
        0.5 * f + rng.standard_normal(n),
        rng.standard_normal((n, 3)),
        rng.gamma(2, 1, n),
    ])
    y = f + 0.3 * x[:, 5] + 0.15 * rng.standard_normal(n)
    return a, x, y.astype(np.float32), rng


def transfers():
    rng = np.random.default_rng(1)
    n = 8000
    a = power(n, 40000, rng)
    near, z = mean(a), rng.standard_normal((n, 6))
    x = np.column_stack([
        np.exp(1.2 * z[:, 0] + 3),
        np.exp(1.5 * z[:, 1] + 2),
        np.exp(z[:, 2]),
        rng.poisson(np.exp(0.8 * z[:, 3] + 1)),
        rng.poisson(np.exp(z[:, 4])),
        z[:, 5],
    ])
    score = z[:, 0] - 0.7 * z[:, 4] + 2.5 * (near @ z[:, 3]) - 1.5 * (near @ z[:, 1]) + 0.5 * rng.standard_normal(n)
    return a, x, (score > np.quantile(score, 0.85)).astype(np.int64), rng


def payments():
    rng = np.random.default_rng(2)
    n = 15000
    a = power(n, 60000, rng)
    near, x = mean(a), rng.standard_normal((n, 30))
    two = near @ (near @ x[:, 3:5]) * 3
    score = 1.2 * x[:, 0] + 0.8 * x[:, 1] + 1.5 * x[:, 2] * two[:, 0]
    score = score + 1.5 * (near @ x[:, 5]) * 2 + 0.5 * rng.standard_normal(n)
    return a, x, (score > np.quantile(score, 0.98)).astype(np.int64), rng


def sensors():
    rng = np.random.default_rng(3)
    a = grid(80, rng)
    n, near = a.shape[0], mean(a)
    x = (rng.random((n, 8)) < 0.35).astype(float)
    score = 2 * (near @ x[:, 0]) - 2 * (near @ x[:, 1]) + 1.5 * (near @ (near @ x[:, 2])) + 0.2 * rng.standard_normal(n)
    return a, x, (score > np.quantile(score, 0.7)).astype(np.int64), rng


for make in (road, transfers, payments, sensors):
    a, x, y, rng = make()
    u = rng.random(len(y))
    train, val = u < 0.3, (u >= 0.3) & (u < 0.5)
    folder = pathlib.Path(sys.argv[1]) / make.__name__
    folder.mkdir(parents=True, exist_ok=True)
    c = a.tocoo()
    np.savez(folder / "graph.npz", edge_index=np.array([c.row, c.col]).astype(np.int32), x=x.astype(np.float32), y=y,
             train_mask=train, val_mask=val, test_mask=~train & ~val)
