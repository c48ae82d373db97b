"""The baselines of `bench epoch`: layers of PyTorch Geometric and of DGL, trained end to end. Reads lines from standard input:

    setup GRAPH MODEL HIDDEN WAYS DROPOUT SHARE WEIGHTS
                       prepares a model that begins with the weights of a safetensors file, and answers with those of the ways
                       (commas between) that it can be trained. SHARE of the labelled nodes train; 0: the graph's own split
    losses WAY EPOCHS  answers with the losses of the first epochs without dropout, by a model of its own
    run WAY EPOCHS     trains and answers with an epoch's seconds, by the wall and by the processor's time
    accuracy WAY       answers with the test accuracy; nan on a part of the graph

Ways: "edges", PyG's layers with edge_index and dense features; "adj", the same with the adjacency as a sparse matrix, by
which PyG multiplies; "sparse", the same, and the first linear map is a product with the sparse features, whose gradient
takes a transposed pattern found once; "dgl", DGL's own layers with indices of 32 bits, all formats made before, and
the first linear map as in "sparse" where features are; "dgl-dense", the same with dense features. gat takes edges in any case of PyG. With "+khop" a way trains on
the nodes that two layers need of the training nodes, with the degrees of the whole graph.
"""
import math, os, sys, time, warnings
warnings.filterwarnings("ignore")
import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from ours import divide, fill, weights

try:
    os.environ.setdefault("DGLBACKEND", "pytorch")
    import dgl
    import dgl.nn.pytorch as dglnn
except ImportError:
    dgl = None

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

    def __init__(self, row, col, val, shape):
        self.val, self.shape = val, shape
        self.perm = torch.argsort(col, stable=True)
        pointers = lambda i, n: F.pad(torch.bincount(i, minlength=n).cumsum(0), (1, 0))
        self.ptr, self.col, self.tptr, self.trow = (v.to(torch.int32) for v in (pointers(row, shape[0]), col, pointers(col, shape[1]), row[self.perm]))
        self.row = row

    def dense(self):
        return torch.sparse_csr_tensor(self.ptr, self.col, self.val, self.shape).to_dense()

    def select(self, nodes, place):
        keep = place[self.row] >= 0
        return Features(place[self.row[keep]], self.col[keep].long(), self.val[keep], (len(nodes), self.shape[1]))


def read(z):
    if "x_data" not in z:
        x = torch.from_numpy(z["x"])
        return x / x.abs().sum(1, keepdim=True)
    ptr, col = torch.from_numpy(z["x_indptr"]), torch.from_numpy(z["x_indices"].astype(np.int64))
    val, shape = torch.from_numpy(z["x_data"]), tuple(int(v) for v in z["x_shape"])
    row = torch.repeat_interleave(torch.arange(shape[0]), ptr.diff())
    return Features(row, col, val / torch.zeros(shape[0]).index_add_(0, row, val.abs())[row], shape)


class Graph:
    """What the ways of a model train on: edges into their destinations, weighted as GCN does where that is the model."""

    def __init__(self, model, src, dst, x, y, split):
        self.model, self.src, self.dst, self.x, self.y, self.split, self.n = model, src, dst, x, y, split, len(y)
        self.weight = torch.ones(len(src))
        if model == "gcn":
            degree = torch.bincount(dst, minlength=self.n).float().rsqrt()
            self.weight = degree[src] * degree[dst]

    def part(self):
        """The nodes and edges that two layers read of the training nodes."""
        need = torch.zeros(self.n, dtype=torch.bool)
        need[self.split["train"]] = True
        inner = need.clone()
        inner[self.src[need[self.dst]]] = True
        outer = inner.clone()
        outer[self.src[inner[self.dst]]] = True
        nodes, keep = outer.nonzero()[:, 0], inner[self.dst]
        place = torch.full((self.n,), -1)
        place[nodes] = torch.arange(len(nodes))
        g = Graph("", place[self.src[keep]], place[self.dst[keep]], self.x.select(nodes, place) if isinstance(self.x, Features) else self.x[nodes],
                  self.y[nodes], {"train": place[self.split["train"]]})
        g.model, g.weight = self.model, self.weight[keep]
        return g

    def dense(self):
        return self.x.dense() if isinstance(self.x, Features) else self.x

    def adjacency(self):
        return torch.sparse_coo_tensor(torch.stack([self.dst, self.src]), self.weight, (self.n, self.n)).coalesce().to_sparse_csr()


class Net(torch.nn.Module):
    """Two layers; the first linear map is a product with sparse features where there are some and the way takes them."""

    def __init__(self, way, g, w, hidden, classes, p):
        super().__init__()
        self.sparse = isinstance(g.x, Features) and way in ("sparse", "dgl")
        way = way.removesuffix("-dense")
        self.way, self.model, self.p, gat = way, g.model, p, g.model == "gat"
        self.x = g.x if self.sparse else g.dense()
        inputs = g.x.shape[1]
        make = self.of_dgl if way == "dgl" else self.of_pyg
        self.first, self.last = make(inputs, hidden, 8), make(hidden, classes, 1)
        if way == "dgl":
            self.g = dgl.graph((g.src.int(), g.dst.int()), num_nodes=g.n, idtype=torch.int32).formats(["coo", "csc", "csr"])
            self.g.create_formats_()
            self.edge_weight = g.weight if self.model == "gcn" and "train" in g.split and len(g.split) == 1 else None
        elif way == "edges" or gat:
            self.at, self.edge_weight = torch.stack([g.src, g.dst]), g.weight
        else:
            self.at, self.edge_weight = g.adjacency(), None
        for k, layer in ((1, self.first), (2, self.last)):
            fill(g.model, layer, lambda name: w[f"layer{k}.{name}"], way == "dgl")
        if self.sparse:
            self.maps = torch.nn.ParameterList([torch.nn.Parameter(v.clone()) for v in
                        ([w["layer1.self.weight"], w["layer1.nbr.weight"]] if self.model == "sage" else [w["layer1.pre.weight" if gat else "layer1.nbr.weight"]])])
            if way == "dgl":
                if gat:
                    self.first.fc = torch.nn.Identity()
                elif self.model == "gcn":
                    self.first = dglnn.GraphConv(hidden, hidden, weight=False, norm="none" if self.edge_weight is not None else "both")
                    self.first.bias.data = w["layer1.nbr.bias"].flatten().clone()
                else:
                    self.bias = torch.nn.Parameter(w["layer1.nbr.bias"].flatten().clone())
                    self.first = None
            elif self.model == "sage":
                self.bias = torch.nn.Parameter(w["layer1.nbr.bias"].flatten().clone())
                self.first = SAGEConv(hidden, hidden, root_weight=False)
                self.first.lin_l = torch.nn.Identity()
            elif not gat:
                self.first.lin = torch.nn.Identity()
            else:
                self.first.lin = None

    def of_pyg(self, inputs, out, heads):
        if self.model == "gcn":
            return GCNConv(inputs, out, normalize=False)
        if self.model == "sage":
            return SAGEConv(inputs, out)
        return GATConv(inputs, out // heads, heads, dropout=self.p, add_self_loops=False)

    def of_dgl(self, inputs, out, heads):
        if self.model == "gcn":
            return dglnn.GraphConv(inputs, out, norm="both", allow_zero_in_degree=True)
        if self.model == "sage":
            return dglnn.SAGEConv(inputs, out, "mean")
        return dglnn.GATConv(inputs, out // heads, heads, attn_drop=self.p, allow_zero_in_degree=True)

    def one(self, layer, h):
        if self.way == "dgl":
            h = layer(self.g, h, **({"edge_weight": self.edge_weight} if self.edge_weight is not None else {}))
            return h.flatten(1) if self.model == "gat" else h
        if self.model == "gcn":
            return layer(h, self.at, self.edge_weight)
        return layer(h, self.at)

    def begin(self):
        if not self.sparse:
            return self.one(self.first, F.dropout(self.x, self.p, self.training))
        x = (self.x, F.dropout(self.x.val, self.p, self.training))
        if self.model == "sage":
            own, nbr = (Product.apply(m, *x) for m in self.maps)
            return own + (dgl.ops.copy_u_mean(self.g, nbr) if self.way == "dgl" else self.first(nbr, self.at)) + self.bias
        h = Product.apply(self.maps[0], *x)
        if self.model == "gcn" or self.way == "dgl":
            return self.one(self.first, h)
        a = self.first
        h = h.view(-1, a.heads, a.out_channels)
        alpha = a.edge_updater(self.at, alpha=((h * a.att_src).sum(-1), (h * a.att_dst).sum(-1)), edge_attr=None, size=None)
        return a.propagate(self.at, x=(h, h), alpha=alpha, size=None).view(-1, a.heads * a.out_channels) + a.bias

    def forward(self):
        h = self.begin()
        h = F.elu(h) if self.model == "gat" else F.relu(h)
        return self.one(self.last, F.dropout(h, self.p, self.training))


def setup(path, model, hidden, wanted, dropout, share, file):
    z, w = np.load(path), weights(file)
    n, x = len(z["y"]), read(z)
    src, dst = torch.from_numpy(z["edge_index"].astype(np.int64))
    src, dst = torch.cat([src, dst]), torch.cat([dst, src])
    keep = src != dst
    pairs = torch.unique(src[keep] * n + dst[keep])
    src, dst = pairs // n, pairs % n
    if model != "sage":
        src, dst = torch.cat([src, torch.arange(n)]), torch.cat([dst, torch.arange(n)])
    y = torch.from_numpy(z["y"])
    whole = Graph(model, src, dst, x, y, {k: torch.from_numpy(v) for k, v in divide(z, float(share)).items()})
    ways, classes = {}, int(y.max()) + 1
    for name in wanted.split(","):
        way, _, cut = name.partition("+")
        if model == "gat" and way == "adj" or way == "sparse" and not isinstance(x, Features) or way.startswith("dgl") and not dgl:
            continue
        g = whole.part() if cut else whole
        if cut and way.startswith("dgl") and model == "gcn":
            continue  # its weights are the degrees of the part
        def made(p, g=g, way=way):
            net = Net(way, g, w, int(hidden), classes, p)
            return net, torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4, fused=fused), g
        ways[name] = made
    return ways, float(dropout)


def epoch(net, step, g):
    net.train()
    step.zero_grad(set_to_none=True)
    loss = F.cross_entropy(net()[g.split["train"]], g.y[g.split["train"]])
    loss.backward()
    step.step()
    return loss


try:
    torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], fused=True)
    fused = True
except RuntimeError:  # for CPUs since torch 2.4
    fused = None
print(f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}" + (f", dgl {dgl.__version__}" if dgl else "") + f" ({torch.get_num_threads()} threads)", flush=True)
ways, nets, dropout = {}, {}, 0
for line in sys.stdin:
    what, *rest = line.split()
    if what == "setup":
        (ways, dropout), nets = setup(*rest), {}
        print(*ways, flush=True)
    elif what == "losses":
        still = ways[rest[0]](0.0)
        print(*(f"{epoch(*still).item():.5f}" for _ in range(int(rest[1]))), flush=True)
    elif what == "run":
        if rest[0] not in nets:
            nets[rest[0]] = ways[rest[0]](dropout)
        times = int(rest[1])
        wall, busy = time.perf_counter(), time.process_time()
        for _ in range(times):
            epoch(*nets[rest[0]])
        print((time.perf_counter() - wall) / times, (time.process_time() - busy) / times, flush=True)
    else:
        net, _, g = nets[rest[0]]
        net.eval()
        with torch.no_grad():
            test = g.split.get("test")
            print((net()[test].argmax(1) == g.y[test]).float().mean().item() if test is not None else math.nan, flush=True)
