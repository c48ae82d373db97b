"""Writes loss_golden.json: the squared error of numbers and its gradient by scikit-learn's gradient boosting. Run: python loss_golden.py"""
import json

import numpy as np
from sklearn import __version__
from sklearn._loss.loss import HalfSquaredError

rng = np.random.default_rng(5)
x, y = rng.normal(size=(30, 2)).astype(np.float32), (1.5 * rng.normal(size=(30, 2))).astype(np.float32)
t, f = y.astype(np.float64).ravel(), x.astype(np.float64).ravel()
value, grad = HalfSquaredError().loss_gradient(t, f)
with open("loss_golden.json", "w") as out:
    json.dump({"sklearn": __version__, "columns": 2, "predictions": x.ravel().tolist(), "values": y.ravel().tolist(), "loss": 2 * value.mean(), "grad": (2 * grad / len(t)).tolist()}, out, separators=(",", ":"))
    out.write("\n")
