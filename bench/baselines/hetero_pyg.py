"""Trains PyTorch Geometric's HeteroConv on a typed data set, with its split, and prints validation and test figures.

    python -m venv v && v/bin/pip install torch torch-geometric
    v/bin/python bench/baselines/hetero_pyg.py data/imdb f1 3

Two layers of a SAGEConv a relation, summed, 64 columns, dropout 0.5, Adam with lr 0.01 (--lr), at most 200 epochs, 30 (--patience)
without a better validation; the best by validation of decays 0.0005, 0.005 and 0.02 (--decays), and of epochs. With --reverse each
relation has its reverse, as in Heddle. Metric: f1 (macro) or auc (area under the ROC curve of class 1, of two). Test figures are
printed for the decay that validates best; with --validation they are not.
"""
import argparse
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import HeteroConv, SAGEConv

torch.set_num_threads(1)


def read(folder, reverse):
    a = np.load(folder / "graph.npz")
    names = json.loads((folder / "meta.json").read_text())["relation_names"]
    ptr, col, val = (torch.from_numpy(a[k]) for k in ("x_indptr", "x_indices", "x_data"))
    x = torch.sparse_csr_tensor(ptr.long(), col.long(), val, tuple(a["x_shape"])).to_dense()
    kind = a["node_type"] if "node_type" in a else np.zeros(len(a["y"]), int)
    place = np.zeros(len(kind), int)  # of a node among those of its type
    for k in range(kind.max() + 1):
        place[kind == k] = np.arange((kind == k).sum())
    edges, types = a["edge_index"], a["edge_type"]
    out = {}
    for r, name in enumerate(names):
        src, dst = edges[:, types == r]
        for back in [False, True][: 1 + reverse]:
            s, d = (dst, src) if back else (src, dst)
            key = (str(kind[s[0]]), name + " reverse" * back, str(kind[d[0]]))
            pairs = torch.from_numpy(np.stack([place[d], place[s]])).long()  # transposed, as SAGEConv takes it
            n = [int((kind == kind[v[0]]).sum()) for v in (d, s)]
            out[key] = torch.sparse_coo_tensor(pairs, torch.ones(len(s)), n).coalesce().to_sparse_csr()
    main = kind[a["y"] >= 0][0]  # the type that has labels
    own = kind == main
    masks = [torch.from_numpy(a[m][own]) for m in ("train_mask", "val_mask", "test_mask")]
    xs = {str(k): x[torch.from_numpy(kind == k)] for k in range(kind.max() + 1)}
    return xs, out, str(main), torch.from_numpy(a["y"][own]).long(), masks


class Model(torch.nn.Module):
    def __init__(self, edges, classes):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            HeteroConv({key: SAGEConv((-1, -1), out) for key in edges}, aggr="sum") for out in (64, classes))

    def forward(self, xs, edges):
        drop = lambda rows: {k: F.dropout(v, 0.5, self.training) for k, v in rows.items()}
        rows = self.layers[0](drop(xs), edges)
        return self.layers[1](drop({k: F.relu(v) for k, v in rows.items()}), edges)


def score(metric, logits, y):
    if metric == "auc":
        z = (logits[:, 1] - logits[:, 0]).numpy()
        rank = np.empty(len(z))
        values, where, count = np.unique(z, return_inverse=True, return_counts=True)
        rank = (np.cumsum(count) - (count - 1) / 2)[where]
        p = (y == 1).numpy()
        return (rank[p].sum() - p.sum() * (p.sum() + 1) / 2) / (p.sum() * (~p).sum())
    said, total = logits.argmax(1), []
    for c in range(logits.shape[1]):
        right = ((said == c) & (y == c)).sum().item()
        total.append(2 * right / max(1, (said == c).sum().item() + (y == c).sum().item()))
    return float(np.mean(total))


def run(data, metric, seed, decay, rate, patience):
    xs, edges, main, y, (train, val, test) = data
    torch.manual_seed(seed)
    model = Model(edges, int(y.max()) + 1)
    with torch.no_grad():
        model(xs, edges)
    step = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    best, at = (-1.0, 0.0), 0
    for epoch in range(200):
        if epoch - at > patience:
            break
        model.train()
        step.zero_grad()
        F.cross_entropy(model(xs, edges)[main][train], y[train]).backward()
        step.step()
        model.eval()
        with torch.no_grad():
            logits = model(xs, edges)[main]
        v = score(metric, logits[val], y[val])
        if v > best[0]:
            best, at = (v, score(metric, logits[test], y[test])), epoch
    print(f"seed {seed}, decay {decay}, epoch {at}: validation {best[0] * 100:.2f}", flush=True)
    return best


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("metric", choices=["f1", "auc"])
    p.add_argument("seeds", type=int)
    p.add_argument("--reverse", action="store_true")
    p.add_argument("--validation", action="store_true")
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--patience", type=int, default=30)
    p.add_argument("--decays", type=lambda text: [float(v) for v in text.split(",")], default=[5e-4, 5e-3, 2e-2])
    a = p.parse_args()
    folder, metric, seeds = a.folder, a.metric, a.seeds
    data = read(folder, a.reverse)
    version = f"PyTorch {torch.__version__}, PyTorch Geometric {torch_geometric.__version__}"
    print(f"{version}, {folder.name}, {metric}, {seeds} seeds", flush=True)
    list_of = range(1, seeds + 1)
    all = {d: np.array([run(data, metric, s, d, a.lr, a.patience) for s in list_of]) * 100 for d in a.decays}
    for decay, r in all.items():
        print(f"decay {decay}: validation {r[:, 0].mean():.2f}", flush=True)
    if a.validation:
        return
    decay = max(all, key=lambda d: all[d][:, 0].mean())
    r = all[decay]
    spread = r[:, 1].std(ddof=seeds > 1)
    print(f"decay {decay}: validation {r[:, 0].mean():.2f}, test {r[:, 1].mean():.2f} ± {spread:.2f}")


if __name__ == "__main__":
    main()
