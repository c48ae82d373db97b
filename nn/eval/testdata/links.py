"""Writes links.json: ranks of links among drawn pairs by SciPy, and their area under the curve by scikit-learn.

python -m venv v && v/bin/pip install numpy scipy scikit-learn && v/bin/python links.py
"""
import json

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

rng = np.random.default_rng(3)
drawn = np.round(rng.normal(size=(60, 30)) * 4) / 4  # some are equal
link = np.round((rng.normal(size=60) + 1) * 4) / 4
ranks = np.array([rankdata(-np.r_[s, d])[0] for s, d in zip(link, drawn)])
truth = np.r_[np.ones(60), np.zeros(60)]
with open("links.json", "w") as f:
    json.dump(dict(link=link.tolist(), drawn=drawn.tolist(), mrr=float((1 / ranks).mean()), auc=roc_auc_score(truth, np.r_[link, drawn[:, 0]]),
                   hits=[float((ranks <= k).mean()) for k in (1, 3, 10, 50)]), f)
