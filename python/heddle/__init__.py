"""Trains one graph neural network across sites that cannot share their data.

    import heddle

    graph = heddle.demo_graph()      # or a PyG Data, a DGL graph, a networkx graph, tables
    run = heddle.train(graph)        # a peer for each of its sites
    print(run)
    probability = run.predict_proba()

This package is a thin layer over the program `peer`, which is inside it: `python -m heddle` is the program.
"""

from heddle._graph import Graph, SparseRows, Tables, split
from heddle._program import Error, HeddleWarning, InputError, Interrupted
from heddle._run import Comparison, Report, Run, compare, demo_graph, export_onnx, join, load, simulate, train
from heddle._settings import Settings

__all__ = [
    "Comparison",
    "Error",
    "Graph",
    "HeddleClassifier",
    "HeddleWarning",
    "InputError",
    "Interrupted",
    "Report",
    "Run",
    "Settings",
    "SparseRows",
    "Tables",
    "compare",
    "demo_graph",
    "export_onnx",
    "join",
    "load",
    "simulate",
    "split",
    "train",
]


def __getattr__(name: str):  # type: ignore[no-untyped-def]
    if name == "HeddleClassifier":
        from heddle._classifier import HeddleClassifier

        return HeddleClassifier
    raise AttributeError(f"module 'heddle' has no attribute {name!r}")
