"""Estimators for scikit-learn, which only this module imports."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, column_or_1d

from heddle import _graph, _run


class _Estimator(BaseEstimator):
    """What both estimators have: a graph of rows X with edges A, cut into sites.

    Args:
        val: fraction of the labelled nodes that choose the round, and are not learned from.
        seed: random seed.
        plan: further settings as a dict, {"method": "layer-wise", "model": "sage"}; None: the defaults.
    """

    def __init__(self, val: float = 0.2, seed: int = 1, plan: Optional[dict[str, Any]] = None):
        self.val = val
        self.seed = seed
        self.plan = plan

    def fit(self, X: Any, y: Any, A: Any = None, sites: Any = None) -> Any:
        """Trains on all nodes that have a label.

        Args:
            X: [N, F], features, dense or sparse.
            y: [N], classes or numbers; of a node without a label None, NaN, or -1 where `Graph` says so.
            A: [N, N] adjacency matrix, dense or sparse, or [2, E] pairs of nodes; None: nodes have no edges.
            sites: [N], the site that holds each node, or a number of sites; None: one.
        """
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        x = self._checked(X, reset=True)
        y = self._labels(y)
        if x.shape[0] != len(y):
            raise ValueError(f"X and y must have as many rows (got {x.shape[0]} and {len(y)})")
        number = sites is None or np.ndim(sites) == 0
        draw = {"train": 1 - self.val, "val": self.val, "seed": self.seed}
        data = _graph.Graph(_edges(A), y, x, None if number else sites, draw=draw)
        settings = {"seed": self.seed, "task": self._task, **(self.plan or {})}
        if A is None and not self.plan:
            settings = {"hops": 0, **settings}  # there is nothing to aggregate
        self.run_ = _run.train(data, (1 if sites is None else sites) if number else None, progress=False, **settings)
        self.has_edges_ = A is not None
        self.n_iter_ = max(1, len(self.run_.history))
        return self

    def _graph(self, X: Any, A: Any) -> Any:
        check_is_fitted(self, "run_")
        if self.has_edges_ and A is None:
            raise ValueError("A must be the edges of X, since fit had some (got None); without edges give an empty [2, 0]")
        x = self._checked(X, reset=False)
        return _graph.Graph(_edges(A), np.full(x.shape[0], ""), x)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, X: Any, reset: bool) -> Any:
        from sklearn.utils.validation import validate_data

        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float32, ensure_min_samples=2 if reset else 1)


class HeddleClassifier(ClassifierMixin, _Estimator):
    __doc__ = "Classifies the nodes of a graph over sites that cannot share their data.\n" + str(_Estimator.__doc__).partition("\n")[2]
    _task = "classification"

    def fit(self, X: Any, y: Any, A: Any = None, sites: Any = None) -> "HeddleClassifier":
        super().fit(X, y, A, sites)
        self._order = np.argsort(self.run_.values())  # places of the classes among the program's
        self.classes_ = self.run_.values()[self._order]
        return self

    fit.__doc__ = _Estimator.fit.__doc__

    def _labels(self, y: Any) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        known = y[~_graph._missing(y)]
        if known.dtype.kind == "f":
            assert_all_finite(known, input_name="y")
        check_classification_targets(known)
        if len(unique_labels(known)) < 2:
            raise ValueError(f"y must have at least 2 classes (got {len(unique_labels(known))} class)")
        return y

    def predict_proba(self, X: Any, A: Any = None) -> np.ndarray:
        """Returns the calibrated probability of every class, [N, C], of nodes X with edges A, as of fit."""
        data = self._graph(X, A)
        return self.run_.predict_proba(data).astype(np.float64)[:, self._order]

    def predict(self, X: Any, A: Any = None) -> np.ndarray:
        """Returns the class of every node, [N]."""
        proba = self.predict_proba(X, A)
        return self.classes_[proba.argmax(axis=1)]

    def score(self, X: Any, y: Any, A: Any = None, sample_weight: Any = None) -> float:
        """Returns the accuracy over nodes whose class is given."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X, A), sample_weight=sample_weight))


class HeddleRegressor(RegressorMixin, _Estimator):
    __doc__ = "Predicts a number of every node of a graph over sites that cannot share their data.\n" + str(_Estimator.__doc__).partition("\n")[2]
    _task = "regression"

    def _labels(self, y: Any) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        y = np.array([np.nan if none else v for v, none in zip(y, _graph._missing(y))], np.float32)
        assert_all_finite(y[~np.isnan(y)], input_name="y")
        return y

    def predict(self, X: Any, A: Any = None) -> np.ndarray:
        """Returns the number of every node, [N]."""
        data = self._graph(X, A)
        return self.run_.predict(data)[:, 0].astype(np.float64)

    def score(self, X: Any, y: Any, A: Any = None, sample_weight: Any = None) -> float:
        """Returns R² over nodes whose number is given."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, A), sample_weight=sample_weight))


def _edges(A: Any) -> Any:
    return np.zeros((2, 0), np.int64) if A is None else A
