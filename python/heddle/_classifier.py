"""A scikit-learn estimator. This module alone imports sklearn."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, column_or_1d

from heddle import _graph, _run


class HeddleClassifier(ClassifierMixin, BaseEstimator):
    """Classifies the nodes of a graph over sites that cannot share their data, as a scikit-learn estimator.

    Args:
        val: fraction of the labelled nodes of each class that choose the round, and are not learned from.
        seed: random seed.
        plan: further settings as a dict, {"method": "layer-wise", "model": "sage"}; None: the defaults.
    """

    def __init__(self, val: float = 0.2, seed: int = 1, plan: Optional[dict[str, Any]] = None):
        self.val = val
        self.seed = seed
        self.plan = plan

    def fit(self, X: Any, y: Any, A: Any = None, sites: Any = None) -> "HeddleClassifier":
        """Trains on all nodes that have a label.

        Args:
            X: [N, F], features, dense or sparse.
            y: [N], classes; of a node without a label None, NaN, or -1 where `Graph` says so.
            A: [N, N] adjacency matrix, dense or sparse, or [2, E] pairs of nodes; None: nodes have no edges.
            sites: [N], the site that holds each node, or a number of sites; None: one.
        """
        if y is None:
            raise ValueError("This HeddleClassifier estimator requires y to be passed, but the target y is None.")
        x, y = self._checked(X, reset=True), column_or_1d(y, warn=True)
        if x.shape[0] != len(y):
            raise ValueError(f"X and y must have as many rows (got {x.shape[0]} and {len(y)})")
        plain = _graph.stored(y)
        known = _graph.labelled(plain, "classification")
        if plain.dtype.kind == "f":
            assert_all_finite(plain[known], input_name="y")
        check_classification_targets(y[known])
        self.classes_ = unique_labels(y[known])
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least 2 classes (got {len(self.classes_)} class)")
        train, val, _ = _graph._draw(plain, known, 1 - self.val, self.val, self.seed, "classification")
        data = _graph.Graph(_edges(A, len(y)), y, x, None if sites is None or np.ndim(sites) == 0 else sites, train, val if val.any() else None)
        settings = {"seed": self.seed, "task": "classification", **(self.plan or {})}
        if A is None and not self.plan:
            settings = {"hops": 0, **settings}  # there is nothing to aggregate
        self.run_ = _run.train(data, 1 if sites is None else sites if np.ndim(sites) == 0 else None, progress=False, **settings)
        self._order = np.argsort(self.run_.values())  # places of the classes among the program's
        self.n_iter_ = max(1, len(self.run_.history))
        return self

    def predict_proba(self, X: Any, A: Any = None) -> np.ndarray:
        """Returns the calibrated probability of every class, [N, C], of nodes X with edges A, as of fit."""
        check_is_fitted(self, "run_")
        x = self._checked(X, reset=False)
        edges = _edges(A, x.shape[0])
        data = _graph.Graph(edges, np.full(x.shape[0], ""), x)
        return self.run_.predict_proba(data).astype(np.float64)[:, self._order]

    def predict(self, X: Any, A: Any = None) -> np.ndarray:
        """Returns the class of every node, [N]."""
        proba = self.predict_proba(X, A)
        return self.classes_[proba.argmax(axis=1)]

    def score(self, X: Any, y: Any, A: Any = None, sample_weight: Any = None) -> float:
        """Returns the accuracy over the nodes whose class is given."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X, A), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, X: Any, reset: bool) -> Any:
        from sklearn.utils.validation import validate_data

        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float32, ensure_min_samples=2 if reset else 1)


def _edges(A: Any, n: int) -> Any:
    if A is None:
        return np.zeros((2, 0), np.int64)
    if hasattr(A, "tocoo"):
        return A
    A = _graph.array(A)
    if A.shape == (n, n) and not (n == 2 and A.dtype.kind in "iu" and A.max() > 1):
        source, target = np.nonzero(A)
        return np.stack([source, target])
    return A
