"""Trains models of links by PyTorch Geometric, for `bench links`: a line of settings in, a line of figures out.

    python -m venv v && v/bin/pip install torch torch-geometric
"""
import copy
import json
import os
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
print(f"PyTorch {torch.__version__}, PyTorch Geometric {torch_geometric.__version__}", flush=True)


def features(data, n):
    """Sparse rows: first layers are products with them, as wide as the data."""
    a = np.load(pathlib.Path(data) / "graph.npz")
    if "x" in a:
        return torch.from_numpy(a["x"]).float().to_sparse()
    if "x_data" not in a:
        return torch.sparse_coo_tensor(torch.arange(n).repeat(2, 1), torch.ones(n), (n, n)).coalesce()
    at = torch.stack([torch.arange(n).repeat_interleave(torch.from_numpy(np.diff(a["x_indptr"]))), torch.from_numpy(a["x_indices"]).long()])
    return torch.sparse_coo_tensor(at, torch.from_numpy(a["x_data"]), tuple(a["x_shape"])).coalesce()


class FirstSAGE(SAGEConv):
    """The mean of projected rows in place of the projected mean: the same function, of sparse rows."""

    def forward(self, x, edges):
        left = torch.sparse.mm(x, self.lin_l.weight.t())
        return self.propagate(edges, x=(left, left), size=None) + self.lin_l.bias + torch.sparse.mm(x, self.lin_r.weight.t())


class FirstGCN(GCNConv):
    def forward(self, x, edges):
        if self._cached_edge_index is None:
            self._cached_edge_index = gcn_norm(edges, None, x.shape[0])
        edges, weight = self._cached_edge_index
        return self.propagate(edges, x=torch.sparse.mm(x, self.lin.weight.t()), edge_weight=weight) + self.bias


class Model(torch.nn.Module):
    def __init__(self, conv, decoder, width, hidden, dropout):
        super().__init__()
        first, second = {"gcn": (FirstGCN, GCNConv), "sage": (FirstSAGE, SAGEConv)}[conv]
        self.first, self.second, self.dropout = first(width, hidden), second(hidden, hidden), dropout
        self.mlp = torch.nn.Sequential(torch.nn.Linear(hidden, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1)) if decoder == "mlp" else None

    def rows(self, x, edges):
        if self.training and self.dropout > 0:
            x = torch.sparse_coo_tensor(x.indices(), F.dropout(x.values(), self.dropout), x.shape, is_coalesced=True)
        h = F.relu(self.first(x, edges))
        return self.second(F.dropout(h, self.dropout, self.training), edges)

    def score(self, z, u, v):
        x = z[u] * z[v]
        return x.sum(-1) if self.mlp is None else self.mlp(x).squeeze(-1)


def auc(pos, neg):
    order = torch.cat([pos, neg]).double().numpy()
    _, inverse, count = np.unique(order, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[inverse][:len(pos)]
    return float((rank.sum() - len(pos) * (len(pos) + 1) / 2) / (len(pos) * len(neg)))


@torch.no_grad()
def measure(model, z, links):
    u, v, drawn = links
    s = model.score(z, u, v)
    others = torch.cat([model.score(z, a.unsqueeze(1).expand_as(b), b) for a, b in zip(u.split(256), drawn.split(256))])
    rank = 1 + (others > s.unsqueeze(1)).sum(1) + 0.5 * (others == s.unsqueeze(1)).sum(1)
    return dict(links=len(u), mrr=float((1 / rank).mean()), hits={"10": float((rank <= 10).float().mean())}, auc=auc(s, others[:, 0]))


def run(data, file, conv, decoder, hidden, rounds, dropout, rate, seed):
    torch.manual_seed(int(seed))
    rows = {"train": [], "val": [], "test": []}
    for line in open(file):
        split, *rest = line.split()
        rows[split].append([int(k) for k in rest])
    edges = torch.tensor(rows["train"]).t().contiguous()
    held = {k: (lambda t: (t[:, 0], t[:, 1], t[:, 2:]))(torch.tensor(rows[k])) for k in ("val", "test")}
    n = int(json.load(open(pathlib.Path(data) / "meta.json")).get("num_nodes", 0)) or 1 + max(int(t.max()) for k in held for t in [held[k][2]])
    n = max(n, int(edges.max()) + 1, *(int(t.max()) + 1 for k in held for t in held[k]))
    x = features(data, n)
    n = x.shape[0]
    known = torch.cat([edges[0] * n + edges[1], torch.arange(n) * (n + 1)])
    model = Model(conv, decoder, x.shape[1], int(hidden), float(dropout))
    optimizer = torch.optim.Adam(model.parameters(), lr=float(rate))
    best, kept = -1.0, None
    for epoch in range(int(rounds) + 1):
        if epoch % 5 == 0:
            model.eval()
            with torch.no_grad():
                z = model.rows(x, edges)
            val = measure(model, z, held["val"])
            if val["mrr"] > best:
                best, kept = val["mrr"], (val, z, copy.deepcopy(model))
        model.train()
        z = model.rows(x, edges)
        drawn = torch.randint(n, edges[0].shape)
        again = torch.isin(edges[0] * n + drawn, known)
        drawn[again] = torch.randint(n, (int(again.sum()),))
        s = torch.cat([model.score(z, edges[0], edges[1]), model.score(z, edges[0], drawn)])
        truth = torch.cat([torch.ones(edges.shape[1]), torch.zeros(edges.shape[1])])
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(s, truth).backward()
        optimizer.step()
    val, z, model = kept
    return dict(val=val, test=measure(model.eval(), z, held["test"]))


for line in sys.stdin:
    print(json.dumps(run(*line.rstrip("\n").split("\t"))), flush=True)
