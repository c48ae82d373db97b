"""Writes four made graphs to DIR: road (a grid, numeric target), transfers (6 columns of amounts; neighbours' other columns
matter), payments (2 % positives, an interaction two hops away) and sensors (a grid of binary columns).

    python3 bench/baselines/made.py DIR
"""
import pathlib
import sys

import numpy as np
import scipy.sparse as sp

def csr(n, s, d):
    a = sp.coo_matrix((np.ones(len(s)), (np.r_[s], np.r_[d])), shape=(n, n)).tocsr()
    a = a + a.T; a.data[:] = 1; a.setdiag(0); a.eliminate_zeros(); return a
def grid(w, h, rng, drop=.1, short=.02):
    i = np.arange(w*h).reshape(w, h)
    s = np.r_[i[:-1].ravel(), i[:, :-1].ravel()]; d = np.r_[i[1:].ravel(), i[:, 1:].ravel()]
    keep = rng.random(len(s)) > drop; s, d = s[keep], d[keep]
    m = int(short*len(s)); s = np.r_[s, rng.integers(0, w*h, m)]; d = np.r_[d, rng.integers(0, w*h, m)]
    return csr(w*h, s, d)
def power(n, m, rng):
    w = (1+np.arange(n))**-.6; w = rng.permutation(w)/w.sum()
    return csr(n, rng.choice(n, m, p=w), rng.integers(0, n, m))
def mean(a):
    dg = np.maximum(np.asarray(a.sum(1)).ravel(), 1); return sp.diags(1/dg) @ a
def split(n, rng, tr=.3, va=.2):
    u = rng.random(n); return np.where(u < tr, 0, np.where(u < tr+va, 1, 2))
def road(seed=0):
    rng = np.random.default_rng(seed); w = 70; a = grid(w, w, rng); n = w*w; M = mean(a)
    f = rng.standard_normal((n, 1))
    for _ in range(12): f = .5*f + .5*(M@f)
    f = (f/f.std()).ravel()
    x = np.c_[f + rng.standard_normal(n)*.7, .5*f + rng.standard_normal(n), rng.standard_normal((n, 3)), rng.gamma(2, 1, n)]
    y = f + .3*x[:, 5] + .15*rng.standard_normal(n)
    return "road", a, x, y, None, split(n, rng)
def transfers(seed=0):
    rng = np.random.default_rng(seed+1); n = 8000; a = power(n, 40000, rng); M = mean(a)
    z = rng.standard_normal((n, 6)); amounts = np.c_[np.exp(1.2*z[:, 0]+3), np.exp(1.5*z[:, 1]+2), np.exp(z[:, 2]), rng.poisson(np.exp(.8*z[:, 3]+1)), rng.poisson(np.exp(z[:, 4])), z[:, 5]]
    t = 1.0*z[:, 0] - .7*z[:, 4] + 2.5*(M@(z[:, 3]*1.0)) - 1.5*(M@z[:, 1]) + .5*rng.standard_normal(n)
    y = (t > np.quantile(t, .85)).astype(int)
    return "transfers", a, amounts, y, 2, split(n, rng)
def payments(seed=0):
    rng = np.random.default_rng(seed+2); n = 15000; a = power(n, 60000, rng); M = mean(a)
    x = rng.standard_normal((n, 30)); two = M@(M@x[:, 3:5])*3
    t = 1.2*x[:, 0] + .8*x[:, 1] + 1.5*x[:, 2]*two[:, 0] + 1.5*(M@x[:, 5])*2 + .5*rng.standard_normal(n)
    y = (t > np.quantile(t, .98)).astype(int)
    return "payments", a, x, y, 2, split(n, rng)
def sensors(seed=0):
    rng = np.random.default_rng(seed+3); w = 80; a = grid(w, w, rng); n = w*w; M = mean(a)
    x = (rng.random((n, 8)) < .35).astype(float)
    t = 2*(M@x[:, 0]) - 2*(M@x[:, 1]) + 1.5*(M@(M@x[:, 2])) + .2*rng.standard_normal(n)
    y = (t > np.quantile(t, .7)).astype(int)
    return "sensors", a, x, y, 2, split(n, rng)


for make in (road, transfers, payments, sensors):
    name, a, x, y, classes, split_of = make()
    folder = pathlib.Path(sys.argv[1]) / name
    folder.mkdir(parents=True, exist_ok=True)
    c = a.tocoo()
    np.savez(folder / "graph.npz", edge_index=np.array([c.row, c.col]).astype(np.int32), x=x.astype(np.float32),
             y=y.astype(np.float32 if classes is None else np.int64),
             train_mask=split_of == 0, val_mask=split_of == 1, test_mask=split_of == 2)
