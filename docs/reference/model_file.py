"""Rebuilds a Heddle model from its file in NumPy and prints what `heddle predict` prints.

    python3 model_file.py model.safetensors data/cora > predictions.csv

It is model-file.md in NumPy, whose equations it numbers; the page leaves rounding and hashing to it. A test compares
its output with `heddle predict` for every convolution and encoder.
"""
import csv
import hashlib
import json
import math
import pathlib
import sys

import numpy as np


def read_model(path):
    """Returns the spec, the class names and the tensors of a safetensors file."""
    blob = pathlib.Path(path).read_bytes()
    at = blob.find(b'"digest":"') + 10
    if hashlib.sha256(blob[:at] + b"0" * 64 + blob[at + 64 :]).hexdigest().encode() != blob[at : at + 64]:
        sys.exit(f"{path} is damaged: its digest is another")
    size = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + size])
    meta = header.pop("__metadata__")
    body, tensors = blob[8 + size :], {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        tensors[name] = np.frombuffer(body[begin:end], "<f4").reshape(t["shape"]).astype(np.float64)
    return json.loads(meta["spec"]), json.loads(meta["card"]), json.loads(meta.get("classes", "[]")), tensors


class Edges:
    """In-edges (src, dst) with weights, of n nodes; each pair occurs once."""

    def __init__(self, n, src, dst, weight, columns=None):
        self.n, self.src, self.dst, self.weight, self.columns = n, src, dst, weight, columns

    def sum(self, z):
        """Row i is the sum of weight · z[src] over the edges into i."""
        h = np.zeros((self.n, z.shape[1]))
        np.add.at(h, self.dst, self.weight[:, None] * z[self.src])
        return h

    def with_loops(self):
        every, columns = np.arange(self.n), self.columns
        if columns is not None:
            columns = np.vstack([columns, np.zeros((self.n, columns.shape[1]))])
        return Edges(self.n, np.append(self.src, every), np.append(self.dst, every), np.append(self.weight, np.ones(self.n)), columns)

    def degree(self):
        return np.bincount(self.dst, self.weight, self.n)

    def gcn(self):  # (1)
        d, g = 1 + self.degree(), self.with_loops()
        return Edges(g.n, g.src, g.dst, g.weight / np.sqrt(d[g.dst] * d[g.src]))

    def mean(self):  # (2)
        d = self.degree()
        return Edges(self.n, self.src, self.dst, self.weight / d[self.dst])

    def symmetric(self):  # (3)
        d = self.degree()
        return Edges(self.n, self.src, self.dst, self.weight / np.sqrt(d[self.dst] * d[self.src]))


def build(n, src, dst, weight, directed, table=None, row=None):
    """Adds the reverse of each edge unless directed, drops loops, keeps the largest weight of repeated edges and the
    lowest row in the table of columns."""
    if not directed:
        src, dst, weight = np.append(src, dst), np.append(dst, src), np.append(weight, weight)
        row = None if row is None else np.append(row, row)
    keep = src != dst
    src, dst, weight = src[keep].astype(np.int64), dst[keep].astype(np.int64), weight[keep]
    pair, place = np.unique(dst * n + src, return_inverse=True)
    most = np.zeros(len(pair))
    np.maximum.at(most, place, weight)
    columns = None
    if table is not None:
        lowest = np.full(len(pair), len(table))
        np.minimum.at(lowest, place, row[keep])
        columns = np.vstack([table, np.zeros(table.shape[1])])[lowest]  # row -1 is the one of zeros
    return Edges(n, pair % n, pair // n, most, columns)


class Data:
    """A data set directory: features, edges, typed edges, names and training labels."""

    def __init__(self, directory, split=0):
        z = np.load(pathlib.Path(directory) / "graph.npz")
        n = self.n = len(z["y"])
        self.sparse = "x" not in z
        if "x" in z:
            self.x = z["x"].astype(np.float64)
        elif "x_indptr" not in z:  # without features: a column a node, for a layer's first matrix
            self.x = np.eye(n)
        else:
            self.x = np.zeros(z["x_shape"])
            rows = np.repeat(np.arange(n), np.diff(z["x_indptr"]))
            self.x[rows, z["x_indices"]] = z["x_data"]
        src, dst = z["edge_index"].astype(np.int64)
        weight = z["edge_weight"].astype(np.float64) if "edge_weight" in z else np.ones(len(src))
        table = z["edge_attr"].astype(np.float64) if "edge_attr" in z else None
        row = z["edge_row"] if "edge_row" in z else np.arange(len(src))
        self.edges = build(n, src, dst, weight, directed=False, table=table, row=row)
        self.relations = []
        if "edge_type" in z:
            kind = z["edge_type"]
            self.relations = [build(n, src[kind == r], dst[kind == r], weight[kind == r], directed=True) for r in range(kind.max() + 1)]
            self.add_inverses()
        self.ids = [str(i) for i in range(n)]
        if "ids" in z:
            text, ptr = z["ids"].tobytes(), z["ids_indptr"]
            self.ids = [text[ptr[i] : ptr[i + 1]].decode() for i in range(n)]
        masks = [z[name] if name in z else np.zeros(n, bool) for name in ("train_mask", "val_mask", "test_mask")]
        train, val, test = (m[:, split] if m.ndim == 2 else m for m in masks)
        self.y, self.val, self.held_out = z["y"], val, val | test
        if self.y.dtype.kind == "f":
            self.y = self.y.reshape(n, -1)
            train = train & ~np.isnan(self.y).all(axis=1)
        self.train = train & (self.y >= 0) if self.y.ndim == 1 else train
        self.train_class = np.where(self.train, self.y, -1) if self.y.ndim == 1 else None

    def given(self, spec):
        """Labels of the training nodes as rows of zeros and ones, or as standardised numbers; zeros elsewhere."""
        rows = self.y
        if "units" in spec:
            rows = (rows - [u["mean"] for u in spec["units"]]) / [u["deviation"] for u in spec["units"]]
        elif rows.ndim == 1:
            rows = rows[:, None] == np.arange(spec["classes"])
        return np.where(self.train[:, None], rows, 0).astype(np.float64)

    def neighbours(self, columns):  # (18)
        """Features of nodes that have none: a one for the node and for each neighbour, hashed if there are too many."""
        number, sign = np.arange(self.n, dtype=np.uint64), np.ones(self.n)
        if self.n > columns:
            drawn = mix(np.uint64(HASH) ^ mix(number + np.uint64(0x9E3779B97F4A7C15)))
            number, sign = (drawn >> np.uint64(1)) % np.uint64(columns), 1 - 2.0 * (drawn & np.uint64(1))
        x, g = np.zeros((self.n, columns)), self.edges.with_loops()
        np.add.at(x, (g.dst, number[g.src].astype(np.int64)), sign[g.src])
        return x

    def add_inverses(self):
        """Appends the reverse of each relation, unless every reverse is one of the relations."""
        def key(e):
            order = np.lexsort((e.src, e.dst))
            return e.src[order].tobytes(), e.dst[order].tobytes(), e.weight[order].tobytes()

        reverse = [Edges(e.n, e.dst, e.src, e.weight) for e in self.relations]
        known = {key(e) for e in self.relations}
        if not all(key(e) in known for e in reverse):
            self.relations += reverse


HASH = 0x409080E28D435CE5  # of no seed: the columns are part of the model


def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def relu(x):
    return np.maximum(x, 0)


def elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax_sum(dst, logit, rows, h):
    """Adds to h, for each destination and head, its edges' rows weighted by the softmax of their logits."""
    top = np.full((len(h), logit.shape[1]), -np.inf)
    np.maximum.at(top, dst, logit)
    e = np.exp(logit - top[dst])
    total = np.zeros((len(h), logit.shape[1]))
    np.add.at(total, dst, e)
    np.add.at(h, dst, (e / total[dst])[:, :, None] * rows)
    return h


class Model:
    def __init__(self, path):
        self.spec, self.card, self.classes, self.t = read_model(path)
        self.logits = self.spec["carry"] == "scores"

    def linear(self, name, x):
        """x·W + b (b where the file has one)."""
        y = x @ self.t[name + ".weight"]
        return y + self.t[name + ".bias"] if name + ".bias" in self.t else y

    def head(self, name, x):
        """Linear, then ReLU and Linear for each further one."""
        k = 0
        while f"{name}.{k}.weight" in self.t:
            x = self.linear(f"{name}.{k}", relu(x) if k else x)
            k += 1
        return x

    def layer_norm(self, name, y):  # (14)
        mean, var = y.mean(axis=1, keepdims=True), y.var(axis=1, keepdims=True)
        return (y - mean) / np.sqrt(var + 1e-5) * self.t[name + ".gain"] + self.t[name + ".bias"]

    def batch_norm(self, name, y):  # (15)
        t = self.t
        return (y - t[name + ".mean"]) / np.sqrt(t[name + ".variance"] + 1e-5) * t[name + ".gain"] + t[name + ".bias"]

    def encode(self, data):
        e, x = self.spec["encoder"], data.x
        if e.get("unit_sum"):  # (4)
            size = np.abs(x).sum(axis=1, keepdims=True)
            x = x / np.where(size > 0, size, 1)
        if e.get("l2_norm"):  # (4)
            x = unit(x)
        if e["kind"] == "pca":  # (5): rows of unit length
            x = x @ self.t["encoder.proj.weight"]
            x = unit(x)
            return np.hstack([x, 4 * ClassMeans(self, data)()]) if e.get("classes") else x  # (5b)
        if e["kind"] == "embedding":  # (6a)
            if self.spec["features"] == 1 and x.shape[1] != 1:  # nodes without features
                x = np.zeros((x.shape[0], 1), np.float32)
            return self.linear("encoder.self", x)
        if e["kind"] == "mlp":  # (6)
            x = relu(self.layer_norm("encoder.norm", self.linear("encoder.self", x)))
            return self.head("encoder.head", x) if self.logits or not self.spec["layers"] else x
        if e.get("labels"):  # (7)
            x = np.hstack([x, data.given(self.spec)])
        if e["kind"] == "sign":  # (8)
            adj, parts = data.edges.gcn(), [x]
            for _ in range(e["hops"]):
                parts.append(adj.sum(parts[-1]))
            x = np.hstack(parts)
        return x

    def convolution(self, name, s, x, data):
        hops = max(s.get("hops", 1), 1)
        conv = s["conv"]

        def aggregate(edges, z):
            for _ in range(hops):
                z = edges.sum(z)
            return z

        if conv == "gcn":  # (9)
            return self.linear(name + ".nbr", aggregate(data.edges.gcn(), x))
        if conv == "sage":  # (10)
            return self.linear(name + ".self", x) + self.linear(name + ".nbr", aggregate(data.edges.mean(), x))
        if conv == "sage-sum":  # (10a)
            return self.linear(name + ".self", x) + self.linear(name + ".nbr", aggregate(data.edges, x))
        if conv == "sage-pool":
            z = relu(self.linear(name + ".pre", x))
            pooled = np.full((data.n, z.shape[1]), -np.inf)
            np.maximum.at(pooled, data.edges.dst, z[data.edges.src])
            pooled[np.isneginf(pooled)] = 0
            return self.linear(name + ".self", x) + self.linear(name + ".nbr", pooled)
        if conv == "gin":  # (11)
            z = self.linear(name + ".nbr", aggregate(data.edges.with_loops(), x))
            return self.linear(name + ".post", relu(z))
        if conv in ("gat", "gatv2"):
            return self.attention(name, s, x, data)
        if conv == "gine":  # (11d)
            g, z = data.edges, self.linear(name + ".pre", x)
            message = relu(z[g.src] + self.columns(name + ".edge.weight", g, s) + self.t[name + ".edge.bias"])
            u = self.linear(name + ".self", x)
            np.add.at(u, g.dst, message)
            return self.linear(name + ".post", relu(self.linear(name + ".nbr", u)))
        if conv in ("rgcn", "rsage"):  # (12), (12b)
            y, maps = self.linear(name + ".self", x), self.relation_maps(name + ".nbr", s)
            for r, edges in enumerate(data.relations):
                y += edges.mean().sum(x) @ maps[r]
                if conv == "rsage":
                    reached = np.unique(edges.dst)
                    y[reached] += x[reached] @ maps[len(data.relations) + r]
            return y
        if conv == "rgat":
            return self.attention_over_relations(name, s, x, data)
        if conv == "appnp":  # (13)
            first, adj = self.linear(name + ".pre", x), data.edges.gcn()
            alpha = s["teleport"]
            z = first
            for _ in range(hops):
                z = (1 - alpha) * adj.sum(z) + alpha * first
            return z
        if conv == "sign":
            pieces = s["hops"] + 1
            w = self.t[name + ".self.weight"].reshape(pieces, s["in"] // pieces, -1)
            y = np.hstack([p @ w[k] for k, p in enumerate(np.split(x, pieces, axis=1))])
            return y + self.t[name + ".self.bias"] if name + ".self.bias" in self.t else y
        return self.linear(name + ".self", x)  # mlp

    def columns(self, name, edges, s):
        """The columns of edges times a matrix; 0 where the layer reads none."""
        return edges.columns @ self.t[name] if s.get("edge_columns") else 0

    def relation_maps(self, name, s):
        """The matrices of relations, one after the other."""
        t = self.t
        if name + ".bases" in t:
            bases = t[name + ".bases"]
            return np.tensordot(t[name + ".coefficients"], bases.reshape(-1, s["in"], bases.shape[1]), 1)
        return t[name + ".weight"].reshape(-1, s["in"], t[name + ".weight"].shape[1])

    def attention_over_relations(self, name, s, x, data):  # (12c)
        t, heads = self.t, s["heads"]
        maps = self.relation_maps(name + ".attention", s)
        own = self.linear(name + ".self", x).reshape(data.n, heads, -1)
        dst, src, logit, rows = [], [], [], []
        for r, g in enumerate(data.relations):
            z = (x @ maps[r]).reshape(data.n, heads, -1)
            one = [(z * t[name + ".attention." + v].reshape(-1, heads, z.shape[2])[r]).sum(axis=2) for v in ("dst", "src")]
            u = one[0][g.dst] + one[1][g.src]
            dst, src = dst + [g.dst], src + [g.src]
            logit, rows = logit + [np.where(u > 0, u, 0.2 * u)], rows + [z[g.src]]
        dst, logit, rows = np.concatenate(dst), np.concatenate(logit), np.concatenate(rows)
        h = own + softmax_sum(dst, logit, rows, np.zeros_like(own))
        h = h.mean(axis=1) if s.get("average") else h.reshape(data.n, -1)
        return h + t[name + ".post.bias"] if name + ".post.bias" in t else h

    def attention(self, name, s, x, data):
        t, heads = self.t, s["heads"]
        z = self.linear(name + ".pre", x).reshape(data.n, heads, -1)
        g = data.edges.with_loops()
        if s["conv"] == "gat":
            logit = (z * t[name + ".attention.src"]).sum(axis=2)[g.src] + (z * t[name + ".attention.dst"]).sum(axis=2)[g.dst]
            logit = np.where(logit > 0, logit, 0.2 * logit)
        else:
            u = z[g.src] + self.linear(name + ".dst", x).reshape(data.n, heads, -1)[g.dst]
            if s.get("edge_columns"):
                u = u + self.columns(name + ".attention.edge", g, s).reshape(len(g.src), heads, -1)
            logit = (np.where(u > 0, u, 0.2 * u) * t[name + ".attention.vector"]).sum(axis=2)
        h = softmax_sum(g.dst, logit, z[g.src], np.zeros_like(z))
        h = h.mean(axis=1) if s.get("average") else h.reshape(data.n, -1)
        return h + t[name + ".post.bias"] if name + ".post.bias" in t else h

    def layer(self, k, s, x, data):
        name = f"layer{k}"
        y = self.convolution(name, s, x, data)
        if s.get("norm"):
            y = self.layer_norm(name + ".norm", y)
        if s.get("batch_norm"):
            y = self.batch_norm(name + ".norm", y)
        y = {"": lambda y: y, "relu": relu, "elu": elu}[s.get("act", "")](y)
        if s.get("residual"):
            y = y + (self.linear(name + ".residual", x) if name + ".residual.weight" in self.t else x)
        if self.logits or k == len(self.spec["layers"]):
            y = self.head(name + ".head", y)
        return y

    def __call__(self, data):
        """Returns the class logits of every node, or its numbers."""
        out = self.site_shares(self.outputs(data), data)
        return out * [u["deviation"] for u in self.spec["units"]] + [u["mean"] for u in self.spec["units"]] if "units" in self.spec else out

    def site_shares(self, out, data):  # (17)
        s = self.spec.get("site_shares")
        if not s:
            return out
        own = np.where(data.val[:, None], data.y[:, None] == np.arange(out.shape[1]), 0)
        soft = softmax(out / s["temperature"]) * own.sum(axis=1, keepdims=True)
        move = np.log((1 + own.sum(axis=0) - own) / (1 + soft.sum(axis=0) - soft))
        return out + np.round(4096 * s["scale"] * move) / 4096

    def outputs(self, data):
        if self.spec["encoder"]["kind"] == "closed":
            return ClassMeans(self, data)()
        x = self.encode(data)
        for k, s in enumerate(self.spec["layers"], 1):
            x = self.layer(k, s, x, data)
        if self.spec.get("correct_smooth"):
            x = self.correct_and_smooth(x, data)
        return x

    def correct_and_smooth(self, logits, data):  # (16)
        c, adj = self.spec["correct_smooth"], data.edges.symmetric()

        def spread(first, alpha, low):
            z = first
            for _ in range(c["steps"]):
                z = np.clip(alpha * adj.sum(z) + (1 - alpha) * first, low, 1)
            return z

        p = softmax(logits)
        rows = np.flatnonzero(data.train_class >= 0)
        truth = np.zeros_like(p)
        truth[rows, data.train_class[rows]] = 1
        error = np.zeros_like(p)
        error[rows] = truth[rows] - p[rows]
        size = np.abs(error[rows]).sum() / max(len(rows), 1)
        far = spread(error, c["correct"], -1)
        length = np.abs(far).sum(axis=1, keepdims=True)
        scale = np.divide(size, length, out=np.full_like(length, np.inf), where=length > 0)
        p = p + np.where(scale <= 1000, scale, 1) * far
        p[rows] = truth[rows]
        p = np.maximum(spread(p, c["smooth"], 0), 1e-9)
        return np.log(p / p.sum(axis=1, keepdims=True))


def unit(x):
    """Divides rows by their length; a row of zeros stays."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1)


class ClassMeans:
    """A model of rounds of class means, (19) to (24)."""

    def __init__(self, model, data):
        self.s = model.spec.get("closed") or model.spec["encoder"]["classes"]
        self.t, self.data, self.classes = model.t, data, model.spec["classes"]
        self.x, self.given = data.x, data.given(model.spec)
        if self.s.get("adjacent"):
            self.x = data.neighbours(self.s["adjacent"])
        if model.spec["encoder"].get("l2_norm"):
            self.x = unit(self.x)
        if model.spec["encoder"].get("unit_sum"):
            size = np.abs(self.x).sum(axis=1, keepdims=True)
            self.x = self.x / np.where(size > 0, size, 1)
        one_less = self.s.get("residual") and not self.s.get("multi") and not self.s.get("numbers")
        self.width = max(self.classes - 1, 1) if one_less else self.classes
        self.half = 0.5 if self.s.get("multi") else 0

    def __call__(self):
        s, t, data = self.s, self.t, self.data
        adj, columns = data.edges.mean() if s.get("mean") else data.edges.gcn(), []
        logits = np.zeros((data.n, self.classes))
        if s.get("leave_out") and s.get("residual") and not s.get("numbers"):
            logits[:, : self.width] = t["round1.counts"][0] - self.half
        for r in range(1, s["rounds"] + 1):
            z = self.x @ t[f"round{r}.means"]  # (20)
            alone = r <= s.get("rounds_alone", 0)
            if s.get("leave_out") and (alone or not s.get("directions_only")):  # directions have no own part
                z[:, : self.width] = self.leave_out(r, z[:, : self.width], logits)
            own = z
            if not s.get("own_rounds") and (not alone or s.get("logit_hops")):
                z = self.coarse(z, 1, 0)
            if r > 1 and not alone:
                before = logits[:, : self.width]
                for _ in range(s.get("logit_hops", 0)):
                    before = adj.sum(before)
                    columns.append(before)
            hops = 0 if alone else s["hops"]
            for k in range(hops + 1):  # (22)
                z = adj.sum(z) if k else z
                if s.get("all_hops") or k == hops:
                    columns.append(own if s.get("own_exact") and k == 0 else z)
            if r == 1 and s.get("degree"):
                columns.append(np.log1p(data.edges.degree())[:, None])
            if r == 1 and s.get("own_features"):
                mean, scale = t["encoder.own"]
                columns.append((self.x - mean) * scale)
            if 0 < s.get("own_rounds", 0) < r:
                rows = self.coarse(unit(softmax(8 * logits) - 1 / self.classes), 1 / math.sqrt(self.classes), 1 / 64)
                sums = Edges(data.n, data.edges.src, data.edges.dst, np.ones(len(data.edges.src))).sum(rows)
                columns += [sums, unit(sums), logits]
            x = np.hstack(columns)
            if s.get("random"):  # (23)
                angle = ((x - t[f"round{r}.mean"]) * t[f"round{r}.scale"]) @ t[f"round{r}.frequency"] + t[f"round{r}.phase"]
                x = np.hstack([x, math.sqrt(2) * np.cos(angle)])
            logits = x @ t[f"round{r}.weight"] + t[f"round{r}.bias"]  # (24)
        return logits

    def leave_out(self, r, z, logits):  # (21)
        s, train = self.s, self.data.train[:, None]
        inverse, centre, (n, scale, *lead) = self.t["encoder.inverse"], self.t["encoder.centre"], self.t[f"round{r}.counts"]
        quad = (self.x * self.x * inverse).sum(axis=1, keepdims=True)
        shift = (self.x * centre * inverse).sum(axis=1, keepdims=True)
        given = self.given[:, : self.width]
        if s.get("residual"):
            left = np.clip(given - logits[:, : self.width] - self.half, -4, 4)
            return z - np.where(train, left, 0) * quad * scale
        others = ~train & ~(self.data.held_out[:, None] if s.get("inductive") else False)
        soft = softmax(8 * logits) if r > 1 and train.any() else np.zeros_like(logits)
        p = np.where(train, given, np.where(others, soft, 0))
        part = np.where(n - p > p, p / np.where(n - p > p, n - p, 1), 1)
        left = z + part * (z + scale * (shift - quad)) - np.where(train, lead[0] if lead else 0, 0)
        return np.where((p > 0) & (n > 0), left, z)

    def coarse(self, z, deviation, fine):
        """Rounds sparse rows, whose values have that deviation, to no finer steps than fine."""
        s, columns = self.s, self.x.shape[1]
        if not s.get("coarse") or not (self.data.sparse or s.get("adjacent")):
            return z
        values = (self.x != 0).sum(axis=1)[:, None]
        steps = np.zeros(columns + 1)
        for v in range(1, columns + 1):
            part, each = (0.3, 1.2) if s.get("own_exact") else (0.5, 1.6)
            told = part * self.bits(v)
            if not s.get("adjacent"):
                told = min(told, max(part * self.bits(min(v, 5)), each * v))
            step = math.sqrt(2 * math.pi * math.e) * 2 ** (-told / s["coarse"])
            steps[v] = deviation * max(step if step >= 1 / 64 else 0, fine)
        step = steps[values]
        return np.where(step > 0, np.round(z / np.where(step > 0, step, 1)) * step, z)

    def bits(self, values):
        """log2 of the ways to choose so many columns."""
        return math.log2(math.comb(self.x.shape[1], values))


def main(model, data):
    m, d = Model(model), Data(data)
    logits = m(d)
    names = m.classes or [str(k) for k in range(m.spec["classes"])]
    out = csv.writer(sys.stdout, lineterminator="\n")
    if m.spec["task"] == "regression":
        out.writerow(["id"] + (["prediction"] if len(names) == 1 else ["prediction_" + name for name in names]))
        out.writerows([d.ids[i], *(f"{v:.7g}" for v in row)] for i, row in enumerate(logits))
        return
    out.writerow(["id", "class", "probability"])
    threshold = m.card.get("threshold")
    cuts = np.array(m.card.get("thresholds", 0))  # of several classes, one each
    for i, row in enumerate(logits / np.array(m.card.get("temperatures", m.card.get("temperature", 1)))):
        if m.spec["task"] == "multi":  # several classes a node: all that are more likely than not, or than their thresholds
            found = np.flatnonzero(row >= cuts if cuts.ndim else row > 0)
            p = 1 / (1 + np.exp(-row[found]))
            out.writerow([d.ids[i], ";".join(names[k] for k in found), ";".join(f"{v:.4f}" for v in p)])
        else:
            p = softmax(row[None])[0]
            k = p.argmax() if threshold is None else int(row[1] - row[0] >= threshold)
            out.writerow([d.ids[i], names[k], f"{p[k]:.4f}"])


if __name__ == "__main__":
    main(*sys.argv[1:])
