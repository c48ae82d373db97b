"""Opens a partition with DGL and checks that its parts are the parts of one graph.

    DGLBACKEND=pytorch DGL_DIST_DEBUG=1 dgl/bin/python open.py OUT/NAME.json
"""
import json
import sys

import dgl
import torch
from dgl.distributed import load_partition

path = sys.argv[1]
parts = json.load(open(path))["num_parts"]
loaded = [load_partition(path, k) for k in range(parts)]
columns = lambda key: torch.cat([p[1]["_N/" + key] for p in loaded])

# The whole graph, from the inner edges of all parts.
src, dst, ids = [], [], []
for g, _, _, _, _, _, _ in loaded:
    inner = g.edata["inner_edge"].bool()
    s, d = g.edges()
    src.append(g.ndata[dgl.NID][s[inner]])
    dst.append(g.ndata[dgl.NID][d[inner]])
    ids.append(g.edata[dgl.EID][inner])
src, dst, ids = torch.cat(src), torch.cat(dst), torch.cat(ids)
assert torch.equal(ids, torch.arange(len(ids)))
nodes = len(columns("orig_id"))
assert torch.equal(torch.sort(columns("orig_id"))[0], torch.arange(nodes))
whole = dgl.graph((src, dst), num_nodes=nodes)

for k, (g, feats, edges, book, name, ntypes, etypes) in enumerate(loaded):
    own = book.partid2nids(k)
    inner = g.ndata["inner_node"].bool()
    assert torch.equal(g.ndata[dgl.NID][inner], own)
    assert all(len(v) == len(own) for v in feats.values())
    assert all(len(v) == int(g.edata["inner_edge"].sum()) for v in edges.values())
    # Halo and edges are those that DGL's own cut of the whole graph gives with one hop.
    s, d = whole.in_edges(own)
    out_s, out_d = whole.out_edges(own)
    near = torch.unique(torch.cat([s, out_d]))
    near = near[book.nid2partid(near) != k]
    assert torch.equal(torch.sort(g.ndata[dgl.NID][~inner])[0], near), "halo"
    assert torch.equal(g.ndata["part_id"], book.nid2partid(g.ndata[dgl.NID]))
    gs, gd = g.edges()
    a, b = g.ndata[dgl.NID][gs], g.ndata[dgl.NID][gd]
    ws, wd = whole.find_edges(g.edata[dgl.EID])
    assert torch.equal(a, ws) and torch.equal(b, wd), "edges"
    assert g.num_edges() == len(torch.unique(torch.cat([whole.in_edges(own, form="eid"), whole.out_edges(own, form="eid")]))), "number of edges"
    assert bool((g.edata["inner_edge"].bool() == inner[gd]).all())

# It computes: the mean of neighbours over the parts is that over the whole graph.
if "_N/feat" in loaded[0][1]:
    x = columns("feat")
    whole.ndata["x"] = x
    whole.update_all(dgl.function.copy_u("x", "m"), dgl.function.sum("m", "h"))
    for g, *_ in loaded:
        g.ndata["x"] = x[g.ndata[dgl.NID]]
        h = dgl.edge_subgraph(g, g.edata["inner_edge"].bool(), relabel_nodes=False)
        h.update_all(dgl.function.copy_u("x", "m"), dgl.function.sum("m", "h"))
        inner = g.ndata["inner_node"].bool()
        assert torch.allclose(h.ndata["h"][inner], whole.ndata["h"][g.ndata[dgl.NID][inner]])
print("opened by DGL", dgl.__version__, nodes, "nodes", len(ids), "edges", parts, "parts", sorted(loaded[0][1]))
