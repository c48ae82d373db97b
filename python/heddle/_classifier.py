"""A scikit-learn estimator. This module alone imports sklearn."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted

from heddle import _graph, _run


class HeddleClassifier(ClassifierMixin, BaseEstimator):
    """Classifies the nodes of a graph over sites that cannot share their data, as a scikit-learn estimator.

    Args:
        val: fraction of the labelled nodes of each class that choose plan and round, and are not learned from.
        seed: random seed.
        plan: further settings as a dict, {"method": "layer-wise", "model": "sage"}; None: several plans are tried.
    """

    def __init__(self, val: float = 0.2, seed: int = 1, plan: Optional[dict[str, Any]] = None):
        self.val = val
        self.seed = seed
        self.plan = plan

    def fit(self, X: Any, y: Any, A: Any = None, sites: Any = None) -> "HeddleClassifier":
        """Trains on all nodes that have a label.

        Args:
            X: [N, F], features, dense or sparse.
            y: [N], classes; of a node without a label None, NaN or, where classes are numbers, -1.
            A: [N, N] adjacency matrix, dense or sparse, or [2, E] pairs of nodes; None: nodes have no edges.
            sites: [N], the site that holds each node, or a number of sites; None: one.
        """
        x, codes = self._checked(X, reset=True), self._encoded(y)
        if x.shape[0] != len(codes):
            raise ValueError(f"X and y must have as many rows (got {x.shape[0]} and {len(codes)})")
        train, val, _ = _graph.split(codes, 1 - self.val, self.val, seed=self.seed)
        data = _graph.Graph(_edges(A, len(codes)), codes, x, None if sites is None or np.ndim(sites) == 0 else sites, train, val if val.any() else None)
        settings = {"seed": self.seed, **(self.plan or {})}
        if A is None and not self.plan:
            settings = {"hops": 0, **settings}  # there is nothing to aggregate
        self.run_ = _run.train(data, 1 if sites is None else sites if np.ndim(sites) == 0 else None, progress=False, **settings)
        self.n_iter_ = max(1, len(self.run_.history))
        return self

    def predict_proba(self, X: Any, A: Any = None) -> np.ndarray:
        """Returns the calibrated probability of every class, [N, C], of nodes X with edges A, as of fit."""
        check_is_fitted(self, "run_")
        x = self._checked(X, reset=False)
        edges = _edges(A, x.shape[0])
        data = _graph.Graph(edges, np.full(x.shape[0], -1), x, class_names=[str(c) for c in self.classes_])
        return self.run_.predict_proba(data).astype(np.float64)

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

    def _encoded(self, y: Any) -> np.ndarray:
        if y is None:
            raise ValueError("This HeddleClassifier estimator requires y to be passed, but the target y is None.")
        from sklearn.utils.validation import column_or_1d

        y = column_or_1d(y, warn=True)
        missing = np.array([v is None or v != v for v in y], bool) if y.dtype.kind in "Of" else np.zeros(len(y), bool)
        if y.dtype.kind in "if" and np.any(y[~missing] == -1) and np.all(y[~missing] >= -1) and len(np.unique(y[~missing])) > 2:
            missing |= y == -1
        known = y[~missing]
        if y.dtype.kind == "f":
            assert_all_finite(known, input_name="y")
        check_classification_targets(known)
        self.classes_ = unique_labels(known)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least 2 classes (got {len(self.classes_)} class)")
        codes = np.full(len(y), -1, np.int64)
        codes[~missing] = np.searchsorted(self.classes_, known)
        return codes


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
