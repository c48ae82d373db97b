# Trains GraphSAGE with DistDGL itself on two machines, each a network namespace of its own with a server and a trainer, and
# counts what crosses the link between them. Arguments: a folder with the in-edges as raw numbers (indptr int64, indices
# int32), the training nodes (train int32) and the owner of each node (owner int32), columns of features, fan-outs from the
# seeds outward, labels a step of both trainers together, columns of hidden layers, epochs. It needs root.
import json, os, subprocess, sys, time
import numpy, torch, dgl

folder, columns, fanouts, step, hidden, epochs = sys.argv[1], int(sys.argv[2]), [int(k) for k in sys.argv[3].split(",")], int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
role = sys.argv[7] if len(sys.argv) > 7 else ""
config, hosts = os.path.join(folder, "parts", "drawn.json"), os.path.join(folder, "hosts")
numbers = lambda name, kind: torch.from_numpy(numpy.fromfile(os.path.join(folder, name), dtype=kind))


def partition():
    indptr, indices, train, owner = numbers("indptr", "int64"), numbers("indices", "int32").long(), numbers("train", "int32").long(), numbers("owner", "int32").long()
    n = len(indptr) - 1
    g = dgl.graph(("csc", (indptr, indices, [])), num_nodes=n, idtype=torch.int64)
    g = dgl.graph(g.edges(), num_nodes=n)
    g.ndata["x"], g.ndata["y"] = torch.rand(n, columns), torch.randint(0, 2, (n,))
    g.ndata["train"] = torch.zeros(n, dtype=torch.bool)
    g.ndata["train"][train] = True
    # the parts are those of the other program: partition_graph takes an assignment of nodes only from METIS
    sys.modules["dgl.distributed.partition"].metis_partition_assignment = lambda *a, **k: owner
    dgl.distributed.partition_graph(g, "drawn", 2, os.path.join(folder, "parts"), part_method="metis", num_hops=1)


def sent():
    with open("/sys/class/net/dgl0/statistics/tx_bytes") as f, open("/sys/class/net/dgl0/statistics/rx_bytes") as h:
        return int(f.read()) + int(h.read())


def processor(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def trainer(rank):
    dgl.distributed.initialize(hosts)
    torch.distributed.init_process_group("gloo", init_method="tcp://10.78.0.1:29500", rank=rank, world_size=2)
    g = dgl.distributed.DistGraph("drawn", part_config=config)
    seeds = dgl.distributed.node_split(g.ndata["train"], g.get_partition_book(), force_even=True)
    layers = [columns] + [hidden] * (len(fanouts) - 1) + [2]
    model = torch.nn.ModuleList(dgl.nn.SAGEConv(a, b, "mean") for a, b in zip(layers, layers[1:]))
    model = torch.nn.parallel.DistributedDataParallel(model)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = dgl.dataloading.DistNodeDataLoader(g, seeds, dgl.dataloading.NeighborSampler(fanouts[::-1]), batch_size=step // 2, shuffle=True)
    for epoch in range(epochs):
        torch.distributed.barrier()
        took = lambda: processor(os.getpid()) + processor(os.environ["DGL_SERVER_PID"])
        begin, spent, before = time.time(), took(), sent()
        for first, of, blocks in loader:
            h = g.ndata["x"][first]
            for k, (layer, block) in enumerate(zip(model.module, blocks)):
                h = layer(block, h)
                h = torch.relu(h) if k < len(layers) - 2 else h
            loss = torch.nn.functional.cross_entropy(h, g.ndata["y"][of])
            adam.zero_grad()
            loss.backward()
            for p in model.module.parameters():  # the layers are called by themselves, so the sum is, too
                torch.distributed.all_reduce(p.grad)
                p.grad /= 2
            adam.step()
        torch.distributed.barrier()
        wall, of = time.time() - begin, torch.tensor(took() - spent)
        torch.distributed.all_reduce(of)
        if rank == 0:
            print("epoch", wall, of.item(), (sent() - before) / 1e6, flush=True)


def machines():
    ip = lambda *words: subprocess.run(["ip", *words], check=True)
    spaces = [f"heddle-dgl-{os.getpid()}-{k}" for k in range(2)]
    running = []
    try:
        for k, space in enumerate(spaces):
            ip("netns", "add", space)
        ip("link", "add", "dgl0", "netns", spaces[0], "type", "veth", "peer", "name", "dgl0", "netns", spaces[1])
        for k, space in enumerate(spaces):
            ip("-n", space, "addr", "add", f"10.78.0.{k + 1}/24", "dev", "dgl0")
            ip("-n", space, "link", "set", "dgl0", "up")
            ip("-n", space, "link", "set", "lo", "up")
        with open(hosts, "w") as f:
            f.write("10.78.0.1 30050\n10.78.0.2 30050\n")
        for k, space in enumerate(spaces):  # each with shared memory of its own
            line = ["ip", "netns", "exec", space, "unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh", sys.executable, os.path.abspath(__file__), *sys.argv[1:7], f"machine{k}"]
            running.append(subprocess.Popen(line))
        for p in running:
            if p.wait(timeout=540) != 0:
                raise SystemExit("a process of DistDGL failed")
    finally:
        for p in running:
            p.poll() is None and p.kill()
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space])


def machine(rank):
    shared = dict(os.environ, DGL_DIST_MODE="distributed", DGL_IP_CONFIG=hosts, DGL_NUM_SERVER="1", DGL_NUM_SAMPLER="0", DGL_NUM_CLIENT="2", DGL_CONF_PATH=config, DGL_SERVER_ID=rank,
                  DGL_GRAPH_FORMAT="csc", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="dgl0", TP_SOCKET_IFNAME="dgl0")
    start = lambda what, **more: subprocess.Popen([sys.executable, os.path.abspath(__file__), *sys.argv[1:7], what + rank], env=dict(shared, DGL_ROLE=what, **more))
    server = start("server")
    both = [server, start("client", DGL_SERVER_PID=str(server.pid))]
    while all(p.poll() in (None, 0) for p in both) and any(p.poll() is None for p in both):
        time.sleep(0.1)
    failed = any(p.poll() for p in both)
    for p in both:
        p.poll() is None and p.kill()
    raise SystemExit(failed)


if role.startswith("server"):
    dgl.distributed.initialize(hosts)
elif role.startswith("client"):
    trainer(int(role[-1]))
elif role.startswith("machine"):
    machine(role[-1])
else:
    partition()
    machines()
