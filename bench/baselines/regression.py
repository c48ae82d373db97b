"""Takes a column of a data set's features out as a numeric target, and says how well others predict it.

    OMP_NUM_THREADS=1 python regression.py [--splits 3] DATA COLUMN OUT [WAY ...]

writes OUT/graph.npz, of the same edges, splits and other columns, for heddle train. It prints over the first splits the R² and
the MAE over test nodes of each way: mean; on features alone ridge and boosting (scikit-learn's
HistGradientBoostingRegressor); sage and gcn, PyTorch Geometric models of a linear layer, two convolutions and one target, with
the number of the split as seed. Validation nodes choose penalty, trees, dropout and epoch. A COLUMN of -1 is that of the
largest variance.
"""
import argparse
import pathlib

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score


def columns(arrays):
    if "x" in arrays:
        return sp.csr_matrix(arrays["x"].astype(np.float32))
    return sp.csr_matrix((arrays["x_data"], arrays["x_indices"], arrays["x_indptr"]), tuple(arrays["x_shape"]))


def mean(x, y, edges, train, val, test, seed):
    return np.full(len(test), y[train].mean())


def ridge(x, y, edges, train, val, test, seed):
    models = [Ridge(alpha=a).fit(x[train], y[train]) for a in (0.01, 0.1, 1, 10, 100)]
    return max(models, key=lambda m: r2_score(y[val], m.predict(x[val]))).predict(x[test])


def boosting(x, y, edges, train, val, test, seed):
    leaf = 20  # fewest nodes of a leaf: a 0/1 column of fewer ones cannot split
    x = x[:, np.asarray((x[train] != 0).sum(0)).ravel() >= leaf].toarray()
    best = (-np.inf, None)
    for rate in (0.03, 0.1):
        model = HistGradientBoostingRegressor(learning_rate=rate, max_iter=300, min_samples_leaf=leaf, early_stopping=False, random_state=seed)
        model.fit(x[train], y[train])
        validated = [r2_score(y[val], said) for said in model.staged_predict(x[val])]
        trees = int(np.argmax(validated))
        if validated[trees] > best[0]:
            said = [s for s, _ in zip(model.staged_predict(x[test]), range(trees + 1))][-1]
            best = validated[trees], said
    return best[1]


def sage(*data):
    from torch_geometric.nn import SAGEConv

    return trained(*data, lambda width: SAGEConv(width, width), lambda a: a)


def gcn(*data):
    from torch_geometric.nn import GCNConv

    def normalised(a):
        a = a + sp.eye(a.shape[0], dtype=np.float32, format="csr")
        root = sp.diags(np.asarray(a.sum(1)).ravel() ** -0.5)
        return (root @ a @ root).tocsr().astype(np.float32)

    return trained(*data, lambda width: GCNConv(width, width, normalize=False), normalised)


def trained(x, y, edges, train, val, test, seed, conv, weighted, hidden=64, epochs=200):
    import torch

    torch.set_num_threads(1)
    n = x.shape[0]
    a = sp.coo_matrix((np.ones(edges.shape[1], np.float32), (edges[1], edges[0])), (n, n)).tocsr()
    a = ((a + a.T) > 0).astype(np.float32).tolil()
    a.setdiag(0)
    a = a.tocsr()
    a.eliminate_zeros()

    def tensor(m):
        return torch.sparse_csr_tensor(m.indptr.astype(np.int64), m.indices.astype(np.int64), m.data, m.shape)

    mu, sd = y[train].mean(), y[train].std()
    target, adj = torch.tensor((y - mu) / sd).float(), tensor(weighted(a))
    wide = x.shape[1] > 64  # sparse columns, not standardised
    if not wide:
        d = x.toarray()
        d = torch.tensor((d - d.mean(0)) / np.maximum(d.std(0), 1e-6)).float()
    else:
        forward, backward = tensor(x), tensor(x.T.tocsr())

        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, w):
                return forward @ w

            @staticmethod
            def backward(ctx, g):
                return backward @ g

    best = (-np.inf, None)
    for dropout in (0.0, 0.5):
        torch.manual_seed(seed)
        w = torch.nn.Parameter(torch.nn.Linear(x.shape[1], hidden).weight.detach().t().contiguous())
        b = torch.nn.Parameter(torch.zeros(hidden))
        convs = torch.nn.ModuleList([conv(hidden), conv(hidden)])
        last = torch.nn.Linear(hidden, 1)
        opt = torch.optim.Adam([w, b, *convs.parameters(), *last.parameters()], lr=0.01)

        def run(training):
            h = (Product.apply(w) if wide else d @ w) + b
            for layer in convs:
                h = torch.nn.functional.dropout(h.relu(), dropout, training)
                h = layer(h, adj)
            return last(h.relu())[:, 0]

        for _ in range(epochs):
            opt.zero_grad()
            said = run(True)
            torch.nn.functional.mse_loss(said[train], target[train]).backward()
            opt.step()
            with torch.no_grad():
                said = run(False).numpy() * sd + mu
            found = r2_score(y[val], said[val])
            if found > best[0]:
                best = found, said[test]
    return best[1]


p = argparse.ArgumentParser()
p.add_argument("data", type=pathlib.Path)
p.add_argument("column", type=int)
p.add_argument("out", type=pathlib.Path)
p.add_argument("ways", nargs="*")
p.add_argument("--splits", type=int, default=3)
told = p.parse_args()
data, column, out = told.data, told.column, told.out
arrays = dict(np.load(data / "graph.npz"))
x = columns(arrays)
if column < 0:
    share = np.asarray(x.mean(0)).ravel()
    column = int(np.argmax(np.asarray(x.multiply(x).mean(0)).ravel() - share**2))
y = x[:, [column]].toarray().ravel().astype(np.float32)
x = x[:, [c for c in range(x.shape[1]) if c != column]].tocsr()
if "x" in arrays:
    arrays["x"] = x.toarray()
else:
    arrays |= {"x_data": x.data, "x_indices": x.indices.astype(np.int32), "x_indptr": x.indptr.astype(np.int64), "x_shape": np.array(x.shape)}
arrays["y"] = y
out.mkdir(parents=True, exist_ok=True)
np.savez(out / "graph.npz", **arrays)

print(f"{data.name}, column {column}, mean {y.mean():.3f}, deviation {y.std():.3f}")
for name in told.ways or ("mean", "ridge", "boosting", "sage", "gcn"):
    found = []
    for split in range(told.splits):
        train, val, test = (np.flatnonzero(arrays[m][:, split]) for m in ("train_mask", "val_mask", "test_mask"))
        said = globals()[name](x, y, arrays["edge_index"], train, val, test, split + 1)
        found.append((r2_score(y[test], said), mean_absolute_error(y[test], said)))
    r2, mae = np.array(found).T
    print(f"{name:9} R2 {r2.mean():.4f} ± {r2.std(ddof=1):.4f}  MAE {mae.mean():.4f}", flush=True)
