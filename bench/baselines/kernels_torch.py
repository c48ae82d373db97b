"""The baselines of `bench kernels`: PyTorch, OpenBLAS through NumPy, and DGL where it is installed. Reads lines from standard input:

    setup KIND ARGUMENTS   prepares work like Heddle's and answers with the engines that can do it
    run ENGINE             does it, short work again and again, and answers with the seconds of one run
"""
import os
os.environ.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")  # a core it may not know gets AVX2 only
import sys, time, warnings
import numpy as np
import torch
import torch.nn.functional as F

try:
    os.environ.setdefault("DGLBACKEND", "pytorch")
    import dgl
except ImportError:
    dgl = None

warnings.filterwarnings("ignore")
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
rng = np.random.default_rng(1)
clock = time.process_time if os.environ.get("HEDDLE_CLOCK") == "processor" else time.perf_counter


def values(*shape):
    return rng.random(shape, dtype=np.float32) * 2 - 1


def gemm(form, m, n, k):
    a, b, c = values(k, m) if form == "TN" else values(m, k), values(k, n), np.empty((m, n), np.float32)
    ta, tb, tc = torch.from_numpy(a), torch.from_numpy(b), torch.from_numpy(c)
    if form == "TN":
        a, ta = a.T, ta.T
    if form == "NT":
        b = values(n, k)
        b, tb = b.T, torch.from_numpy(b).T
    return {"torch": lambda: torch.mm(ta, tb, out=tc), "openblas": lambda: np.matmul(a, b, out=c)}


def spmm(nodes, degree, power, n):
    col = (rng.random(nodes * degree) ** power * nodes).astype(np.int64)
    return product(torch.arange(nodes + 1) * degree, torch.from_numpy(col), torch.from_numpy(values(len(col))), n)


def spmmof(path, n):
    """The neighbour sums of a data set, made symmetric and with self-loops."""
    z = np.load(path)
    (src, dst), nodes = z["edge_index"].astype(np.int64), int(z["x_shape"][0] if "x_shape" in z else len(z["x"]))
    loop = np.arange(nodes)
    row, col = np.concatenate([src, dst, loop]), np.concatenate([dst, src, loop])
    pairs = np.unique(row * nodes + col)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(pairs // nodes, minlength=nodes))])
    return product(torch.from_numpy(ptr), torch.from_numpy(pairs % nodes), torch.from_numpy(values(len(pairs))), n)


def product(ptr, col, val, n):
    nodes = len(ptr) - 1
    narrow = [v.to(torch.int32) for v in (ptr, col)]  # MKL's own index type: no conversion at each product
    s = torch.sparse_csr_tensor(*narrow, val, (nodes, nodes))
    x = torch.from_numpy(values(nodes, n))
    all = {"torch": lambda: s @ x}
    if dgl:
        g = dgl.graph(("csc", (ptr, col, [])), num_nodes=nodes)
        all["dgl"] = lambda: dgl.ops.u_mul_e_sum(g, x, val)
    return all


def gat(nodes, degree, power, heads, dim):
    """PyTorch Geometric's layer, where it is installed."""
    try:
        from torch_geometric.nn import GATConv
    except ImportError:
        return {}
    src = torch.from_numpy((rng.random(nodes * degree) ** power * nodes).astype(np.int64))
    edges = torch.stack([src, torch.arange(nodes).repeat_interleave(degree)])
    x = torch.from_numpy(values(nodes, 64)).requires_grad_()
    conv = GATConv(64, dim, heads, dropout=0.6, add_self_loops=False)

    @torch.enable_grad()
    def both():
        conv(x, edges).sum().backward()
    return {"torch": both}


def axpy(n):
    x, y = torch.from_numpy(values(n)), torch.from_numpy(values(n))
    return {"torch": lambda: y.add_(x, alpha=1e-3)}


def adam(n):
    p = torch.from_numpy(values(n)).requires_grad_()
    p.grad = torch.from_numpy(values(n))
    step = torch.optim.Adam([p], lr=1e-3, fused=True)
    return {"torch": step.step}


def layernorm(rows, n):
    x, g = torch.from_numpy(values(rows, n)), torch.from_numpy(values(n))
    return {"torch": lambda: torch.native_layer_norm(x, (n,), g, g, 1e-5)}


def layernormgrad(rows, n):
    x, dy, g = torch.from_numpy(values(rows, n)), torch.from_numpy(values(rows, n)), torch.from_numpy(values(n))
    _, mean, inv = torch.native_layer_norm(x, (n,), g, g, 1e-5)
    return {"torch": lambda: torch.ops.aten.native_layer_norm_backward(dy, x, (n,), mean, inv, g, g, [True, True, True])}


def softmax(rows, n):
    x = torch.from_numpy(values(rows, n))
    y = torch.empty_like(x)
    return {"torch": lambda: torch.softmax(x, 1, out=y)}


def entropy(rows, n):
    x, y = torch.from_numpy(values(rows, n)).requires_grad_(), torch.arange(rows) % n

    @torch.enable_grad()
    def both():
        x.grad = None
        F.cross_entropy(x, y, reduction="sum").backward()
    return {"torch": both}


def dropout(n):
    x = torch.from_numpy(values(n))
    return {"torch": lambda: F.dropout(x, 0.5)}


def tobf16(n):
    x, y = torch.from_numpy(values(n)), torch.empty(n, dtype=torch.bfloat16)
    return {"torch": lambda: y.copy_(x)}


blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
print(f"torch {torch.__version__} ({torch.get_num_threads()} threads), numpy {np.__version__} with {blas['name']} {blas['version']}" + (f", dgl {dgl.__version__}" if dgl else ""), flush=True)
engines = {}
for line in sys.stdin:
    what, *rest = line.split()
    if what == "setup":
        kind, *args = rest
        engines = globals()[kind](*[int(a) if a.isdigit() else a for a in args])
        with torch.no_grad():
            for f in engines.values():
                f()
        print(*engines, flush=True)
    else:
        with torch.no_grad():
            f, runs = engines[rest[0]], 0
            f()  # wakes what sleeps
            start = clock()
            while runs == 0 or clock() - start < 0.01:
                f()
                runs += 1
            print((clock() - start) / runs, flush=True)
