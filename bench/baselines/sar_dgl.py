"""Full-batch training by workers that are processes of their own, against SAR (github.com/IntelLabs/SAR, with DGL from pip,
gloo): the same parts of a graph, layers, widths, initial weights, dropout and Adam, over loopback, in turns. Before that each
trains three epochs without dropout, whose losses show that both compute the same.

    go build -o heddle ./cmd/heddle && go build -o peer ./cmd/peer
    python bench/baselines/generate.py drawn 20000 50 100 40
    python bench/baselines/sar_dgl.py --heddle ./heddle --peer ./peer --sar SAR --graph drawn --models sage,gcn,gat

An epoch's cost is the processor's time of all workers, the difference of a long and a short run; memory is the peak
resident size of all workers together (of a run's processes by getrusage), and what a worker of SAR has when it has
imported its libraries and read nothing. Needs torch, DGL 1.1.3, ifaddr and packaging in its interpreter, and a checkout
of SAR: commit 5309fed, after which its attention fails.
"""
import argparse, hashlib, json, multiprocessing, os, pathlib, resource, shutil, statistics, subprocess, sys, tempfile

HIDDEN = {"sage": 256, "gcn": 256, "gat": 64}
LAYERS = {"sage": 3, "gcn": 3, "gat": 2}


def worker(a):
    """Trains as one of SAR's workers."""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    import dgl
    from dgl.nn import GATConv, GraphConv, SAGEConv
    import sar
    from ours import fill, weights

    torch.set_num_threads(1)
    torch.manual_seed(1)
    sar.patch_dgl()
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(a.port), "GLOO_SOCKET_IFNAME": "lo", "SAR_SOCKET_NAME": "lo"}
    dist.init_process_group("gloo", rank=a.rank, world_size=a.workers)
    sar.initialize_comms(a.rank, a.workers, "127.0.0.1", "gloo")
    print("base", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, flush=True)

    part = sar.load_dgl_partition_data(a.json, a.rank, torch.device("cpu"))
    x, y, train = (sar.suffix_key_lookup(part.node_features, k) for k in ("feat", "/label", "train_mask"))
    y, train = y.long(), train.nonzero().view(-1)
    if a.model != "sage":  # every node is its own neighbour, which ours has without an edge
        own = part.all_shard_edges[a.rank]
        loop = torch.arange(*part.node_ranges[a.rank])
        edges = tuple(torch.cat([e, loop]) for e in own.edges)
        part.all_shard_edges[a.rank] = own._replace(edges=edges, edge_features={k: torch.cat([v, v.new_zeros(len(loop))]) for k, v in own.edge_features.items()})
    facts = torch.stack([y.max() + 1, torch.tensor(len(train))])
    dist.all_reduce(facts[:1], dist.ReduceOp.MAX)
    dist.all_reduce(facts[1:])
    classes, labels = facts.tolist()
    graph = sar.construct_full_graph(part)
    del part
    widths = [x.shape[1]] + [HIDDEN[a.model]] * (LAYERS[a.model] - 1) + [classes]
    make = {
        "sage": lambda i, o, last: SAGEConv(i, o, "mean"),
        "gcn": lambda i, o, last: GraphConv(i, o),
        "gat": lambda i, o, last: GATConv(i, o, 1, attn_drop=a.dropout) if last else GATConv(i, o // 8, 8, attn_drop=a.dropout),
    }[a.model]
    net = torch.nn.ModuleList(make(i, o, k == LAYERS[a.model] - 1) for k, (i, o) in enumerate(zip(widths, widths[1:])))
    w = weights(a.init)
    for k, conv in enumerate(net):
        fill(a.model, conv, lambda name: w[f"layer{k + 1}.{name}"], True)
    step = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(a.epochs):
        h = x
        for k, conv in enumerate(net):
            h = conv(graph, F.dropout(h, a.dropout)).flatten(1)
            if k < len(net) - 1:
                h = F.elu(h) if a.model == "gat" else F.relu(h)
        loss = F.cross_entropy(h[train], y[train], reduction="sum") / labels
        step.zero_grad()
        loss.backward()
        sar.gather_grads(net)
        step.step()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    dist.all_reduce(losses)
    print("losses", *(f"{v:.5f}" for v in losses.tolist()), flush=True)
    os._exit(0)  # its communication threads have no end of their own


def divided(graph, share, copy):
    """Copies a data set so that that share of its labelled nodes trains."""
    import numpy as np
    from ours import divide

    shutil.copytree(graph, copy)
    z = dict(np.load(copy / "graph.npz"))
    for k, nodes in divide(z, share).items():
        z[k + "_mask"] = np.isin(np.arange(len(z["y"])), nodes)
    np.savez(copy / "graph.npz", **z)


def run(commands, env):
    """Runs processes at once and returns their processor seconds, their peak bytes and what they printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    all = [subprocess.Popen(c, env=env, stdout=subprocess.PIPE, text=True) for c in commands]
    texts = [p.stdout.read() for p in all]
    peak = 0
    for p in all:
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode:
            sys.exit(f"{p.args} ended with {p.returncode}")
        peak += usage.ru_maxrss * 1024
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak, texts


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--heddle", default="./heddle", help="the program that cuts the graph and writes initial weights")
    p.add_argument("--peer", default="./peer", help="the program of a worker")
    p.add_argument("--sar", default="SAR")
    p.add_argument("--graph", default="drawn", help="a data set, as heddle partition reads it")
    p.add_argument("--models", default="sage,gcn,gat")
    p.add_argument("--epochs", type=int, default=10, help="by which the long run is longer than the short one, of 2")
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--dropout", type=float, default=0, help="of the rows that a layer reads, and of gat's attention")
    p.add_argument("--share", type=float, default=0, help="share of labelled nodes that train; 0: the data set's split")
    p.add_argument("--port", type=int, default=29400)
    p.add_argument("--fetch", default="auto", help="ours: sar, sa, oneshot or auto")
    p.add_argument("--worker", action="store_true")
    for name, kind in (("rank", int), ("json", str), ("init", str), ("model", str)):
        p.add_argument("--" + name, type=kind)
    a = p.parse_args()
    if a.worker:
        return worker(a)
    env = os.environ | {"PYTHONPATH": a.sar, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "GOMAXPROCS": "1", "DGLBACKEND": "pytorch"}
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        data = a.graph
        if a.share > 0:  # in a process of its own: what this one holds would count as its children's peak
            data = tmp / pathlib.Path(a.graph).name
            copy = multiprocessing.Process(target=divided, args=(a.graph, a.share, data))
            copy.start()
            copy.join()
        subprocess.run([a.heddle, "partition", "--data", data, "--parts", str(a.workers), "--policy", "multilevel", "--out", tmp / "parts"], **quiet)
        subprocess.run([a.heddle, "export", "--shards", tmp / "parts", "--out", tmp / "dgl"], **quiet)
        (partition,) = (tmp / "dgl").glob("*.json")
        (tmp / "secret").write_bytes(os.urandom(32))
        os.chmod(tmp / "secret", 0o600)

        def theirs(model, epochs, port, dropout):
            return run([[sys.executable, __file__, "--worker", "--rank", str(r), "--workers", str(a.workers), "--json", str(partition), "--model", model,
                         "--init", init(model), "--dropout", str(dropout), "--epochs", str(epochs), "--port", str(port)] for r in range(a.workers)], env)

        def plan(model, settings, hidden):
            """Writes a plan, whose settings of full-batch training are those and the hidden ones."""
            section = {"model": model, "layers": LAYERS[model], "hidden": HIDDEN[model], "decay": 0} | settings
            lines = [f"{k}: {v}" for k, v in section.items()] + ["experimental:"] + [f"  {k}: {v}" for k, v in hidden.items()]
            (tmp / "plan.yaml").write_text("\n  ".join(["method: full-batch\nrow_norm: none\ncarrier: tcp\nfull_batch:"] + lines) + "\n")

        def init(model):
            """The model file that both begin with: that of a step too small to change anything."""
            out = tmp / model
            if not out.exists():
                plan(model, {"lr": 1e-30, "rounds": 1}, {"eval_every": 1})
                subprocess.run([a.heddle, "train", "-q", "--shards", tmp / "parts", "--config", tmp / "plan.yaml", "--out", out], **quiet)
            return out / "model.safetensors"

        def ours(model, epochs, port, dropout):
            hidden = {"attention_dropout": dropout if model == "gat" else 0, "eval_every": 1000, "fetch": a.fetch}
            plan(model, {"dropout": dropout, "lr": 0.01, "rounds": epochs, "init": hashlib.sha256(init(model).read_bytes()).hexdigest()}, hidden)
            return run([[a.peer, "join", "-q", "--plan", tmp / "plan.yaml", "--init", init(model), "--events", tmp / f"events-{r}.jsonl", "--shard", tmp / "parts", "--secret", tmp / "secret", "--rank", str(r), "--ranks", str(a.workers),
                         "--hosts", ",".join(["127.0.0.1"] * a.workers), "--port", str(port), "--out", tmp / "out", "--json", tmp / "result.json"] for r in range(a.workers)], env)

        print("| model | SAR, processor ms an epoch | ours | × faster | SAR, MB of all workers | of which libraries | ours | ours of SAR's | of SAR's without its libraries |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        port = a.port
        for model in a.models.split(","):
            _, _, (text, *_) = theirs(model, 3, port, 0)
            want = [float(v) for v in text.split("losses ")[1].split()]
            ours(model, 3, port + 10, 0)
            got = [e["loss"] for e in map(json.loads, open(tmp / "events-0.jsonl")) if e.get("loss")]
            print("losses of", model, *want, "and ours", *(f"{v:.5f}" for v in got), file=sys.stderr)
            if len(got) != len(want) or any(abs(g - w) > 1e-4 * w for g, w in zip(got, want)):
                sys.exit(f"the losses of {model} differ")
            port += 20
            cost, peak, base = {theirs: [], ours: []}, {theirs: [], ours: []}, []
            for _ in range(a.turns):
                for f in (theirs, ours):
                    short, _, _ = f(model, 2, port, a.dropout)
                    long, most, texts = f(model, 2 + a.epochs, port + 10, a.dropout)
                    port += 20
                    cost[f].append(1e3 * (long - short) / a.epochs)
                    peak[f].append(most / 1e6)
                    if f is theirs:
                        base.append(sum(float(t.split("base ")[1].split()[0]) for t in texts) / 1e6)
            s, o, sm, om, b = (statistics.median(v) for v in (cost[theirs], cost[ours], peak[theirs], peak[ours], base))
            x = statistics.median(s / o for s, o in zip(cost[theirs], cost[ours]))
            print(f"| {model} | {s:.0f} | {o:.0f} | {x:.1f} | {sm:.0f} | {b:.0f} | {om:.0f} | {om / sm:.2f} | {om / (sm - b):.2f} |", flush=True)


main()
