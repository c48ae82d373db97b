"""Writes golden.json: losses of numbers and their gradients by scikit-learn's gradient boosting. Run: python golden.py"""
import json

import numpy as np
from sklearn import __version__
from sklearn._loss.loss import HalfSquaredError, HuberLoss, PinballLoss

rng = np.random.default_rng(5)
x, y = rng.normal(size=(30, 2)).astype(np.float32), (1.5 * rng.normal(size=(30, 2))).astype(np.float32)
t, f = y.astype(np.float64).ravel(), x.astype(np.float64).ravel()
cases = {}
for name, loss, factor in [("mse", HalfSquaredError(), 2), ("huber", HuberLoss(delta=0.7), 1), ("quantile", PinballLoss(quantile=0.9), 1)]:
    value, grad = loss.loss_gradient(t, f)
    if name == "huber":  # a constant is left out of some versions: half the square is what it begins with
        small = np.abs(t - f) < 0.7
        assert np.allclose(value[small], (t - f)[small] ** 2 / 2)
    cases[name] = {"loss": factor * value.mean(), "grad": (factor * grad / len(t)).tolist()}
with open("golden.json", "w") as out:
    json.dump({"sklearn": __version__, "columns": 2, "predictions": x.ravel().tolist(), "values": y.ravel().tolist(), "cases": cases}, out, separators=(",", ":"))
    out.write("\n")
