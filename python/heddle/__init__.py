"""Trains one graph neural network across sites that cannot share their data.

    import heddle

    graph = heddle.demo_graph()      # or a PyG Data, a DGL graph, a networkx graph, tables
    run = heddle.train(graph)        # a peer for each of its sites
    print(run)
    probability = run.predict_proba()

This package is a thin client of the program `heddle`, which is inside it.
"""

from typing import Any

from heddle._graph import Graph, SparseRows, Tables
from heddle._program import Error, HeddleWarning, InputError, Interrupted
from heddle._run import Comparison, Report, Run, compare, cross_validate, demo_graph, export_onnx, join, load, simulate, train
from heddle._settings import Settings

__version__ = "0.1.0.dev0"

__all__ = [
    "Comparison",
    "Error",
    "Graph",
    "HeddleClassifier",
    "HeddleRegressor",
    "HeddleWarning",
    "InputError",
    "Interrupted",
    "Report",
    "Run",
    "Settings",
    "SparseRows",
    "Tables",
    "compare",
    "cross_validate",
    "demo_graph",
    "export_onnx",
    "join",
    "load",
    "simulate",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in ("HeddleClassifier", "HeddleRegressor"):
        from heddle import _classifier

        return getattr(_classifier, name)
    raise AttributeError(f"module 'heddle' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
