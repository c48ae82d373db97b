"""Writes <model>.golden: two-layer models of PyTorch Geometric's layers on a small graph, in float64.

Each file holds the graph, the input, the parameters under this package's names, the scores, the loss, every gradient,
and the losses of five steps of Adam and of SGD with momentum. Run: python gen_golden.py [MODEL...] (torch 2.x, torch_geometric 2.x).
"""
import sys

import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, GraphConv, RGATConv, RGCNConv, SAGEConv
from torch_geometric.nn import APPNP as Propagation
from torch_geometric.nn import CorrectAndSmooth
from torch_geometric.nn.conv.gcn_conv import gcn_norm

torch.set_default_dtype(torch.float64)
N, FEATURES, HIDDEN, CLASSES = 16, 6, 6, 3


def graph():
    g = torch.Generator().manual_seed(1)
    upper = torch.triu(torch.rand(N, N, generator=g) < 0.2, diagonal=1)
    upper[:, N - 1] = False  # the last node is isolated
    x = torch.randn(N, FEATURES, generator=g) * (torch.rand(N, FEATURES, generator=g) < 0.6)
    y = torch.randint(0, CLASSES, (N,), generator=g)
    y[::4] = -1  # no label
    return (upper | upper.T).nonzero().T, x, y


def relations():
    """Directed edges of three relations, of which the second has none; the last node is isolated."""
    g = torch.Generator().manual_seed(3)
    edges = (torch.rand(3, N - 1, N - 1, generator=g) < 0.15).nonzero().T
    edges = edges[:, edges[0] != 1]
    return edges[0], edges[1:]


class RGCN(torch.nn.Module):
    def __init__(self, i, o, bases):
        super().__init__()
        self.conv = RGCNConv(i, o, 3, num_bases=bases)
        self.kind, self.edges = relations()

    def forward(self, x, _):
        return self.conv(x, self.edges.flip(0), self.kind)


class RSAGE(torch.nn.Module):
    """A SAGEConv for each relation, over the nodes that it reaches, and a map of every node's own row."""
    def __init__(self, i, o):
        super().__init__()
        self.root, self.bias = torch.nn.Parameter(torch.randn(i, o)), torch.nn.Parameter(torch.zeros(o))
        self.weight = torch.nn.Parameter(torch.randn(6, i, o))
        self.convs = [SAGEConv(i, o, bias=False) for _ in range(3)]  # a list: their parameters are replaced
        self.kind, self.edges = relations()

    def forward(self, x, _):
        out = x @ self.root + self.bias
        for r, conv in enumerate(self.convs):
            dst, src = self.edges[:, self.kind == r]
            reached, dst = dst.unique(return_inverse=True)
            given = {"lin_l.weight": self.weight[r].T, "lin_r.weight": self.weight[3 + r].T}
            if len(reached) > 0:
                rows = torch.func.functional_call(conv, given, ((x, x[reached]), torch.stack([src, dst])))
                out = out.index_add(0, reached, rows)
        return out


class RGAT(torch.nn.Module):
    """Attention over relations by the equations of Busbridge et al., on dense matrices."""
    def __init__(self, i, o, heads, concat):
        super().__init__()
        self.heads, self.dim, self.concat = heads, o // heads if concat else o, concat
        self.root = torch.nn.Parameter(torch.randn(i, heads * self.dim))
        self.weight = torch.nn.Parameter(torch.randn(3, i, heads * self.dim))
        self.src, self.dst = (torch.nn.Parameter(torch.randn(3 * heads, self.dim)) for _ in range(2))
        self.bias = torch.nn.Parameter(torch.zeros(o))
        self.kind, self.edges = relations()

    def attend(self, x):
        g = (x @ self.weight).reshape(3, N, self.heads, self.dim)
        q, k = ((g * v.reshape(3, 1, self.heads, self.dim)).sum(3) for v in (self.dst, self.src))
        logit = F.leaky_relu(q[:, :, None] + k[:, None], 0.2)  # relation, destination, source, head
        there = torch.zeros(3, N, N, dtype=bool)
        there[self.kind, self.edges[0], self.edges[1]] = True
        logit = logit.masked_fill(~there[..., None], -torch.inf).transpose(0, 1).reshape(N, 3 * N, self.heads)
        alpha = torch.zeros_like(logit)
        some = there.any(0).any(1)
        alpha[some] = logit[some].softmax(1)
        return torch.einsum("irjh,rjhd->ihd", alpha.reshape(N, 3, N, self.heads), g)

    def forward(self, x, _):
        out = self.attend(x) + (x @ self.root).reshape(N, self.heads, self.dim)
        return (out.flatten(1) if self.concat else out.mean(1)) + self.bias


def check_rgat():
    """With one head, and one pair of vectors for all relations, it is PyTorch Geometric's RGATConv."""
    torch.manual_seed(5)
    ours, theirs, x = RGAT(FEATURES, 4, 1, True), RGATConv(FEATURES, 4, 3), torch.randn(N, FEATURES)
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
        ours.dst.copy_(theirs.q.T.expand(3, -1))
        ours.src.copy_(theirs.k.T.expand(3, -1))
        assert torch.allclose(ours.attend(x).flatten(1), theirs(x, ours.edges.flip(0), ours.kind) - theirs.bias)


class MLP(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = torch.nn.Linear(i, o)

    def forward(self, x, _):
        return self.lin(x)


class APPNP(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = torch.nn.Linear(i, o)
        self.propagation = Propagation(K=3, alpha=0.2)

    def forward(self, x, edges):
        return self.propagation(self.lin(x), edges)


class SIGN(torch.nn.Module):
    """Inputs of 0, 1 and 2 hops, a third of the output each."""
    def __init__(self, i, o):
        super().__init__()
        self.lin = torch.nn.Linear(3 * i, o // 3)
        self.lin.bias = torch.nn.Parameter(torch.zeros(o))

    def forward(self, x, edges):
        at, w = gcn_norm(edges, num_nodes=N)
        a = torch.zeros(N, N).index_put((at[1], at[0]), w, accumulate=True)
        pieces = self.lin.weight.chunk(3, dim=1)
        return torch.cat([x @ pieces[0].T, a @ x @ pieces[1].T, a @ a @ x @ pieces[2].T], dim=1) + self.lin.bias


def gin(i, o):
    return GINConv(torch.nn.Sequential(torch.nn.Linear(i, o), torch.nn.ReLU(), torch.nn.Linear(o, o)))


# model: layers, activation, and where this package's parameters are in the layer
MODELS = {
    "gcn": ([lambda i, o: GCNConv(i, o)] * 2, F.relu, {"nbr.weight": "lin.weight", "nbr.bias": "bias"}),
    "gcn-batch": ([lambda i, o: GCNConv(i, o, bias=False), lambda i, o: GCNConv(i, o)], F.relu, {"nbr.weight": "lin.weight", "nbr.bias": "bias"}),
    "sage": ([lambda i, o: SAGEConv(i, o)] * 2, F.relu,
             {"self.weight": "lin_r.weight", "nbr.weight": "lin_l.weight", "nbr.bias": "lin_l.bias"}),
    "sage-sum": ([lambda i, o: GraphConv(i, o)] * 2, F.relu,
                 {"self.weight": "lin_root.weight", "nbr.weight": "lin_rel.weight", "nbr.bias": "lin_rel.bias"}),
    # its projection keeps the width of the input, ours has the width of the output: one layer, where they agree
    "sage-pool": ([lambda i, o: SAGEConv(i, o, aggr="max", project=True)], F.relu,
                  {"pre.weight": "lin.weight", "pre.bias": "lin.bias", "self.weight": "lin_r.weight",
                   "nbr.weight": "lin_l.weight", "nbr.bias": "lin_l.bias"}),
    "gat": ([lambda i, o: GATConv(i, o // 2, heads=2), lambda i, o: GATConv(i, o, heads=3, concat=False)], F.elu,
            {"pre.weight": "lin.weight", "attention.src": "att_src", "attention.dst": "att_dst", "post.bias": "bias"}),
    "gatv2": ([lambda i, o: GATv2Conv(i, o // 2, heads=2), lambda i, o: GATv2Conv(i, o, heads=3, concat=False)], F.elu,
              {"pre.weight": "lin_l.weight", "pre.bias": "lin_l.bias", "dst.weight": "lin_r.weight", "dst.bias": "lin_r.bias",
               "attention.vector": "att", "post.bias": "bias"}),
    "gin": ([gin] * 2, F.relu, {"nbr.weight": "nn.0.weight", "nbr.bias": "nn.0.bias",
                                "post.weight": "nn.2.weight", "post.bias": "nn.2.bias"}),
    "rgcn": ([lambda i, o: RGCN(i, o, None)] * 2, F.relu,
             {"self.weight": "conv.root", "self.bias": "conv.bias", "nbr.weight": "conv.weight"}),
    "rgcn-bases": ([lambda i, o: RGCN(i, o, 2)] * 2, F.relu,
                   {"self.weight": "conv.root", "self.bias": "conv.bias", "nbr.bases": "conv.weight", "nbr.coefficients": "conv.comp"}),
    "rsage": ([RSAGE] * 2, F.relu, {"self.weight": "root", "self.bias": "bias", "nbr.weight": "weight"}),
    "rgat": ([lambda i, o: RGAT(i, o, 2, True), lambda i, o: RGAT(i, o, 3, False)], F.elu,
             {"self.weight": "root", "attention.weight": "weight", "attention.dst": "dst", "attention.src": "src", "post.bias": "bias"}),
    "appnp": ([APPNP] * 2, F.relu, {"pre.weight": "lin.weight", "pre.bias": "lin.bias"}),
    "sign": ([SIGN, MLP], F.relu, {"self.weight": "lin.weight", "self.bias": "lin.bias"}),
    "mlp": ([MLP] * 2, F.relu, {"self.weight": "lin.weight", "self.bias": "lin.bias"}),
}


def typed(model):
    return model.startswith(("rgcn", "rsage", "rgat"))


def ours(model, name, p):
    """p in this package's shape: weights are in×out, vectors are rows, attention is heads×dim."""
    if name.endswith("weight") and not typed(model):
        return p.T
    return p.reshape(-1, p.shape[-1])


def write(f, name, m):
    m = m.reshape(1, -1) if m.dim() < 2 else m
    print(name, *m.shape, file=f)
    for row in m.tolist():
        print(*(f"{v:.9g}" for v in row), file=f)


def run(model):
    torch.manual_seed(2)
    make, act, names = MODELS[model]
    widths = [FEATURES] + [HIDDEN] * (len(make) - 1) + [CLASSES if len(make) > 1 else FEATURES]
    edges, x, y = graph()
    layers = torch.nn.ModuleList(m(widths[k], widths[k + 1]) for k, m in enumerate(make))
    batch = model.endswith("-batch")
    norms = torch.nn.ModuleList((torch.nn.BatchNorm1d if batch else torch.nn.LayerNorm)(w) for w in widths[1:-1])
    params = {}
    for k, layer in enumerate(layers):
        here = dict(layer.named_parameters())
        for our, theirs in names.items():
            if theirs in here:
                params[f"layer{k + 1}.{our}"] = here[theirs]
    for k, norm in enumerate(norms):
        params[f"layer{k + 1}.norm.gain"], params[f"layer{k + 1}.norm.bias"] = norm.weight, norm.bias
    running = {f"layer{k + 1}.norm.{our}": getattr(norm, theirs) for k, norm in enumerate(norms) if batch
               for our, theirs in (("mean", "running_mean"), ("variance", "running_var"))}
    for p in running.values():
        p.add_(torch.linspace(0.1, 0.5, len(p)))
    begun = [p.clone() for p in running.values()]
    with torch.no_grad():  # off their initial values, which are 0 and 1 for some
        for p in params.values():
            p.add_(0.2 * torch.randn_like(p))
    start = [p.detach().clone() for p in params.values()]
    weight = torch.linspace(0.5, 1.5, widths[-1])

    def scores():
        h = x
        for k, layer in enumerate(layers):
            h = layer(h, edges)
            if k < len(layers) - 1:
                h = act(norms[k](h))
        return h

    def loss(s):
        return F.cross_entropy(s, y, weight=weight, ignore_index=-1)

    with open(f"{model}.golden", "w") as f:
        for name, m in ("edges", edges), ("x", x), ("labels", y), ("class weights", weight):
            write(f, name, m)
        if typed(model):
            kind, ends = relations()
            write(f, "typed edges", torch.cat([kind[None], ends]))
        s = scores()
        loss(s).backward()
        for name, p in params.items():
            write(f, "value " + name, ours(model, name, p.detach()))
            write(f, "grad " + name, ours(model, name, p.grad))
        write(f, "scores", s.detach())
        if batch:
            for (name, p), v in zip(running.items(), begun):
                write(f, "value " + name, v)
                write(f, "settled " + name, p)
            norms.eval()
            write(f, "inferred", scores().detach())
            norms.train()
        for name, opt in (
            ("adam", torch.optim.Adam(params.values(), lr=0.01, weight_decay=5e-4)),
            ("sgd", torch.optim.SGD(params.values(), lr=0.1, momentum=0.9, weight_decay=5e-4)),
        ):
            with torch.no_grad():
                for p, v in zip([*params.values(), *running.values()], start + begun):
                    p.copy_(v)
            losses = []
            for _ in range(5):
                opt.zero_grad()
                value = loss(scores())
                losses.append(value.detach())
                value.backward()
                opt.step()
            losses.append(loss(scores()).detach())
            write(f, "loss " + name, torch.stack(losses))
            if name == "adam":
                for key, p in (params | running).items():
                    write(f, "after " + key, ours(model, key, p.detach()))


def correct_and_smooth():
    edges, _, y = graph()
    torch.manual_seed(4)
    scores = 2 * torch.randn(N, CLASSES)
    train = (y >= 0) & (torch.arange(N) % 3 == 0)
    post = CorrectAndSmooth(6, 0.9, 6, 0.7)
    soft = post.correct(scores.softmax(dim=1), y[train], train, edges)
    out = post.smooth(soft, y[train], train, edges).clamp(min=1e-9)
    with open("correct_smooth.golden", "w") as f:
        for name, m in (("edges", edges), ("scores", scores), ("class", torch.where(train, y, -1)),
                        ("shares", (out / out.sum(dim=1, keepdim=True)).log())):
            write(f, name, m)


RUNS = {name: (lambda name=name: run(name)) for name in MODELS} | {"correct_smooth": correct_and_smooth}
check_rgat()
for name in sys.argv[1:] or RUNS:
    RUNS[name]()
