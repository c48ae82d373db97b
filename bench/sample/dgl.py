# Times DGL's samplers: nodes, edges, fan-outs from the seeds outward, batches a turn, turns.
import sys, time
import numpy, torch, dgl
n, m, batches, turns = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[4]), int(sys.argv[5])
fanouts = [int(k) for k in sys.argv[3].split(",")][::-1]  # DGL counts from the input
draw = numpy.random.default_rng(1)
src = (draw.random(m) ** 2 * n).astype(numpy.int64)
dst = draw.integers(0, n, m)
g = dgl.graph((torch.from_numpy(src), torch.from_numpy(dst)), num_nodes=n, idtype=torch.int64)
g = dgl.to_simple(g)
g.create_formats_()
order = torch.from_numpy(draw.permutation(n))
for threads in (1, 2):
    torch.set_num_threads(threads)
    for name, sampler in (("neighbour", dgl.dataloading.NeighborSampler(fanouts)), ("labor", dgl.dataloading.LaborSampler(fanouts))):
        best = None
        for turn in range(turns + 1):
            begin, edges, inputs = time.process_time(), 0, 0
            for i in range(batches):
                first, _, blocks = sampler.sample_blocks(g, order[i * 1000:(i + 1) * 1000])
                edges += sum(b.num_edges() for b in blocks)
                inputs += len(first)
            took = time.process_time() - begin
            if turn and (best is None or took < best[0]):
                best = took, edges, inputs
        took, edges, inputs = best
        print("row", f"DGL_{dgl.__version__},_{name}", threads, 1000 * batches / took, edges / took / 1e6, edges / batches, inputs / batches)
