"""Measures the defaults of dataset.SitesConfig: what a two-layer GCN reaches on the pooled graph and on each site's own
nodes, edges and labels, and what the features alone give (MLP, logistic regression). Needs torch and scipy.

    go test ./graph/dataset -run TestSitesHonest -sites /tmp/sites
    python graph/dataset/testdata/sites.py /tmp/sites/*
"""
import sys
import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F


def tensor(m):
    m = m.tocoo()
    return torch.sparse_coo_tensor(np.stack([m.row, m.col]), m.data.astype(np.float32), m.shape).coalesce().to_sparse_csr()


def gcn_norm(a):
    a = a + sp.eye(a.shape[0])
    d = sp.diags(np.asarray(a.sum(1)).ravel() ** -0.5)
    return d @ a @ d


def correct(a, x, y, train, val, test, hidden=64, decay=5e-4):
    """Right test nodes at the best validation accuracy; a None: no edges; hidden 0: logistic regression."""
    torch.manual_seed(0)
    x, classes = tensor(x), 7
    agg = (lambda h: h) if a is None else (lambda h, a=tensor(gcn_norm(a)): a @ h)
    sizes = [(x.shape[1], hidden), (hidden, classes)] if hidden else [(x.shape[1], classes)]
    w = [((torch.rand(*s) * 2 - 1) * (6 / sum(s)) ** 0.5).requires_grad_() for s in sizes]
    b = [torch.zeros(s[1], requires_grad=True) for s in sizes]
    opt = torch.optim.Adam([{"params": w, "weight_decay": decay}, {"params": b}], lr=0.02)

    def forward(training):
        h = agg(x @ w[0]) + b[0]
        return agg(F.dropout(F.relu(h), 0.5, training) @ w[1]) + b[1] if hidden else h

    best, right = -1, 0
    for _ in range(150):
        opt.zero_grad()
        F.cross_entropy(forward(True)[train], y[train]).backward()
        opt.step()
        with torch.no_grad():
            ok = forward(False).argmax(1) == y
        if ok[val].sum() >= best:
            best, right = ok[val].sum(), ok[test].sum().item()
    return right


rows = []
for path in sys.argv[1:]:
    z = np.load(path + "/graph.npz")
    y, site = torch.tensor(z["y"]), z["client"]
    n, e = len(y), z["edge_index"]
    a = sp.csr_matrix((np.ones(e.shape[1]), e), (n, n))
    a = a + a.T
    raw = sp.csr_matrix((z["x_data"], z["x_indices"], z["x_indptr"]), tuple(z["x_shape"]))
    x = sp.diags(1 / np.maximum(np.asarray(raw.sum(1)).ravel(), 1)) @ raw
    masks = [torch.tensor(z[k + "_mask"]) for k in ("train", "val", "test")]
    alone = 0
    for s in range(site.max() + 1):
        own = np.flatnonzero(site == s)
        alone += correct(a[own][:, own], x[own], y[own], *(m[own] for m in masks))
    got = [correct(a, x, y, *masks), alone, correct(None, x, y, *masks), correct(None, raw, y, *masks, hidden=0, decay=1e-3)]
    rows.append(100 * np.array(got) / masks[2].sum().item())
    print(path, "pooled %.1f, alone %.1f, features: MLP %.1f, logistic %.1f" % tuple(rows[-1]), flush=True)
print("mean pooled %.1f, alone %.1f, features: MLP %.1f, logistic %.1f" % tuple(np.mean(rows, 0)))
print("sd   pooled %.1f, alone %.1f, features: MLP %.1f, logistic %.1f" % tuple(np.std(rows, 0)))
