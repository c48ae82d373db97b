"""Takes a column of a data set's features out as a numeric target, and says what features alone tell of it.

    python regression.py DATA COLUMN OUT

writes OUT/graph.npz, of the same edges, splits and other columns, for peer train, and prints over the first three splits the
R² and the MAE over test nodes of the mean, of ridge regression and of gradient boosting (scikit-learn), whose settings are
chosen on validation nodes.
"""
import pathlib
import sys

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score

data, column, out = pathlib.Path(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
arrays = dict(np.load(data / "graph.npz"))
y = arrays["x"][:, column].astype(np.float32)
arrays["x"], arrays["y"] = np.delete(arrays["x"], column, axis=1), y
out.mkdir(parents=True, exist_ok=True)
np.savez(out / "graph.npz", **arrays)

ways = {
    "mean": None,
    "ridge": [Ridge(alpha=a) for a in (0.01, 1, 100)],
    "boosting": [HistGradientBoostingRegressor(max_leaf_nodes=leaves, learning_rate=rate, max_iter=300, early_stopping=False, random_state=0)
                 for leaves in (15, 31) for rate in (0.03, 0.1)],
}
for name, models in ways.items():
    found = []
    for split in range(3):
        train, val, test = (np.flatnonzero(arrays[m][:, split]) for m in ("train_mask", "val_mask", "test_mask"))
        x = arrays["x"]
        if models is None:
            said = np.full(len(test), y[train].mean())
        else:
            best = max((m.fit(x[train], y[train]) for m in models), key=lambda m: r2_score(y[val], m.predict(x[val])))
            best.fit(x[train], y[train])
            said = best.predict(x[test])
        found.append((r2_score(y[test], said), mean_absolute_error(y[test], said)))
    r2, mae = np.array(found).T
    print(f"{name:9} R2 {r2.mean():.4f} ± {r2.std(ddof=1):.4f}  MAE {mae.mean():.4f}")
