# Times DGL's samplers, and GraphBolt's where it is there: a folder with the in-edges as raw numbers (indptr int64, indices
# int32) and the seeds (order int32), fan-outs from the seeds outward, batches a turn, turns. With a sixth argument, the
# columns of features, it times training epochs of GraphSAGE with DGL's DataLoader instead of the samplers: in one
# process, and with a worker that samples, bound to the first core, and training bound to the second. That is the least
# that ARGO chooses for a process; it starts two at least, so it takes four cores.
import sys, time, os, resource
from contextlib import nullcontext
import numpy, torch, dgl
folder, batches, turns = sys.argv[1], int(sys.argv[3]), int(sys.argv[4])
fanouts = [int(k) for k in sys.argv[2].split(",")]
numbers = lambda name, kind: torch.from_numpy(numpy.fromfile(os.path.join(folder, name), dtype=kind))
indptr, indices, order = numbers("indptr", "int64"), numbers("indices", "int32").long(), numbers("order", "int32").long()
n = len(indptr) - 1
g = dgl.graph(("csc", (indptr, indices, [])), num_nodes=n, idtype=torch.int64)


def row(name, threads, best):
    took, edges, inputs = best
    print("row", f"{name}", threads, 1000 * batches / took, edges / took / 1e6, edges / batches, inputs / batches, flush=True)


def fastest(f):
    all = [f() for _ in range(turns + 1)]
    return min(all[1:])


def sampled(sampler):
    def turn():
        begin, edges, inputs = time.process_time(), 0, 0
        for i in range(batches):
            first, _, blocks = sampler.sample_blocks(g, order[i * 1000:(i + 1) * 1000])
            edges += sum(b.num_edges() for b in blocks)
            inputs += len(first)
        return time.process_time() - begin, edges, inputs
    return turn


def bolted(kind):
    import dgl.graphbolt as gb
    graph = gb.fused_csc_sampling_graph(indptr, indices)

    def turn():
        items = gb.ItemSampler(gb.ItemSet(order[:batches * 1000], names="seed_nodes"), batch_size=1000)
        pipe = getattr(items, kind)(graph, fanouts[::-1])
        begin, edges, inputs = time.process_time(), 0, 0
        for batch in gb.DataLoader(pipe, num_workers=0):
            edges += sum(len(s.sampled_csc.indices) for s in batch.sampled_subgraphs)
            inputs += len(batch.input_nodes)
        return time.process_time() - begin, edges, inputs
    return turn


def processor_time():
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)  # the worker ends with its epoch
    return time.process_time() + ended.ru_utime + ended.ru_stime


def epochs(columns, bound=False, hidden=256, classes=47):
    x = torch.rand(n, columns)
    y = torch.randint(0, classes, (n,))
    sampler = dgl.dataloading.NeighborSampler(fanouts[::-1])
    layers = [columns] + [hidden] * (len(fanouts) - 1) + [classes]
    model = torch.nn.ModuleList(dgl.nn.SAGEConv(a, b, "mean") for a, b in zip(layers, layers[1:]))
    adam = torch.optim.Adam(model.parameters(), lr=0.01)

    def turn():
        loader = dgl.dataloading.DataLoader(g, order[:batches * 1000], sampler, batch_size=1000, shuffle=True,
                                            num_workers=int(bound))
        begin, edges, inputs = processor_time(), 0, 0
        with loader.enable_cpu_affinity(loader_cores=[0], compute_cores=[1]) if bound else nullcontext():
            for first, seeds, blocks in loader:
                h = x[first]
                for k, (layer, block) in enumerate(zip(model, blocks)):
                    h = layer(block, h)
                    if k < len(model) - 1:
                        h = torch.relu(h)
                loss = torch.nn.functional.cross_entropy(h, y[seeds])
                adam.zero_grad()
                loss.backward()
                adam.step()
                edges += sum(b.num_edges() for b in blocks)
                inputs += len(first)
        return processor_time() - begin, edges, inputs
    return turn


for threads in (1, 2):
    torch.set_num_threads(threads)
    if len(sys.argv) > 5:
        row(f"DGL_{dgl.__version__},_DataLoader", threads, fastest(epochs(int(sys.argv[5]))))
        if threads == 2 and os.cpu_count() > 1 and hasattr(dgl.dataloading.DataLoader, "enable_cpu_affinity"):
            row(f"DGL_{dgl.__version__},_DataLoader,_bound", threads, fastest(epochs(int(sys.argv[5]), bound=True)))
        continue
    row(f"DGL_{dgl.__version__},_neighbour", threads, fastest(sampled(dgl.dataloading.NeighborSampler(fanouts[::-1]))))
    row(f"DGL_{dgl.__version__},_labor", threads, fastest(sampled(dgl.dataloading.LaborSampler(fanouts[::-1]))))
    try:
        kinds = {"neighbour": bolted("sample_neighbor"), "labor": bolted("sample_layer_neighbor")}
    except (ImportError, AttributeError, FileNotFoundError):  # there is none in DGL 1
        continue
    for name, turn in kinds.items():
        row(f"GraphBolt_{dgl.__version__},_{name}", threads, fastest(turn))
