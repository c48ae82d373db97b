"""Writes one small graph in the formats that others define, with their own programs where there is one.

    pip install numpy pandas ogb pyarrow zstandard && python formats.py

ogb_* as the Open Graph Benchmark's loaders read them, which is tried; graph.parquet by pyarrow; graph.el.zst by zstandard.
expected.json has what is in them.
"""
import gzip
import json
import os
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import zstandard
from ogb.io.read_graph_raw import read_binary_graph_raw, read_csv_graph_raw, read_csv_heterograph_raw, read_node_label_hetero, read_nodesplitidx_split_hetero

os.chdir(os.path.dirname(os.path.abspath(__file__)))
rng = np.random.default_rng(3)
n, e = 30, 75
pairs = np.unique(rng.integers(0, n, (e, 2)), axis=0)
pairs = pairs[pairs[:, 0] != pairs[:, 1]]
src, dst = pairs[:, 0], pairs[:, 1]
weight = (1 + np.minimum(src, dst) % 4 + np.maximum(src, dst) % 3).astype(np.uint32)  # of both directions the same
x = rng.normal(size=(n, 3)).astype(np.float32).round(3)
y = rng.integers(0, 4, n).astype(float)
y[::6] = np.nan
multi = rng.integers(0, 2, (n, 3))
split = np.array_split(rng.permutation(n), 3)

with open("graph.el", "w") as f:
    f.write("# a comment\n")
    f.writelines(f"{a}\t{b} {w}\r\n" for a, b, w in zip(src, dst, weight))
open("graph.el.zst", "wb").write(zstandard.ZstdCompressor().compress(open("graph.el", "rb").read()))
pa.parquet.write_table(pa.table({"weight": weight.astype(np.float64), "target": dst, "source": src}), "graph.parquet")


def table(rows, *path, header=False):
    os.makedirs(os.path.dirname(os.path.join(*path)), exist_ok=True)
    text = pd.DataFrame(rows).to_csv(None, header=header, index=False)
    with open(os.path.join(*path), "wb") as f, gzip.GzipFile("", "wb", mtime=0, fileobj=f) as z:
        z.write(text.encode())


def splits(*path, kind=""):
    for name, ids in zip(["train", "valid", "test"], split):
        table(ids, *path, kind, name + ".csv.gz")


for name in ["ogb_plain", "ogb_multi", "ogb_binary", "ogb_typed"]:
    shutil.rmtree(name, ignore_errors=True)
for name, labels in [("ogb_plain", y), ("ogb_multi", multi)]:
    raw = name + "/raw/"
    table(pairs, raw + "edge.csv.gz")
    table([n], raw + "num-node-list.csv.gz")
    table([len(src)], raw + "num-edge-list.csv.gz")
    table(x, raw + "node-feat.csv.gz")
    table(labels, raw + "node-label.csv.gz")
    splits(name, "split", "random")
    assert (read_csv_graph_raw(name + "/raw")[0]["edge_index"].T == pairs).all()
os.makedirs("ogb_binary/raw")
np.savez_compressed("ogb_binary/raw/data.npz", edge_index=np.ascontiguousarray(pairs.T), num_nodes_list=np.array([n]), num_edges_list=np.array([len(src)]), node_feat=x, node_year=np.arange(n))
np.savez_compressed("ogb_binary/raw/node-label.npz", node_label=y[:, None].astype(np.float32))
splits("ogb_binary", "split", "time")
assert (read_binary_graph_raw("ogb_binary/raw")[0]["node_feat"] == x).all()

# Types: nodes 0 to 9 are venues, the others papers; every edge of the graph is in the relation of its ends.
kinds = {"paper": (10, n), "venue": (0, 10)}
of = lambda i: "venue" if i < 10 else "paper"
raw = "ogb_typed/raw/"
table(pd.DataFrame({"venue": [10], "paper": [n - 10]}), raw + "num-node-dict.csv.gz", header=True)
triplets = [(a, "to", b) for a in kinds for b in kinds]
table(triplets, raw + "triplet-type-list.csv.gz")
for a, r, b in triplets:
    rows = [(s - kinds[a][0], d - kinds[b][0]) for s, d in pairs if of(s) == a and of(d) == b]
    table(rows, raw + f"relations/{a}___{r}___{b}/edge.csv.gz")
    table([len(rows)], raw + f"relations/{a}___{r}___{b}/num-edge-list.csv.gz")
table(x[10:], raw + "node-feat/paper/node-feat.csv.gz")
table(y[10:], raw + "node-label/paper/node-label.csv.gz")
table(pd.DataFrame({"paper": [True], "venue": [False]}), raw + "nodetype-has-label.csv.gz", header=True)
table(pd.DataFrame({"paper": [True], "venue": [False]}), "ogb_typed/split/time/nodetype-has-split.csv.gz", header=True)
for name, ids in zip(["train", "valid", "test"], split):
    table(ids[ids >= 10] - 10, "ogb_typed/split/time/paper/" + name + ".csv.gz")
typed = read_csv_heterograph_raw("ogb_typed/raw")[0]
assert typed["num_nodes_dict"] == {"paper": n - 10, "venue": 10} and (typed["node_feat_dict"]["paper"] == x[10:]).all()
assert len(read_node_label_hetero("ogb_typed/raw")["paper"]) == n - 10
assert (read_nodesplitidx_split_hetero("ogb_typed/split/time")[0]["paper"] >= 0).all()

json.dump({
    "edges": pairs.tolist(), "weights": weight.tolist(), "x": x.tolist(), "y": [-1 if v != v else int(v) for v in y],
    "multi": multi.tolist(), "split": [ids.tolist() for ids in split],
}, open("expected.json", "w"))
