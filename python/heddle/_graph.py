"""Graphs of other libraries, by their attributes, as the arrays that the program reads."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import mmap
import os
import pathlib
import tempfile
import zipfile
from typing import Any, Optional, Union

import numpy as np

from heddle import _program
from heddle._program import InputError


class SparseRows:
    """Sparse features [N, F] by rows, as scipy's csr_matrix has them: data, indices, indptr, shape."""

    def __init__(self, data: Any, indices: Any, indptr: Any, shape: Any):
        self.data, self.indices, self.indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
        self.shape = (int(shape[0]), int(shape[1]))

    def tocsr(self) -> "SparseRows":
        return self

    def toarray(self) -> np.ndarray:
        """Returns the features as a float32 array [N, F]."""
        x = np.zeros(self.shape, np.float32)
        x[np.repeat(np.arange(self.shape[0]), np.diff(self.indptr)), self.indices] = self.data
        return x


@dataclasses.dataclass
class Graph:
    """A graph of N nodes as arrays. NumPy arrays, torch tensors, scipy matrices and pandas columns are accepted.

    Attributes:
        edge_index: [2, E], sources and targets in 0..N-1, or an adjacency matrix [N, N], dense or sparse, whose values are
            weights. An edge has no direction and may be listed in one direction or both.
        y: [N], classes as whole numbers, bools or texts; None or NaN among objects, and an empty text: no label. -1 is no
            label beside 0..C-1 (docs/reference/graph-formats.md#labels). Floats are targets of a regression, NaN: no label,
            or with task="classification" classes. Or [N, C]: 0 and 1, any number of classes a node, or targets.
        x: [N, F], features, dense or sparse; None: nodes have no features.
        site: [N], the site that holds each node, as number or name; None: there are no sites.
        train_mask, val_mask, test_mask: [N] or [N, S]; all None: `train` draws them by `draw`.
        edge_weight: [E], above 0; None: all are 1.
        edge_type: [E], relation from 0, for models rgcn, rsage and rgat; None: edges have no types.
        edge_attr: [E, G], columns of edges, for models gine and gatv2; of a pair that is listed twice the first row counts.
            None: edges have none.
        ids: N names of nodes; None: their numbers.
        class_names, site_names, relation_names: names, in order.
        name: of the data set.
        draw: how the program draws masks: fractions of the labelled nodes of each class, and a seed.
    """

    edge_index: Any
    y: Any
    x: Any = None
    site: Any = None
    train_mask: Any = None
    val_mask: Any = None
    test_mask: Any = None
    edge_weight: Any = None
    edge_type: Any = None
    edge_attr: Any = None
    ids: Any = None
    class_names: Optional[list[str]] = None
    site_names: Optional[list[str]] = None
    relation_names: Optional[list[str]] = None
    name: str = "graph"
    draw: dict[str, Any] = dataclasses.field(default_factory=lambda: {"train": 0.6, "val": 0.2, "seed": 0})

    def __post_init__(self) -> None:
        if self.y is None:
            raise InputError("y must be the classes of nodes (got None)")
        self.y = array(self.y)
        if self.y.shape[:1] == (0,):
            raise InputError("a graph must have at least one node (got none)")
        if self.y.ndim == 2 and self.y.shape[1] == 1:
            self.y = self.y[:, 0]
        self.edge_index, weight = _pairs(self.edge_index, len(self.y))
        if self.edge_weight is None:
            self.edge_weight = weight
        self.edge_index = _numbers("edge_index", self.edge_index, whole=True)
        if self.edge_index.size == 0:
            self.edge_index = np.zeros((2, 0), np.int64)
        if self.site is not None:
            self.site, self.site_names = _named(self.site, self.site_names)
        for name in ("edge_weight", "edge_type"):
            if getattr(self, name) is not None:
                a = _numbers(name, getattr(self, name), whole=name == "edge_type")
                setattr(self, name, a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a)
        if self.edge_attr is not None:
            a = _numbers("edge_attr", self.edge_attr)
            self.edge_attr = np.ascontiguousarray(a[:, None] if a.ndim == 1 else a, np.float32)
        for name in ("train_mask", "val_mask", "test_mask"):
            if getattr(self, name) is not None:
                setattr(self, name, _mask(name, getattr(self, name)))
        if self.x is not None:
            self.x = _features(self.x)
        if self.ids is not None and len(self.ids) != len(self.y):
            raise InputError(f"ids must have a name for each of {len(self.y)} nodes (got {len(self.ids)})")

    def labels(self) -> tuple[np.ndarray, Any]:
        """Returns y, and the names that numbers in it have."""
        return self.y, self.class_names if self.y.dtype.kind in "iu" else None

    @property
    def num_nodes(self) -> int:
        return len(self.y)

    def arrays(self) -> dict[str, Any]:
        """Returns the arrays of graph.npz (docs/reference/graph-formats.md#npz)."""
        arrays: dict[str, Any] = {"edge_index": self.edge_index, "y": stored(self.y)}
        masks = {"train_mask": self.train_mask, "val_mask": self.val_mask, "test_mask": self.test_mask}
        arrays.update({name: m for name, m in masks.items() if m is not None and m.any()})
        if isinstance(self.x, np.ndarray):
            arrays["x"] = self.x
        elif self.x is not None:
            arrays["x_indptr"], arrays["x_indices"] = self.x.indptr.astype(np.int64), self.x.indices.astype(np.int32)
            arrays["x_data"], arrays["x_shape"] = self.x.data.astype(np.float32), np.array(self.x.shape, np.int64)
        if self.edge_weight is not None:
            arrays["edge_weight"] = self.edge_weight.astype(np.float32)
        if self.edge_type is not None:
            arrays["edge_type"] = self.edge_type.astype(np.int32)
        if self.edge_attr is not None:
            arrays["edge_attr"] = self.edge_attr
        if self.site is not None:
            arrays["client"] = self.site.astype(np.int32)
        if self.ids is not None:
            names = [str(one).encode() for one in self.ids]
            arrays["ids"] = np.frombuffer(b"".join(names), np.uint8)
            arrays["ids_indptr"] = np.cumsum([0] + [len(one) for one in names]).astype(np.int64)
        return arrays

    def write(self, directory: _program.Path, draw: bool = True) -> pathlib.Path:
        """Writes the graph as a data set of the program (graph.npz, meta.json) and returns the directory.

        Without masks the program draws them when it reads the data set; draw False: nodes are in no split.
        """
        to = pathlib.Path(directory)
        to.mkdir(parents=True, exist_ok=True)
        meta: dict[str, Any] = {"name": self.name, "class_names": self.class_names, "client_names": self.site_names}
        meta["relation_names"] = self.relation_names
        if draw and self.train_mask is None and self.val_mask is None and self.test_mask is None:
            meta["draw"] = self.draw
        np.savez(to / "graph.npz", **self.arrays())
        _seal(to / "graph.npz")
        (to / "meta.json").write_text(json.dumps({k: v for k, v in meta.items() if v}), encoding="utf-8")
        return to

    @classmethod
    def read(cls, directory: _program.Path) -> "Graph":
        """Reads a data set of the program: a directory with graph.npz, or the file itself."""
        at = pathlib.Path(directory)
        file = at if at.suffix == ".npz" else at / "graph.npz"
        beside = file.parent / "meta.json"
        meta = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}
        with np.load(file) as archive:
            z, sealed = dict(archive), archive.zip.comment
        if sealed and (digest := _digest(file)) != sealed:
            raise InputError(f"{file} is damaged or changed: its digest must be {digest.decode()} (got {sealed!r})")
        y, count, names = z["y"], meta.get("classes"), meta.get("class_names")
        if count and not names and y.ndim == 1 and y.dtype.kind in "iu" and not np.array_equal(np.unique(y), np.arange(count)):
            names = [str(c) for c in range(count)]  # so that -1 and gaps mean the same again
        x = z.get("x")
        if "x_indptr" in z:
            x = SparseRows(z["x_data"], z["x_indices"], z["x_indptr"], z["x_shape"])
        ids = None
        if "ids" in z:
            text, ptr = z["ids"].tobytes(), z["ids_indptr"]
            ids = [text[a:b].decode() for a, b in zip(ptr[:-1], ptr[1:])]
        return cls(
            z["edge_index"], y, x, z.get("client"), z.get("train_mask"), z.get("val_mask"), z.get("test_mask"),
            z.get("edge_weight"), z.get("edge_type"), _edge_attr(z), ids, names, meta.get("client_names"),
            meta.get("relation_names"), meta.get("name", at.stem),
        )  # fmt: skip


def _digest(file: pathlib.Path) -> bytes:
    """Returns what the comment of an archive must be."""
    with open(file, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m, memoryview(m) as all, all[:-65] as before:
        sum = hashlib.sha256(before)
        sum.update(b"0" * 64 + m[-1:])
        return b'"digest":"' + sum.hexdigest().encode() + b'"'


def _seal(file: pathlib.Path) -> None:
    """Writes the digest into an archive, as its comment."""
    with zipfile.ZipFile(file, "a") as z:
        z.comment = b'"digest":"' + b"0" * 64 + b'"'
    digest = _digest(file)
    with open(file, "r+b") as f:
        f.seek(-75, os.SEEK_END)
        f.write(digest)


@dataclasses.dataclass
class Tables:
    """Tables of nodes and edges, which `heddle import` reads: paths, data frames of pandas, polars or Arrow, or dicts of columns.

    Attributes:
        nodes: a row a node, with a column `id` and columns of features.
        edges: a row an edge, with columns `source` and `target`.
        label: column of a node's class; None: prediction needs none.
        site: column of the site that holds a node; None: there are no sites.
        options: further flags of `heddle import`, as `ignore=["name"]`.
    """

    nodes: Any
    edges: Any
    label: Optional[str] = None
    site: Optional[str] = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def write(self, directory: _program.Path, draw: bool = True) -> pathlib.Path:
        """Imports the tables as a data set of the program and returns its directory."""
        to = pathlib.Path(directory)
        to.mkdir(parents=True, exist_ok=True)
        given = {"label_column": self.label, "site_column": self.site, "seed": 0, **self.options, **self.files(to), "out": to / "graph"}
        _program.run(["import", *_program.flags(given)])
        return to / "graph"

    def files(self, to: pathlib.Path) -> dict[str, Any]:
        """Returns the tables as files, which it writes into a directory unless they are some, and how to read cells, as flags."""
        cells = ("delimiter", "encoding", "decimal_comma", "no_header", "missing", "on_error", "date")
        given = {k: v for k, v in self.options.items() if k in cells}
        return {"nodes": _table(self.nodes, to / "nodes.csv"), "edges": _table(self.edges, to / "edges.csv"), **given}

    def labels(self) -> tuple[Optional[np.ndarray], Any]:
        """Returns the column of labels, None for a file."""
        return None if self.label is None or isinstance(self.nodes, (str, os.PathLike)) else array(self.nodes[self.label]), None


def graph_of(data: Any, site: Any = None) -> Union[Graph, Tables]:
    """Returns data as a Graph or as Tables; `train` says what it may be.

    site is a node's site: an array [N], or the name of the attribute or column that has it.
    """
    name = site if isinstance(site, str) else None
    if isinstance(data, (Graph, Tables)):
        out: Union[Graph, Tables] = data
    elif isinstance(data, dict):
        known = [f.name for f in dataclasses.fields(Graph)]
        if more := [k for k in data if k not in known]:
            raise InputError(f"the arrays of a graph must be of {', '.join(known)} (got {more[0]!r})")
        if missing := [k for k in ("edge_index", "y") if k not in data]:
            raise InputError(f"a graph must have {missing[0]}")
        out = Graph(**data)
    elif hasattr(data, "node_types") and hasattr(data, "edge_types"):
        out = _from_hetero(data, name)
    elif hasattr(data, "ntypes") and hasattr(data, "ndata"):
        out = _from_dgl(data, name)
    elif hasattr(data, "nodes") and hasattr(data, "adj"):
        return _from_networkx(data, site)
    elif hasattr(data, "edge_index") or hasattr(data, "adj_t"):
        out = _from_pyg(data, name)
    else:
        kind = type(data)
        raise InputError(
            "data must be a PyG Data or HeteroData, a DGL graph, a networkx graph, heddle.Graph, heddle.Tables, a dict of "
            f"arrays or the path of a data set (got {kind.__module__}.{kind.__qualname__})"
        )
    if site is None:
        return out
    if isinstance(out, Tables):
        return dataclasses.replace(out, site=site)
    if name is not None:
        if out.site is None or out is data and name != "site":
            raise InputError(f"the nodes have no attribute {name!r} for their sites")
        return out
    return dataclasses.replace(out, site=array(site), site_names=None)


def _edge_attr(z: dict[str, np.ndarray]) -> Optional[np.ndarray]:
    """Returns the columns of each edge of a data set, [E, G]: of repeated edges, in either direction, those of the lowest row."""
    if "edge_attr" not in z or "edge_row" not in z:
        return z.get("edge_attr")
    table = np.vstack([z["edge_attr"], np.zeros_like(z["edge_attr"][:1])])  # row -1 is the one of zeros
    low, high = np.sort(z["edge_index"].astype(np.int64), axis=0)
    pair, place = np.unique(low * len(z["y"]) + high, return_inverse=True)
    lowest = np.full(len(pair), len(table))
    np.minimum.at(lowest, place, z["edge_row"])
    return np.asarray(table[lowest[place]])


def _numbers(name: str, a: Any, whole: bool = False) -> np.ndarray:
    """Returns an array of numbers, of whole ones as int64; name is for the error."""
    a, kind = array(a), "whole numbers" if whole else "numbers"
    if a.dtype.kind not in "biuf":
        try:
            a = a.astype(np.float64, casting="safe" if a.dtype.kind == "c" else "unsafe")
        except (TypeError, ValueError) as e:
            raise InputError(f"{name} must be an array of {kind}: {e}") from None
    if not whole:
        return np.asarray(a)
    with np.errstate(invalid="ignore"):
        out = a.astype(np.int64, copy=False)
    if a.dtype.kind == "f" and (bad := a != out).any():
        raise InputError(f"{name} must be an array of whole numbers (got {a[bad][0]})")
    return np.asarray(out)


def _mask(name: str, a: Any) -> np.ndarray:
    a = _numbers(name, a)
    if a.ndim not in (1, 2) or not np.isin(a, (0, 1)).all():
        raise InputError(f"{name} must be [N] or [N, S] of true and false (got shape {list(a.shape)} of {a.dtype})")
    return np.asarray(a, bool)


def _pairs(edges: Any, n: int) -> tuple[Any, Any]:
    """Returns edges as [2, E], with the values of an adjacency matrix of n nodes as weights, None if all are 1."""
    if _sparse(edges):
        index, values, shape = _places(edges)
    elif hasattr(edges, "tocoo"):
        a = edges.tocoo()
        index, values, shape = np.stack([a.row, a.col]), a.data, tuple(a.shape)
    else:
        a = array(edges)
        if a.ndim != 2 or a.shape[0] != a.shape[1] or a.shape[0] == 2 and (n != 2 or a.dtype.kind in "iu"):
            return a, None
        index, shape = np.stack(np.nonzero(a)), a.shape
        values = a[tuple(index)]
    if shape != (n, n):
        raise InputError(f"the adjacency matrix must be [N, N] of {n} nodes (got {list(shape)})")
    return index, None if np.all(values == 1) else values


def _sparse(a: Any) -> bool:
    """Says whether a is a sparse tensor of torch."""
    return getattr(a, "layout", None) is not None and not str(a.layout).endswith("strided")


def _places(a: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Returns where a sparse tensor has values, [2, K] row by row, the values and the shape."""
    a = a.to_sparse_coo().coalesce()
    return array(a.indices()), array(a.values()), tuple(a.shape)


def array(a: Any) -> np.ndarray:
    """Returns a tensor, column or list as a NumPy array."""
    if hasattr(a, "detach"):
        a = a.detach().cpu()
        a = a.to_dense() if _sparse(a) else a
        if hasattr(a, "resolve_conj"):
            a = a.resolve_conj().resolve_neg()
        return np.asarray((a.float() if str(a.dtype) == "torch.bfloat16" else a).numpy())
    if str(getattr(a, "dtype", ""))[:3] in ("Int", "UIn"):  # of pandas and polars: with nulls their to_numpy has floats
        return np.array(list(a), object)
    return np.asarray(a.to_numpy() if hasattr(a, "to_numpy") else a)


def _missing(values: Any) -> np.ndarray:
    """Says of which objects there is none: None, NaN, pandas' NA and NaT."""
    return np.array([v is None or type(v).__name__ in ("NAType", "NaTType") or isinstance(v, float) and v != v for v in values], bool)


def stored(y: np.ndarray) -> np.ndarray:
    """Returns labels in a type that the program reads: objects as whole numbers if all are, as floats if one is a float, else
    as texts, "" for none."""
    if y.dtype.kind != "O":
        return y
    missing = _missing(y.reshape(-1))
    known = y.reshape(-1)[~missing]
    if not missing.any() and all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in known):
        return y.astype(np.int64)
    if any(isinstance(v, (float, np.floating)) for v in known) and all(isinstance(v, (int, float, np.number)) for v in known):
        out: np.ndarray = np.full(y.size, np.nan)
        out[~missing] = known.astype(float)
    else:
        out = np.array(["" if m else str(v) for v, m in zip(y.reshape(-1), missing)])
    return out.reshape(y.shape)


def values_of(y: Optional[np.ndarray], names: list[str], titles: Any = None) -> np.ndarray:
    """Returns the classes of those names as y has them; titles are names that the caller gave numbers. y None: numbers if
    all are whole, else texts."""
    if y is None:
        whole = all(name.removeprefix("-").isdecimal() and str(int(name)) == name for name in names)
        return np.array([int(name) if whole else name for name in names])
    of = stored(y).dtype
    if titles:
        return np.arange(len(names)).astype(of)
    if of.kind in "biuf":
        return np.array([*map(float if of.kind == "f" else int, names)]).astype(of)
    if y.dtype.kind != "O":
        return np.array(names).astype(y.dtype)
    given = {str(v).strip(): v for v in y}
    values = [given.get(name, name) for name in names]
    if len({type(v) for v in values}) == 1 and isinstance(values[0], (str, int, np.integer)):
        return np.array(values)
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _named(values: Any, names: Optional[list[str]]) -> tuple[np.ndarray, Optional[list[str]]]:
    """Returns values as numbers from 0, and what texts the numbers stand for. A missing text is -1."""
    values = array(values).reshape(-1)
    if values.dtype.kind in "iub":
        return values.astype(np.int64), names
    missing = _missing(values) | (values == "")
    texts = np.array(["" if m else str(v) for v, m in zip(values, missing)])
    known = sorted(set(texts[~missing])) if names is None else list(names)
    number = {name: k for k, name in enumerate(known)}
    return np.array([-1 if m else number[t] for t, m in zip(texts, missing)], np.int64), known


def _features(x: Any) -> Union[np.ndarray, SparseRows]:
    if _sparse(x):
        (row, col), values, shape = _places(x)
        return SparseRows(values, col, np.searchsorted(row, np.arange(shape[0] + 1)), shape)
    if hasattr(x, "tocsr"):
        x = x.tocsr()
        if hasattr(x, "sort_indices"):
            x = x.copy()
            x.sum_duplicates()
        return SparseRows(x.data, x.indices, x.indptr, x.shape)
    x = _numbers("x", x)
    if x.ndim not in (1, 2):
        raise InputError(f"x must be [N, F] (got shape {list(x.shape)})")
    return np.ascontiguousarray(x.reshape(len(x), -1), np.float32)


def _first(of: Any, *names: str) -> Any:
    """Returns the first of those attributes, or items, that is there."""
    for name in names:
        value = of.get(name) if hasattr(of, "get") else None
        if value is None:
            value = getattr(of, name, None)
        if value is not None:
            return value
    return None


def _masks(of: Any) -> dict[str, Any]:
    return {name: _first(of, name) for name in ("train_mask", "val_mask", "test_mask")}


def _from_pyg(data: Any, site: Optional[str]) -> Graph:
    edges, weight = _first(data, "edge_index"), _first(data, "edge_weight")
    if edges is None and (adj := _first(data, "adj_t")) is not None:
        if hasattr(adj, "coo"):  # of torch_sparse
            target, source, weight = adj.coo()
        else:
            (target, source), weight, _ = _places(adj)
        edges = np.stack([array(source), array(target)])
    y = _first(data, "y")
    return Graph(
        np.zeros((2, 0), np.int64) if edges is None else edges, np.full(int(data.num_nodes), -1) if y is None else y,
        _first(data, "x"), _first(data, site or "site"), edge_weight=weight, edge_type=_first(data, "edge_type"),
        edge_attr=_first(data, "edge_attr"), **_masks(data),
    )  # fmt: skip


def _from_dgl(g: Any, site: Optional[str]) -> Graph:
    nodes, links = {t: g.nodes[t].data for t in g.ntypes}, {e: g.edges[e].data for e in g.canonical_etypes}
    of = {t: (g.num_nodes(t), _first(d, "feat", "features", "x"), _first(d, "label", "labels", "y"), d) for t, d in nodes.items()}
    edges = {
        e: (np.stack([array(a) for a in g.edges(etype=e)]), _first(d, "weight", "w", "edge_weight"), _first(d, "feat", "edge_attr"))
        for e, d in links.items()
    }
    if len(of) > 1 or len(edges) > 1:
        return _joined(of, edges, site or "site")
    ((n, x, y, columns),), ((pairs, weight, attr),) = of.values(), edges.values()
    y = np.full(n, -1) if y is None else y
    return Graph(pairs, y, x, _first(columns, site or "site"), edge_weight=weight, edge_attr=attr, **_masks(columns))


def _from_hetero(data: Any, site: Optional[str]) -> Graph:
    return _joined(
        {t: (int(data[t].num_nodes), _first(data[t], "x"), _first(data[t], "y"), data[t]) for t in data.node_types},
        {e: (array(data[e].edge_index), _first(data[e], "edge_weight"), _first(data[e], "edge_attr")) for e in data.edge_types},
        site or "site",
    )


def _joined(nodes: dict[str, tuple[int, Any, Any, Any]], edges: dict[Any, tuple[np.ndarray, Any, Any]], site: str) -> Graph:
    """Returns nodes of several types as one graph, which the program makes (docs/reference/graph-formats.md#npz).

    nodes: count, features, labels and all attributes of each type; edges: pairs, weights and columns of each relation.
    """
    sites = {t: _first(columns, site) for t, (*_, columns) in nodes.items()}
    if missing := [t for t, one in sites.items() if one is None]:
        if len(missing) < len(sites):
            raise InputError(f"every type of nodes must have the attribute {site!r} for their sites ({missing[0]} has none)")
    arrays: dict[str, Any] = {}
    for k, (t, (n, x, y, columns)) in enumerate(nodes.items()):
        masks = {} if y is None else _masks(columns)
        for name, mask in masks.items():
            if mask is not None and np.ndim(mask) == 2 and mask.shape[1] > 1:
                raise InputError(f"{name} of {t} must be [N]: nodes of several types have one split (got {mask.shape[1]})")
        one = Graph(np.zeros((2, 0)), np.full(n, np.nan) if y is None else y, x, **masks).arrays()
        arrays.update({f"nodes/{k}/{name}": a for name, a in one.items() if name != "edge_index"})
    for k, ((source, _, target), (pairs, weight, attr)) in enumerate(edges.items()):
        one = Graph(pairs, [0], edge_weight=weight, edge_attr=attr).arrays()
        arrays.update({f"edges/{k}/{name}": a for name, a in one.items() if name != "y"})
        arrays[f"edges/{k}/types"] = np.array([list(nodes).index(source), list(nodes).index(target)])
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        np.savez(at / "graph.npz", **arrays)
        names = {"node_type_names": list(nodes), "relation_names": ["-".join(map(str, e)) for e in edges]}
        (at / "meta.json").write_text(json.dumps(names), encoding="utf-8")
        with _program.in_words(None, at):
            _program.run(["import", f"--edges={at / 'graph.npz'}", f"--out={at / 'joined'}"])
        out = Graph.read(at / "joined")
    return out if missing else dataclasses.replace(out, site=np.concatenate([array(one).reshape(-1) for one in sites.values()]))


def _from_networkx(g: Any, site: Any) -> Union[Graph, Tables]:
    if g.is_directed() or g.is_multigraph():
        raise InputError(
            f"a graph of networkx must have edges without direction, at most one of a pair (got a {type(g).__name__}): "
            "give networkx.Graph(g), or heddle.Tables with the option directed"
        )
    ids, nodes = [str(one) for one in g.nodes], _rows(g, "node", [g.nodes[one] for one in g.nodes])
    number = {one: k for k, one in enumerate(g.nodes)}
    links = _rows(g, "edge", [d for _, _, d in g.edges(data=True)])
    if len(set(ids)) < len(ids):
        raise InputError(f"names of nodes must differ as texts (got {len(ids) - len(set(ids))} again)")
    label = next((k for k in ("y", "label") if k in nodes), None)
    if label is None:
        raise InputError("the nodes must have an attribute y or label with their class")
    if bare := [str(one) for one, r in g.nodes(data=True) if not r]:
        _program.warn(f"{len(bare)} nodes have no attributes, as nodes that only an edge names: {', '.join(bare[:5])}")
    masks: dict[str, Any] = {k: np.array([bool(v) for v in nodes.pop(k)]) for k in ("train_mask", "val_mask", "test_mask") if k in nodes}
    name = site if isinstance(site, str) else "site" if site is None else _free("site", nodes)
    if site is not None and not isinstance(site, str):
        nodes[name] = array(site).tolist()
    elif site is not None and site not in nodes:
        raise InputError(f"the nodes have no attribute {site!r} for their sites")
    index = np.array([[number[a] for a, _ in g.edges], [number[b] for _, b in g.edges]], np.int64).reshape(2, -1)
    if "x" in nodes:
        if left := sorted(set(nodes) - {"x", label, name}):
            _program.warn(f"attributes of nodes beside x are not read: {', '.join(left[:20])}")
        x = _matrix("x", nodes["x"], "node", ids)
        weight = None if (w := links.pop("weight", None)) is None else np.array([1 if v is None else v for v in w], np.float32)
        of = {"edge_attr": links["edge_attr"]} if "edge_attr" in links else dict(sorted(links.items()))
        columns = [_matrix(k, values, "edge", range(len(values))) for k, values in of.items()]
        y = np.array(nodes[label], object)
        if not _missing(y).any():
            y = np.array(nodes[label])
        where = np.array(nodes[name], object) if name in nodes else None
        return Graph(index, y, x, where, edge_weight=weight, edge_attr=np.hstack(columns) if columns else None, ids=ids, **masks)
    options: dict[str, Any] = {"id_column": _free("id", nodes), "source_column": _free("source", links), "target_column": _free("target", links)}
    if any(isinstance(v, (float, np.floating)) for v in nodes[label] if not _missing([v])[0]):
        options["regression"] = True
    if masks:
        options["split_column"] = _free("split", nodes)
        nodes[options["split_column"]] = np.select(list(masks.values()), [k.removesuffix("_mask") for k in masks], "none").tolist()
    if "weight" in links:
        options["weight_column"], links["weight"] = "weight", [1 if v is None else v for v in links["weight"]]
    if set(links) - {"weight"}:
        options["edge_columns"] = "all"
    ends = {options["source_column"]: [ids[k] for k in index[0]], options["target_column"]: [ids[k] for k in index[1]]}
    return Tables({options["id_column"]: ids, **nodes}, {**ends, **links}, label, name if name in nodes else None, options)


def _rows(g: Any, of: str, rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Returns the attributes of nodes or edges by name, those of GraphML's defaults included; None where there is none."""
    defaults = g.graph.get(f"{of}_default", {})
    return {k: [r.get(k, defaults.get(k)) for r in rows] for k in dict.fromkeys([k for r in rows for k in r] + (list(defaults) if rows else []))}


def regression(task: Any) -> dict[str, Any]:
    return {"regression": task == "regression"} if task in ("classification", "regression") else {}


def _free(name: str, taken: Any) -> str:
    return name if name not in taken else _free(name + "_", taken)


def _matrix(name: str, values: list[Any], of: str, names: Any) -> np.ndarray:
    """Returns an attribute of all nodes or edges as rows of numbers."""
    widths = [0 if v is None or isinstance(v, str) else np.size(v) for v in values]
    for k, width in enumerate(widths):
        if width == 0 or width != widths[0]:
            got = f"{of} {names[k]} has {width or repr(values[k])}"
            raise InputError(f"every {of} must have {name} of {widths[0] or 'some'} numbers if nodes have x, as the first has ({got})")
    return np.array([np.asarray(v, np.float32).reshape(-1) for v in values])


def _table(table: Any, path: pathlib.Path) -> _program.Path:
    """Returns a path of table, which it writes as CSV unless it is one."""
    if isinstance(table, (str, os.PathLike)):
        return table
    if hasattr(table, "to_pydict"):  # Arrow
        table = table.to_pydict()
    if isinstance(table, dict):
        for name, column in table.items():
            if bad := [v for v in column if isinstance(v, (list, tuple, dict, set, np.ndarray))]:
                raise InputError(f"{name} must be one value in each row (got {type(bad[0]).__name__})")
        with open(path, "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f)
            out.writerow(table)
            out.writerows(zip(*table.values()))
    elif hasattr(table, "to_csv"):  # pandas
        table.to_csv(path, index=table.index.name is not None)
    elif hasattr(table, "write_csv"):  # polars
        table.write_csv(path)
    else:
        kind = type(table)
        raise InputError(f"a table must be a path or a data frame of pandas, polars or Arrow (got {kind.__module__}.{kind.__qualname__})")
    return path

