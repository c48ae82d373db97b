"""What scikit-learn makes of features alone, beside the row "features only" of heddle compare.

    OMP_NUM_THREADS=1 python features.py [--write DIR] NAME ...

A NAME is a data set's directory or a made table: thresholds, interactions, amounts, binary, rare (2 % positives) or numeric.
It prints the metric of validation and test nodes, first split, of LogisticRegression (or Ridge) over scalings and penalties and
of HistGradientBoosting over rates, leaves and trees; validation nodes choose. --write writes made tables as DIR/NAME-raw,
each with one edge, for heddle compare. If there are more than 200 columns, boosting gets the 200 that most training nodes have.
"""
import argparse
import pathlib
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.preprocessing import normalize

MADE = ["thresholds", "interactions", "amounts", "binary", "rare", "numeric"]
AUC = ["rare", "tolokers", "s-ffsd"]


def stored(path):
    z = np.load(path / "graph.npz")
    x = sp.csr_matrix(z["x"]) if "x" in z else sp.csr_matrix((z["x_data"], z["x_indices"], z["x_indptr"]), tuple(z["x_shape"]))
    masks = [z[k] if z[k].ndim == 1 else z[k][:, 0] for k in ("train_mask", "val_mask", "test_mask")]
    return x, z["y"], [np.flatnonzero(m & (z["y"] >= 0)) for m in masks]


def made(kind, n=5000):
    r = np.random.default_rng(1)
    if kind == "thresholds":
        x = r.normal(size=(n, 8))
        s = 2 * (x[:, 0] > 0.5) - 1.5 * (x[:, 1] < -0.7) + 1.5 * (abs(x[:, 2]) > 1) + (x[:, 3] > 0)
        y = (s + 0.5 * r.normal(size=n) > 1.2).astype(int)
    elif kind == "interactions":
        x = r.normal(size=(n, 8))
        s = x[:, 0] * x[:, 1] + np.where(x[:, 2] > 0, x[:, 3], -x[:, 3])
        y = np.digitize(s + 0.4 * r.normal(size=n), [-0.8, 0.8])
    elif kind == "amounts":
        x = np.exp(r.normal(size=(n, 6)) * 2)
        x[:, 5] = r.integers(0, 24, n)
        x[:, 4] *= -1 * (r.random(n) < 0.3) * 2 + 1
        s = np.log(x[:, 0] / x[:, 1]) + 1.5 * (x[:, 2] > 5) * ((x[:, 5] < 6) | (x[:, 5] > 21)) - (x[:, 4] < -1)
        y = (s + 0.7 * r.normal(size=n) > 0.6).astype(int)
    elif kind == "binary":
        x = (r.random((n, 30)) < r.uniform(0.1, 0.5, 30)).astype(float)
        b = x > 0
        s = 2.0 * (b[:, 0] & b[:, 1]) + 2.0 * (b[:, 2] & ~b[:, 3]) - 1.5 * (b[:, 4] ^ b[:, 5]) + b[:, 6] - b[:, 7]
        s += 1.5 * (b[:, 8] & b[:, 9] & b[:, 10])
        y = np.digitize(s + 0.4 * r.normal(size=n), [-0.5, 0.8])
    elif kind == "rare":
        n = 2 * n
        x = r.normal(size=(n, 10))
        x[:, :3] = np.exp(x[:, :3] * 1.5)
        s = np.log(x[:, 0]) + 1.2 * (np.log(x[:, 1]) > 1) * (x[:, 3] > 0) + x[:, 4] * x[:, 5] * 0.7 + 0.5 * x[:, 6]
        s = s + 0.6 * r.normal(size=n)
        y = (s > np.quantile(s, 0.98)).astype(int)
    else:
        x = r.random((n, 10))
        y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4] + 2 * (x[:, 5] > 0.6)
        y = (y + r.normal(size=n)).astype(np.float32)
    p = r.permutation(n)
    return sp.csr_matrix(x.astype(np.float32)), y, [p[: n // 2], p[n // 2 : 3 * n // 4], p[3 * n // 4 :]]


def score(name, y, said):
    if y.dtype.kind == "f":
        return r2_score(y, said)
    return roc_auc_score(y, said[:, 1]) if name in AUC else (said.argmax(1) == y).mean()


def scalings(x, train):
    mean = np.asarray(x[train].mean(0)).ravel()
    variance = np.maximum(np.asarray(x[train].multiply(x[train]).mean(0)).ravel() - mean**2, 0)
    by = np.divide(1, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 1e-12)
    standard = sp.csr_matrix((x.toarray() - mean) * by) if x.shape[1] <= 200 else sp.csr_matrix(x.multiply(by))
    return [x, normalize(x), standard]


def linear(name, x, y, parts):
    train, val, test = parts
    best = (-np.inf,)
    for z in scalings(x, train):
        for c in (0.001, 0.01, 0.1, 1, 10, 100):
            model = Ridge(alpha=1 / c) if y.dtype.kind == "f" else LogisticRegression(C=c, max_iter=300)
            say = model.fit(z[train], y[train]).predict if y.dtype.kind == "f" else model.fit(z[train], y[train]).predict_proba
            best = max(best, (score(name, y[val], say(z[val])), score(name, y[test], say(z[test]))), key=lambda pair: pair[0])
    return best


def boosting(name, x, y, parts):
    train, val, test = parts
    if x.shape[1] > 200:
        x = x[:, np.argsort(-np.asarray((x[train] != 0).sum(0)).ravel())[:200]]
    x, best = x.toarray(), (-np.inf,)
    for rate in (0.03, 0.1):
        for leaves in (8, 31):
            kind = HistGradientBoostingRegressor if y.dtype.kind == "f" else HistGradientBoostingClassifier
            model = kind(learning_rate=rate, max_iter=200, max_leaf_nodes=leaves, early_stopping=False, random_state=1).fit(x[train], y[train])
            staged = model.staged_predict if y.dtype.kind == "f" else model.staged_predict_proba
            of = [[score(name, y[i], said) for said in staged(x[i])] for i in (val, test)]
            best = max(best, max(zip(*of), key=lambda pair: pair[0]), key=lambda pair: pair[0])
    return best


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    for name in args.names:
        x, y, parts = made(name) if name in MADE else stored(pathlib.Path(name))
        if args.write and name in MADE:
            out = args.write / (name + "-raw")
            out.mkdir(parents=True, exist_ok=True)
            masks = {k: np.isin(np.arange(len(y)), p) for k, p in zip(("train_mask", "val_mask", "test_mask"), parts)}
            np.savez(out / "graph.npz", edge_index=np.array([[0], [1]], np.int32), x=x.toarray(), y=y, **masks)
            continue
        name = pathlib.Path(name).name
        print(name, *("%s val %.4f test %.4f" % (f.__name__, *f(name, x, y, parts)) for f in (linear, boosting)), flush=True)
