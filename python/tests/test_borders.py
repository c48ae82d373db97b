"""Border cases of data from Python: what each is read as, or the error that refuses it."""

import re

import numpy as np
import pytest
from test_heddle import QUICK, masks, small

import heddle
from heddle._graph import graph_of

pandas, torch, geometric, sparse = (lambda name=name: pytest.importorskip(name) for name in ("pandas", "torch", "torch_geometric.data", "scipy.sparse"))
G = small()
C = np.array(["a", "b", "c"])[G.y]


def trained(y=None, **more):
    """Returns the names of classes, and whether predictions have the type and the values of y."""
    y = G.y if y is None else y
    run = heddle.train(heddle.Graph(**{**dict(edge_index=G.edge_index, y=y, x=G.x, site=G.site), **more}), progress=False, **QUICK)
    found = run.predict()
    return run.metrics["metric"], run.classes, str(found.dtype) if found.dtype != object else sorted({type(v).__name__ for v in found})


def labels(kind):
    return {
        "uint8 with gaps": lambda: (G.y * 10).astype(np.uint8),
        "bool tensor": lambda: torch().tensor(G.y == 1),
        "object with None": lambda: np.where(G.y == 2, None, C.astype(object)),
        "Int64 with NA": lambda: pandas().Series(np.where(G.y == 2, np.nan, G.y)).astype("Int64"),
        "categorical": lambda: pandas().Series(pandas().Categorical(C)),
        "texts with ''": lambda: np.where(G.y == 2, "", C),
        "-1 beside four": lambda: np.where(np.arange(240) % 9 == 0, -1, G.y + (np.arange(240) % 2 == 0) * (G.y == 2)),
        "-1 beside two": lambda: np.where(G.y == 2, -1, G.y),
        "float with NaN": lambda: np.where(np.arange(240) % 9 == 0, np.nan, G.x @ np.arange(12) + G.y),
        "bfloat16": lambda: torch().tensor(G.x @ np.arange(12)).bfloat16(),
        "two columns of 0 and 1": lambda: np.stack([G.y == 1, G.x[:, 0] > 0], 1),
    }[kind]()


@pytest.mark.parametrize(
    "kind, want",
    [
        ("uint8 with gaps", ("accuracy", ["0", "10", "20"], "uint8")),
        ("bool tensor", ("accuracy", ["0", "1"], "bool")),
        ("object with None", ("accuracy", ["a", "b"], "<U1")),
        ("Int64 with NA", ("accuracy", ["0", "1"], "int64")),
        ("categorical", ("accuracy", ["a", "b", "c"], "<U1")),
        ("texts with ''", ("accuracy", ["a", "b"], "<U1")),
        ("-1 beside four", ("accuracy", ["0", "1", "2", "3"], "int64")),
        ("-1 beside two", r"y: -1 together with 0, 1 may be a class or no label .*for no label names of the other classes \(class_names\)"),
        ("float with NaN", ("r2", ["0"], "float32")),
        ("bfloat16", ("r2", ["0"], "float32")),
        ("two columns of 0 and 1", ("micro-f1", ["0", "1"], "bool")),
    ],
)
def test_labels(kind, want):
    shown(lambda: trained(labels(kind)), want)


def shown(of, want):
    """Compares what `of` returns with a value, or the text of its InputError with a pattern."""
    if isinstance(want, str):
        with pytest.raises(heddle.InputError) as caught:
            of()
        assert re.search(want, str(caught.value)), caught.value
        assert not re.search(r"--|/tmp|\.npz|\.csv", str(caught.value)), caught.value
    else:
        assert of() == want


def adjacency(kind):
    dense = np.zeros((240, 240), np.float32)
    dense[tuple(G.edge_index)] = 2
    a = {
        "dense with weights": lambda: dense,
        "dense of bools": lambda: dense > 0,
        "scipy": lambda: sparse().csr_array(dense),
        "torch csr": lambda: torch().tensor(dense).to_sparse_csr(),
        "torch coo": lambda: torch().tensor(dense).to_sparse(),
        "wrong shape": lambda: sparse().csr_array(dense[1:, 1:]),
    }[kind]()
    g = heddle.Graph(a, G.y, G.x)
    assert {tuple(p) for p in g.edge_index.T} == {tuple(p) for p in G.edge_index.T}
    return None if g.edge_weight is None else float(g.edge_weight[0])


@pytest.mark.parametrize(
    "kind, want",
    [
        ("dense with weights", 2.0),
        ("dense of bools", None),
        ("scipy", 2.0),
        ("torch csr", 2.0),
        ("torch coo", 2.0),
        ("wrong shape", r"the adjacency matrix must be \[N, N\] of 240 nodes \(got \[239, 239\]\)"),
    ],
)
def test_adjacency(kind, want):
    shown(lambda: adjacency(kind), want)


def networks(kind):
    networkx = pytest.importorskip("networkx")
    g = networkx.path_graph(60)
    for i in g:
        g.nodes[i].update(label="ab"[i % 2], age=20 + i, ward="north" if i % 3 else "south")
    if kind == "some without a value":
        del g.nodes[5]["age"], g.nodes[6]["ward"]
        run = heddle.train(g, 1, progress=False, **QUICK)
        import json

        return [(c["kind"], c["missing"]) for c in json.loads((run._data / "import.json").read_text())["columns"]]
    if kind == "directed":
        return graph_of(networkx.DiGraph(g))
    for i in g:
        g.nodes[i]["x"] = [float(i)]
    if kind == "texts of edges beside x":
        networkx.set_edge_attributes(g, "card", "kind")
    else:
        networkx.set_edge_attributes(g, {(3, 4): 2.0}, "fee")
    return graph_of(g)


@pytest.mark.parametrize(
    "kind, want",
    [
        ("some without a value", [("numeric", 1), ("categorical", 1)]),
        ("directed", r"must have edges without direction, .*got a DiGraph\): give networkx.Graph\(g\)"),
        ("texts of edges beside x", r"every edge must have kind of some numbers if nodes have x, .*edge 0 has 'card'"),
        ("edges without a number beside x", r"every edge must have fee of some numbers if nodes have x, .*edge 0 has None"),
    ],
)
def test_networkx(kind, want):
    shown(lambda: networks(kind), want)


def others(kind):
    if kind == "no edges":
        return graph_of(geometric().Data(x=torch().tensor(G.x), y=torch().tensor(G.y))).edge_index.shape
    if kind == "no nodes":
        return heddle.Graph(np.zeros((2, 0)), [])
    if kind == "x of bfloat16":
        return heddle.Graph(G.edge_index, G.y, torch().tensor(G.x).bfloat16()).x.dtype == np.float32
    if kind in ("x as torch csr", "x as scipy with entries twice"):
        twice = sparse().coo_array((np.full(2 * int(G.x.sum()), 0.5), np.hstack([np.nonzero(G.x)] * 2)), G.x.shape)
        got = heddle.Graph(G.edge_index, G.y, torch().tensor(G.x).to_sparse_csr() if "torch" in kind else twice).x.toarray()
        return bool((got == G.x).all())
    if kind == "masks of 0.0 and 1.0":
        return trained(**{f"{k}_mask": m.astype(float) for k, m in zip(("train", "val", "test"), masks(G.y))})[:1]
    if kind == "masks that share a node":
        return trained(train_mask=G.y >= 0, test_mask=G.y == 1)
    frame, index = pandas().DataFrame, pandas().Index(range(60), name="id")
    nodes = frame({"age": np.arange(60) % 50, "ward": ["n", "s", "s"] * 20, "c": ["ill", "well"] * 30}, index=index)
    edges = frame({"source": range(59), "target": range(1, 60)})
    if kind == "a label of a name twice":
        return heddle.train(heddle.Tables(nodes.reset_index().assign(id=[1, 1, *range(2, 60)]), edges, "c"), 1, progress=False)
    run = heddle.train(heddle.Tables(nodes, edges, "c"), 1, progress=False, **QUICK)
    new = frame({"id": ["p", "q"], "age": [None, 31], "ward": ["s", "elsewhere"]})
    return run.predict_proba(heddle.Tables(new, frame({"source": ["p"], "target": ["q"]}))).shape


@pytest.mark.parametrize(
    "kind, want",
    [
        ("no edges", (2, 0)),
        ("no nodes", r"a graph must have at least one node \(got none\)"),
        ("x of bfloat16", True),
        ("x as torch csr", True),
        ("x as scipy with entries twice", True),
        ("masks of 0.0 and 1.0", ("accuracy",)),
        ("masks that share a node", r"test_mask: node \d+ is in train_mask too"),
        ("a label of a name twice", r"nodes, row 1, column id: node \"1\" occurs in row 0 already"),
        ("new rows with gaps and without labels", (2, 2)),
    ],
)
def test_others(kind, want):
    shown(lambda: others(kind), want)


@pytest.mark.parametrize("sites, want", [(-1, "-1"), (0, "0"), (2.0, "2.0"), (True, "True"), (2, 2), (np.int64(2), 2), (G.site % 2, 2), ("series", 2)])
def test_sites(sites, want):
    if isinstance(sites, str):
        sites = pandas().Series(np.array(["north", "south"])[G.site % 2])
    if isinstance(want, str):
        with pytest.raises(heddle.InputError, match=rf"sites must be a number of peers from 1 on, .*\(got {want}\)"):
            heddle.train(G, sites, progress=False)
    else:
        assert heddle.train(G, sites, progress=False, **QUICK).metrics["peers"] == want


def test_classifier_edges():
    pytest.importorskip("sklearn")
    model = heddle.HeddleClassifier(plan=QUICK).fit(G.x, G.y, G.edge_index)
    with pytest.raises(ValueError, match="A must be the edges of X, since fit had some"):
        model.predict(G.x)
    with pytest.raises(heddle.InputError, match=r"adjacency matrix must be \[N, N\] of 240 nodes"):
        heddle.HeddleClassifier(plan=QUICK).fit(G.x, G.y, np.zeros((5, 5)))
