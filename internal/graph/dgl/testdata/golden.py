"""Writes the partitions that the tests of this package read, and what DGL itself says of them.

    python -m venv dgl && dgl/bin/pip install dgl==2.1.0 torch==2.2.1 torchdata==0.7.1 "numpy<2" pydantic pandas pyyaml
    DGLBACKEND=pytorch dgl/bin/python golden.py

    DGLBACKEND=pytorch dgl/bin/python golden.py cora/graph.npz OUT METHOD PARTS

The first writes all; the second one partition of a data set, OUT/CASE and OUT/CASE.json. Each CASE is a folder that dgl.distributed.partition_graph wrote, and CASE.json has of each part the counts and the
edges that dgl.distributed.load_partition gives.
"""
import json
import os
import shutil
import sys

import dgl
import numpy as np
import torch
from dgl.distributed import load_partition, partition_graph

here = os.path.dirname(os.path.abspath(__file__))


def dataset(path):
    with np.load(path) as z:
        src, dst = z["edge_index"]
        n = len(z["y"])
        keep = src != dst
        g = dgl.to_bidirected(dgl.graph((src[keep], dst[keep]), num_nodes=n))
        x = np.zeros((n, int(z["x_shape"][1])), np.float32)
        for i, (lo, hi) in enumerate(zip(z["x_indptr"], z["x_indptr"][1:])):
            x[i, z["x_indices"][lo:hi]] = z["x_data"][lo:hi]
        g.ndata["feat"], g.ndata["label"] = torch.from_numpy(x), torch.from_numpy(z["y"])
        for name in ["train_mask", "val_mask", "test_mask"]:
            m = z[name]
            g.ndata[name] = torch.from_numpy(m if m.ndim == 1 else m[:, 0])
    return g


def homogeneous():
    rng = np.random.default_rng(1)
    n, e = 40, 70
    src, dst = rng.integers(0, n, e), rng.integers(0, n, e)
    keep = src != dst
    g = dgl.to_bidirected(dgl.graph((src[keep], dst[keep]), num_nodes=n))
    g.ndata["feat"] = torch.from_numpy(rng.normal(size=(n, 6)).astype(np.float32))
    label = torch.from_numpy(rng.integers(0, 3, n))
    label[::7] = -1
    g.ndata["label"] = label
    split = torch.from_numpy(rng.integers(0, 4, n))
    for k, name in enumerate(["train_mask", "val_mask", "test_mask"]):
        g.ndata[name] = split == k
    s, d = g.edges()
    g.edata["w"] = 1 + (s + d).float() / 8  # the same in both directions
    return g


def heterogeneous():
    rng = np.random.default_rng(2)
    n = {"author": 30, "paper": 50, "venue": 16}
    ends = lambda a, b, k: (rng.integers(0, n[a], k), rng.integers(0, n[b], k))
    wrote, cites, at = ends("author", "paper", 120), ends("paper", "paper", 90), ends("paper", "venue", 60)
    g = dgl.heterograph({
        ("author", "wrote", "paper"): wrote,
        ("paper", "by", "author"): wrote[::-1],
        ("paper", "cites", "paper"): cites,
        ("paper", "at", "venue"): at,
    }, num_nodes_dict=n)
    g.nodes["paper"].data["feat"] = torch.from_numpy(rng.normal(size=(50, 5)).astype(np.float32)).half()
    g.nodes["author"].data["feat"] = torch.from_numpy(rng.normal(size=(30, 3)))
    g.nodes["paper"].data["label"] = torch.from_numpy(rng.integers(0, 4, 50))
    g.nodes["paper"].data["train_mask"] = torch.arange(50) % 2 == 0
    g.nodes["paper"].data["test_mask"] = torch.arange(50) % 2 == 1
    g.edges["cites"].data["year"] = torch.arange(90)
    return g


def expect(folder, name, parts):
    out = []
    for k in range(parts):
        g, nodes, edges, book, _, ntypes, etypes = load_partition(os.path.join(folder, name + ".json"), k)
        ids, inner = g.ndata[dgl.NID], g.ndata["inner_node"].bool()
        src, dst = g.edges()
        own = g.edata["inner_edge"].bool()
        near = torch.unique(src[own])
        halo = ids[near[~inner[near]]]
        out.append({
            "nodes": g.num_nodes(), "inner": int(inner.sum()), "edges": g.num_edges(), "inner_edges": int(own.sum()),
            "node_types": {t: len(book.partid2nids(k, t)) for t in ntypes},
            "edge_types": {":".join(t): len(book.partid2eids(k, t)) for t in etypes},
            "halo": sorted(halo.tolist()),
            "halo_owner": book.nid2partid(torch.sort(halo)[0]).tolist(),
            "all_halo": sorted(ids[~inner].tolist()),
            "pairs": sorted([a, b, int(t)] for a, b, t in zip(
                ids[src[own]].tolist(), ids[dst[own]].tolist(), book.map_to_per_etype(g.edata[dgl.EID][own])[0])),
            "columns": {key: v.float().flatten(1).sum(1).tolist() if v.dim() > 1 else v.float().tolist() for key, v in nodes.items()},
            "edge_columns": {key: v.float().tolist() for key, v in edges.items()},
        })
    return out


def write(case, g, parts, method, out=here, **how):
    folder = os.path.join(out, case)
    shutil.rmtree(folder, ignore_errors=True)
    dgl.seed(1)
    np.random.seed(1)
    partition_graph(g, "small", parts, folder, part_method=method, **how)
    for k in range(parts):  # DGL leaves whatever was in memory between the header and byte 4096
        with open(os.path.join(folder, f"part{k}", "graph.dgl"), "r+b") as f:
            f.seek(32)
            f.write(bytes(4096 - 32))
    with open(folder + ".json", "w") as f:
        json.dump(expect(folder, "small", parts), f)


if len(sys.argv) > 1:
    path, out, method, parts = sys.argv[1:]
    write(f"{method}-{parts}", dataset(path), int(parts), method, out=out)
else:
    write("random-2", homogeneous(), 2, "random")
    write("metis-4", homogeneous(), 4, "metis", graph_formats=["csc", "coo"])
    write("whole", homogeneous(), 1, "metis")
    write("rows-2", homogeneous(), 2, "metis", graph_formats=["csr"])
    write("typed-random-2", heterogeneous(), 2, "random")
    write("typed-metis-4", heterogeneous(), 4, "metis", num_hops=2)
    write("typed-csc-2", heterogeneous(), 2, "metis", graph_formats=["csc"])
