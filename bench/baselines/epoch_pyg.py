"""The baseline of `bench epoch`: PyTorch Geometric's layers, trained end to end. Reads lines from standard input:

    setup GRAPH MODEL HIDDEN WAYS   prepares a model and answers with those of the ways (commas between) that it can be trained
    run WAY EPOCHS                  trains and answers with an epoch's seconds, by the wall and by the processor's time
    accuracy WAY                    answers with the test accuracy

Ways: "edges", the layers with edge_index and dense features; "adj", the same with the adjacency as a sparse matrix, by
which PyG multiplies; "sparse", the same, and the first linear map is a product with the sparse features, whose gradient
takes a transposed pattern found once. gat takes edges in any case.
"""
import os, sys, time, warnings
warnings.filterwarnings("ignore")
import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
torch.set_flush_denormal(True)
torch.manual_seed(1)


class Product(torch.autograd.Function):
    """y = S·w for a sparse S with new values in an old pattern."""

    @staticmethod
    def forward(ctx, w, x, val):
        ctx.x, ctx.val = x, val
        return torch.sparse_csr_tensor(x.ptr, x.col, val, x.shape, check_invariants=False) @ w

    @staticmethod
    def backward(ctx, g):
        x = ctx.x
        return torch.sparse_csr_tensor(x.tptr, x.trow, ctx.val[x.perm], x.shape[::-1], check_invariants=False) @ g, None, None


class Features:
    """Sparse features, with MKL's own type of index, and where each value stands in the transpose."""

    def __init__(self, z):
        ptr, col = torch.from_numpy(z["x_indptr"]), torch.from_numpy(z["x_indices"].astype(np.int64))
        self.val, self.shape = torch.from_numpy(z["x_data"]), tuple(int(v) for v in z["x_shape"])
        row = torch.repeat_interleave(torch.arange(self.shape[0]), ptr.diff())
        self.val = self.val / torch.zeros(self.shape[0]).index_add_(0, row, self.val.abs())[row]
        self.perm = torch.argsort(col, stable=True)
        tptr = F.pad(torch.bincount(col, minlength=self.shape[1]).cumsum(0), (1, 0))
        self.ptr, self.col, self.tptr, self.trow = (v.to(torch.int32) for v in (ptr, col, tptr, row[self.perm]))

    def dense(self):
        return torch.sparse_csr_tensor(self.ptr, self.col, self.val, self.shape).to_dense()


class SparseLinear(torch.nn.Module):
    """The first linear map of a layer, of features that have been dropped already."""

    def __init__(self, like):
        super().__init__()
        self.weight = torch.nn.Parameter(like.weight.detach().t().contiguous())

    def forward(self, x):
        return Product.apply(self.weight, *x)


class Net(torch.nn.Module):
    def __init__(self, way, model, x, adj, edges, hidden, classes):
        super().__init__()
        self.model, self.way, self.x, self.adj = model, way, x, adj if way != "edges" and model != "gat" else edges
        f = x.shape[1]
        if model == "gcn":
            self.a, self.b = GCNConv(f, hidden, cached=True), GCNConv(hidden, classes, cached=True)
        elif model == "sage":
            self.a, self.b = SAGEConv(f, hidden), SAGEConv(hidden, classes)
        else:
            self.a, self.b = GATConv(f, hidden // 8, 8, dropout=0.6), GATConv(hidden, classes, 1, dropout=0.6)
        self.p = 0.6 if model == "gat" else 0.5
        if way != "sparse":
            return
        if model == "sage":  # the mean of what is projected is the projection of the mean, of fewer columns
            self.own, self.nbr = SparseLinear(self.a.lin_r), SparseLinear(self.a.lin_l)
            self.bias = self.a.lin_l.bias
            self.mean = SAGEConv(hidden, hidden, root_weight=False)
            self.mean.lin_l = torch.nn.Identity()
            del self.a
        else:
            self.a.lin = SparseLinear(self.a.lin)

    def first(self):
        if self.way != "sparse":
            return self.a(F.dropout(self.x, self.p, self.training), self.adj)
        val = F.dropout(self.x.val, self.p, self.training)
        if self.model == "sage":
            return self.own((self.x, val)) + self.mean(self.nbr((self.x, val)), self.adj) + self.bias
        if self.model == "gcn":
            lin, self.a.lin = self.a.lin, torch.nn.Identity()  # PyG takes a pair for two kinds of nodes
            h = self.a(lin((self.x, val)), self.adj)
            self.a.lin = lin
            return h
        h = self.a.lin((self.x, val)).view(-1, self.a.heads, self.a.out_channels)
        alpha = ((h * self.a.att_src).sum(-1), (h * self.a.att_dst).sum(-1))
        alpha = self.a.edge_updater(self.adj, alpha=alpha, edge_attr=None, size=None)
        return self.a.propagate(self.adj, x=(h, h), alpha=alpha, size=None).view(-1, self.a.heads * self.a.out_channels) + self.a.bias

    def forward(self):
        h = self.first()
        h = F.elu(h) if self.model == "gat" else F.relu(h)
        return self.b(F.dropout(h, self.p, self.training), self.adj)


def setup(path, model, hidden, wanted):
    z = np.load(path)
    n = len(z["y"])
    f = Features(z) if "x_data" in z else None
    if not f:
        dense = torch.from_numpy(z["x"])
        dense = dense / dense.abs().sum(1, keepdim=True)
    src, dst = torch.from_numpy(z["edge_index"].astype(np.int64))
    src, dst = torch.cat([src, dst]), torch.cat([dst, src])
    keep = src != dst
    pairs = torch.unique(src[keep] * n + dst[keep])
    src, dst = pairs // n, pairs % n
    if model == "gat":  # as the layer would add them at every step
        src, dst = torch.cat([src, torch.arange(n)]), torch.cat([dst, torch.arange(n)])
    edges = torch.stack([src, dst])
    adj = torch.sparse_coo_tensor(torch.stack([dst, src]), torch.ones(len(src)), (n, n)).coalesce().to_sparse_csr()
    y = torch.from_numpy(z["y"])
    split = {k: torch.from_numpy(np.flatnonzero(z[k + "_mask"].reshape(n, -1)[:, 0])) for k in ("train", "test")}
    ways = {}
    for way in wanted.split(","):
        if model == "gat" and way == "adj" or way == "sparse" and not f:
            continue
        net = Net(way, model, f if way == "sparse" else f.dense() if f else dense, adj, edges, int(hidden), int(y.max()) + 1)
        for conv in net.modules():
            if isinstance(conv, GATConv):
                conv.add_self_loops = False
        step = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4, fused=True)
        ways[way] = (net, step, y, split)
    return ways


def epoch(net, step, y, split):
    net.train()
    step.zero_grad(set_to_none=True)
    F.cross_entropy(net()[split["train"]], y[split["train"]]).backward()
    step.step()


print(f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__} ({torch.get_num_threads()} threads)", flush=True)
ways = {}
for line in sys.stdin:
    what, *rest = line.split()
    if what == "setup":
        ways = setup(*rest)
        print(*ways, flush=True)
    elif what == "run":
        times = int(rest[1])
        wall, busy = time.perf_counter(), time.process_time()
        for _ in range(times):
            epoch(*ways[rest[0]])
        print((time.perf_counter() - wall) / times, (time.process_time() - busy) / times, flush=True)
    else:
        net, _, y, split = ways[rest[0]]
        net.eval()
        with torch.no_grad():
            print((net()[split["test"]].argmax(1) == y[split["test"]]).float().mean().item(), flush=True)
