"""Writes a graph that is drawn: python generate.py DIR NODES DEGREE FEATURES CLASSES [EXPONENT]

DIR/graph.npz has as many nodes, DEGREE edges into each on average (both directions counted), half of them from nodes of
the same class, dense features that hint at the class, and one split of 10, 10 and 80 per cent. With EXPONENT degrees follow
a power law of it (Chung and Lu): expected ones, from which pairs that are drawn twice are missing.
"""
import pathlib, sys
import numpy as np

path, (nodes, degree, features, classes) = pathlib.Path(sys.argv[1]), map(int, sys.argv[2:6])
r = np.random.default_rng(1)
y = np.arange(nodes) % classes  # a class is a residue, so that a friend of the same one is found by arithmetic
if len(sys.argv) > 6:
    weight = r.permutation(np.arange(1, nodes // classes + 1) ** (-1 / (float(sys.argv[6]) - 1)))  # of as many nodes, one of each class
    cumulated = np.cumsum(np.repeat(weight, classes))
    src, far = (np.searchsorted(cumulated, r.random(nodes * degree // 2) * cumulated[-1]) for _ in range(2))
else:
    src = np.repeat(np.arange(nodes), degree // 2)
    far = r.integers(0, nodes, len(src))
near = far - far % classes + src % classes
dst = np.where(r.random(len(src)) < 0.5, far, np.where(near < nodes, near, src % classes))
keep = src != dst
pairs = np.unique(np.minimum(src, dst)[keep] * nodes + np.maximum(src, dst)[keep])
x = r.standard_normal((classes, features), np.float32)[y] * 0.2 + r.standard_normal((nodes, features), np.float32)
split = r.permutation(nodes)
masks = {name: np.isin(np.arange(nodes), ids) for name, ids in zip(("train", "val", "test"), np.split(split, [nodes // 10, nodes // 5]))}
path.mkdir(parents=True, exist_ok=True)
np.savez(path / "graph.npz", edge_index=np.stack([pairs // nodes, pairs % nodes]).astype(np.int32), x=x, y=y.astype(np.int64), **{f"{k}_mask": m for k, m in masks.items()})
print(f"{nodes} nodes, {2 * len(pairs)} edges")
