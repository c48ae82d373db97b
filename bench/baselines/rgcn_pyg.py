"""Trains PyTorch Geometric's R-GCN on a typed data set without features, and prints accuracy over its test nodes.

    python -m venv v && v/bin/pip install torch torch-geometric
    v/bin/python bench/baselines/rgcn_pyg.py data/aifb 10

The settings of PyTorch Geometric's example rgcn_entity.py: two FastRGCNConv over each relation and its reverse, 16
columns, 30 bases, Adam with lr 0.01 and decay 0.0005, the last of 50 epochs. (The example cuts the graph to two hops
of labelled nodes, which changes no result of two layers.)
"""
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import FastRGCNConv

torch.set_num_threads(1)


class Model(torch.nn.Module):
    def __init__(self, nodes, relations, classes):
        super().__init__()
        self.first = FastRGCNConv(nodes, 16, relations, num_bases=30)
        self.second = FastRGCNConv(16, classes, relations, num_bases=30)

    def forward(self, edges, types):
        return self.second(F.relu(self.first(None, edges, types)), edges, types)


def run(a, seed):
    torch.manual_seed(seed)
    y, train, test = (torch.from_numpy(a[k]) for k in ("y", "train_mask", "test_mask"))
    edges, types = torch.from_numpy(a["edge_index"]).long(), torch.from_numpy(a["edge_type"]).long()
    edges, types = torch.cat([edges, edges.flip(0)], 1), torch.cat([types * 2, types * 2 + 1])
    model = Model(len(y), int(types.max()) + 1, int(y.max()) + 1)
    step = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(50):
        step.zero_grad()
        F.cross_entropy(model(edges, types)[train], y[train].long()).backward()
        step.step()
    with torch.no_grad():
        right = model(edges, types)[test].argmax(1) == y[test]
    return right.float().mean().item() * 100


def main():
    folder, seeds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    a = np.load(folder / "graph.npz")
    version = f"PyTorch {torch.__version__}, PyTorch Geometric {torch_geometric.__version__}"
    print(f"{version}, {folder.name}, accuracy, {seeds} seeds", flush=True)
    r = np.array([run(a, s) for s in range(1, seeds + 1)])
    print(f"test {r.mean():.2f} ± {r.std(ddof=seeds > 1):.2f}: {' '.join(f'{v:.1f}' for v in r)}")


if __name__ == "__main__":
    main()
