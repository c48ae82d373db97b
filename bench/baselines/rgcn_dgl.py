"""Trains DGL's R-GCN on a typed data set without features; prints accuracy over its test nodes and processor time.

    python -m venv v && v/bin/pip install dgl==2.1.0 torch==2.2.1 torchdata==0.7.1 'numpy<2' pydantic pandas pyyaml
    v/bin/python bench/baselines/rgcn_dgl.py data/aifb 3

The settings of DGL's example rgcn/entity.py: a learned row of 16 numbers a node, two RelGraphConv over each relation
and its reverse with one basis a relation, Adam with lr 0.01 and decay 0.0005, the last of 50 epochs. (The example of
DGL also makes the graph's forms before the epochs, and so do we.)
"""
import os
import pathlib
import sys
import time

os.environ["DGLBACKEND"] = "pytorch"
import numpy as np
import torch
import torch.nn.functional as F
import dgl
from dgl.nn.pytorch import RelGraphConv

torch.set_num_threads(1)


class Model(torch.nn.Module):
    def __init__(self, nodes, relations, classes):
        super().__init__()
        self.rows = torch.nn.Embedding(nodes, 16)
        self.first = RelGraphConv(16, 16, relations, regularizer="basis", num_bases=relations, self_loop=False)
        self.second = RelGraphConv(16, classes, relations, regularizer="basis", num_bases=relations, self_loop=False)

    def forward(self, graph):
        x = F.relu(self.first(graph, self.rows.weight, graph.edata["type"], graph.edata["norm"]))
        return self.second(graph, x, graph.edata["type"], graph.edata["norm"])


def run(a, seed):
    torch.manual_seed(seed)
    y, train, test = (torch.from_numpy(a[k]) for k in ("y", "train_mask", "test_mask"))
    edges, types = torch.from_numpy(a["edge_index"]).long(), torch.from_numpy(a["edge_type"]).long()
    edges, types = torch.cat([edges, edges.flip(0)], 1), torch.cat([types * 2, types * 2 + 1])
    relations = int(types.max()) + 1
    order = types.argsort(stable=True)
    edges, types = edges[:, order], types[order]
    graph = dgl.graph((edges[0], edges[1]), num_nodes=len(y))
    graph.create_formats_()
    at = edges[1] * relations + types
    graph.edata["type"], graph.edata["norm"] = types, (1 / torch.bincount(at)[at])[:, None]
    model = Model(len(y), relations, int(y.max()) + 1)
    step = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    start = time.process_time()
    for _ in range(50):
        step.zero_grad()
        F.cross_entropy(model(graph)[train], y[train].long()).backward()
        step.step()
    seconds = time.process_time() - start
    with torch.no_grad():
        right = model(graph)[test].argmax(1) == y[test]
    return right.float().mean().item() * 100, seconds


def main():
    folder, seeds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    a = np.load(folder / "graph.npz")
    print(f"PyTorch {torch.__version__}, DGL {dgl.__version__}, {folder.name}, accuracy, {seeds} seeds", flush=True)
    r = np.array([run(a, s) for s in range(1, seeds + 1)])
    print(f"test {r[:, 0].mean():.2f} ± {r[:, 0].std(ddof=seeds > 1):.2f}: {' '.join(f'{v:.1f}' for v in r[:, 0])}")
    print(f"processor seconds: median {np.median(r[:, 1]):.1f}")


if __name__ == "__main__":
    main()
