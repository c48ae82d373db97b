"""What tests of engines share: a graph in parts, and ports."""

import os
import pathlib
import socket

import numpy as np

import heddle
from heddle import _program


def free_ports(n):
    """Returns the first of n ports in a row that are free for UDP and TCP."""
    for first in range(21000 + os.getpid() % 20000, 60000, 16):
        try:
            for port in range(first, first + n):
                for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                    with socket.socket(socket.AF_INET, kind) as s:
                        s.bind(("0.0.0.0", port))
            return first
        except OSError:
            continue
    raise AssertionError("no free ports")


def people():
    """Two communities of 60 people who mostly know their own, as rows of nodes and edges between names."""
    draw = np.random.default_rng(5)
    nodes = [(f"p{i:03d}", float(i % 2) + float(draw.normal()) * 0.4, "yes" if i % 2 else "no") for i in range(120)]
    edges = []
    for i in range(120):
        for j in draw.choice(60, 3, replace=False):
            edges.append((f"p{i:03d}", f"p{2 * j + i % 2:03d}", 1))
    return nodes, [e for e in edges if e[0] != e[1]]


def parts_of(nodes, edges, at: pathlib.Path) -> str:
    """Returns the directory of a partition of tables into four parts."""
    stored, parts = str(at / "web.graph"), str(at / "parts")
    _program.run(["import", "--nodes", str(nodes), "--edges", str(edges), "--label-column", "smoker", "--out", stored])
    _program.run(["partition", "--data", stored, "--parts", "4", "--policy", "restream:2", "--memory", "64MiB", "--out", parts])
    return parts


SETTINGS = {"method": "full-batch", "model": "sage", "rounds": 30, "order": "fixed"}


def check(test, parts, run, rows):
    """Compares the run of an engine and its predictions, rows by node, with those of two peers in one process."""
    alone = heddle.train(parts, peers=2, transport="memory", progress=False, **SETTINGS)
    test.assertEqual(2, run.metrics["peers"])
    test.assertGreater(run.metrics["test"], 0.8)
    test.assertEqual(alone.model_file.read_bytes(), run.model_file.read_bytes())
    test.assertEqual(list(range(120)), sorted(rows))
    test.assertEqual(list(alone.predict()), [rows[i]["class"] for i in range(120)])
    np.testing.assert_allclose(alone.predict_proba(), np.array([rows[i]["probabilities"] for i in range(120)]), atol=1e-5)
