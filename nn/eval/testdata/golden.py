"""Writes golden.json: metrics of scikit-learn on fixed scores. Run: python golden.py"""
import json
import numpy as np
from sklearn import __version__
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, mean_absolute_error, mean_squared_error, r2_score, roc_auc_score

rng = np.random.default_rng(11)


def softmax(s):
    e = np.exp(s - s.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# Rows of the same scores in another order have equal probabilities: rounding hides their sums' last bits.
def case(scores, truth, multi):
    s = scores.astype(np.float64)
    c = s.shape[1]
    if multi:
        said, rank, onehot = (s > 0).astype(int), s, truth
    else:
        said = s.argmax(1)
        if c == 2:
            rank, onehot = s[:, 1] - s[:, 0], truth
        else:
            rank, onehot = softmax(s).round(12), np.eye(c, dtype=int)[truth]
    kw = {} if rank.ndim == 1 else {"average": "macro"}
    return {"multi": multi, "classes": c, "scores": scores.ravel().tolist(), "labels": truth.ravel().tolist(), "want": {
        "accuracy": accuracy_score(truth, said),
        "micro-f1": f1_score(truth, said, average="micro"),
        "macro-f1": f1_score(truth, said, average="macro"),
        "auc": roc_auc_score(onehot, rank, **kw),
        "ap": average_precision_score(onehot, rank, **kw)}}


def scores(n, c, digits):  # few digits: many ties
    return np.round(rng.normal(size=(n, c)), digits).astype(np.float32)


def noisy(s, n, c):
    return np.where(rng.random(n) < 0.5, s.argmax(1), rng.integers(0, c, n))


out = {"sklearn": __version__, "cases": {}}
for name, n, c, digits in [("binary", 60, 2, 3), ("binary ties", 60, 2, 0), ("five classes", 80, 5, 3), ("five classes ties", 80, 5, 0)]:
    s = scores(n, c, digits)
    out["cases"][name] = case(s, noisy(s, n, c), False)
s = scores(50, 4, 1)
out["cases"]["several classes"] = case(s, ((s + rng.normal(size=s.shape)) > 0.3).astype(int), True)

# Numbers, drawn apart: what is above keeps its values.
draw = np.random.default_rng(12)
out["numbers"] = {}
for name, n, c, mean, deviation in [("one", 70, 1, 0, 1), ("far from 0", 70, 1, 5000, 20), ("two", 50, 2, -3, 0.1)]:
    y = (mean + deviation * draw.normal(size=(n, c))).astype(np.float32)
    s = (y + 0.4 * deviation * draw.normal(size=(n, c))).astype(np.float32)
    t, f = y.astype(np.float64), s.astype(np.float64)
    out["numbers"][name] = {"columns": c, "scores": s.ravel().tolist(), "values": y.ravel().tolist(), "want": {
        "r2": r2_score(t, f), "mae": mean_absolute_error(t, f),
        "rmse": float(np.mean([mean_squared_error(t[:, k], f[:, k]) ** 0.5 for k in range(c)]))}}
with open("golden.json", "w") as f:
    json.dump(out, f, separators=(",", ":"))
    f.write("\n")
