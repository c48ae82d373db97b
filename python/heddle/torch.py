"""Models of Heddle as torch modules. Only this module and `export_onnx` import torch.

The equations, with their numbers, are those of docs/reference/model-file.md. N nodes, F features, C classes, E edges.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np
import torch
from torch import nn

from heddle import _graph, _program, _run


class Edges:
    """In-edges (src, dst) with weights and columns, of n nodes; each pair occurs once."""

    def __init__(self, n: int, src: torch.Tensor, dst: torch.Tensor, weight: torch.Tensor, columns: Optional[torch.Tensor] = None):
        self.n, self.src, self.dst, self.weight, self.columns = n, src, dst, weight, columns

    def sum(self, z: torch.Tensor) -> torch.Tensor:
        """Row i is the sum of weight · z[src] over the edges into i."""
        return _into(z.new_zeros(self.n, z.shape[1]), self.dst, self.weight.to(z.dtype)[:, None] * z[self.src])

    def hops(self, z: torch.Tensor, times: int) -> torch.Tensor:
        for _ in range(times):
            z = self.sum(z)
        return z

    def with_loops(self) -> "Edges":
        every, columns = torch.arange(self.n, device=self.src.device), self.columns
        weight = torch.cat([self.weight, torch.ones_like(every, dtype=self.weight.dtype)])
        if columns is not None:
            columns = torch.cat([columns, columns.new_zeros(self.n, columns.shape[1])])
        return Edges(self.n, torch.cat([self.src, every]), torch.cat([self.dst, every]), weight, columns)

    def degree(self) -> torch.Tensor:
        return _into(self.weight.new_zeros(self.n), self.dst, self.weight)

    def gcn(self) -> "Edges":  # (1)
        d, g = 1 + self.degree(), self.with_loops()
        return Edges(g.n, g.src, g.dst, g.weight / torch.sqrt(d[g.dst] * d[g.src]))

    def mean(self) -> "Edges":  # (2)
        return Edges(self.n, self.src, self.dst, self.weight / self.degree()[self.dst])

    def symmetric(self) -> "Edges":  # (3)
        d = self.degree()
        return Edges(self.n, self.src, self.dst, self.weight / torch.sqrt(d[self.dst] * d[self.src]))

    def plain(self) -> "Edges":
        return Edges(self.n, self.src, self.dst, torch.ones_like(self.weight))


def _build(n: int, src: torch.Tensor, dst: torch.Tensor, weight: torch.Tensor, directed: bool, columns: Optional[torch.Tensor] = None) -> Edges:
    """Adds the reverse of each edge unless directed, drops loops, keeps of repeated edges the largest weight and the first columns."""
    row = torch.arange(src.shape[0], device=src.device)
    if not directed:
        src, dst, weight, row = torch.cat([src, dst]), torch.cat([dst, src]), torch.cat([weight, weight]), torch.cat([row, row])
    keep = src != dst
    src, dst, weight, row = src[keep], dst[keep], weight[keep], row[keep]
    pair, place = torch.unique(dst * n + src, return_inverse=True)
    most = torch.zeros_like(pair, dtype=weight.dtype).scatter_reduce(0, place, weight, "amax")
    if columns is not None:
        columns = columns[torch.full_like(pair, columns.shape[0]).scatter_reduce(0, place, row, "amin")]
    return Edges(n, pair % n, pair // n, most, columns)


def _relations(n: int, edge_index: torch.Tensor, weight: torch.Tensor, kind: torch.Tensor, count: int) -> list[Edges]:
    """Returns the edges of each of count relations. Edges of the first half of them alone lack their reverses, which are the other half."""
    src, dst = edge_index[0], edge_index[1]
    if count % 2 == 0:
        half = count // 2
        lack = (kind < half).all() & (kind < half)
        src, dst, weight = torch.cat([src, dst[lack]]), torch.cat([dst, src[lack]]), torch.cat([weight, weight[lack]])
        kind = torch.cat([kind, half + kind[lack]])
    of = [kind == r for r in range(count)]
    return [_build(n, src[k], dst[k], weight[k], directed=True) for k in of]


class Inputs:
    """What a model reads: arguments as of Model.forward."""

    def __init__(
        self, spec: dict[str, Any], x: torch.Tensor, edge_index: torch.Tensor, edge_weight: Any, edge_type: Any, y: Any, train_mask: Any,
        held_out: Any, edge_attr: Any, val_mask: Any = None,
    ):  # fmt: skip
        self.sparse = x.layout != torch.strided
        self.x, self.n = x.to_dense() if self.sparse else x, x.shape[0]
        weight = torch.ones(edge_index.shape[1], dtype=x.dtype, device=x.device) if edge_weight is None else edge_weight.to(x.dtype)
        layers = spec["layers"] or []
        for k, layer in enumerate(layers, 1):
            width = layer.get("edge_columns", 0)
            if width and (edge_attr is None or tuple(edge_attr.shape) != (edge_index.shape[1], width)):
                raise ValueError(
                    f"edge_attr must have the shape [{edge_index.shape[1]}, {width}], as layer {k} reads (got "
                    f"{None if edge_attr is None else list(edge_attr.shape)})"
                )
            if layer.get("relations") and edge_type is None:
                raise ValueError(f"edge_type must be the relation of each edge, which layer {k} reads (got None)")
        columns = None if edge_attr is None else edge_attr.to(x.dtype)
        self.edges = _build(self.n, edge_index[0], edge_index[1], weight, directed=False, columns=columns)
        count = max((layer.get("relations", 0) for layer in layers), default=0)
        if count and not torch.jit.is_tracing() and edge_type.numel() and edge_type.max() >= count:
            raise ValueError(f"edge_type must be 0 to {count - 1}, the relations of the model (got {edge_type.max()})")
        self.relations = _relations(self.n, edge_index, weight, edge_type, count) if count else []
        self.y, self.train_mask, self.held_out, self.val_mask = y, train_mask, held_out, val_mask


class Model(nn.Module):
    """A trained model. Its parameters have the names of the model file.

    Attributes:
        spec: the architecture; card: data set, settings and figures; names: of the parameters.
    """

    def __init__(self, spec: dict[str, Any], card: dict[str, Any], tensors: dict[str, np.ndarray]):
        super().__init__()
        self.spec, self.card, self.names = spec, card, set(tensors)
        for name, value in tensors.items():
            at: nn.Module = self
            *path, last = name.split(".")
            for part in path:
                if not hasattr(at, part):
                    at.add_module(part, nn.Module())
                at = getattr(at, part)
            at.register_parameter(last, nn.Parameter(torch.from_numpy(value)))

    def forward(
        self,
        x: torch.Tensor,
        edge_index: torch.Tensor,
        edge_weight: Optional[torch.Tensor] = None,
        edge_type: Optional[torch.Tensor] = None,
        y: Optional[torch.Tensor] = None,
        train_mask: Optional[torch.Tensor] = None,
        held_out: Optional[torch.Tensor] = None,
        edge_attr: Optional[torch.Tensor] = None,
        val_mask: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """Returns the logits of every node, [N, C]; of a regression the predictions, of links the rows that the decoder reads.

        Args:
            x: [N, F], dense or sparse as given to `train`: class means round the rows of sparse features.
            edge_index: [2, E]; edges are made undirected and loops dropped, as `train` does.
            edge_weight: [E], above 0; None: 1.
            edge_type: [E], relations, which models rgcn, rsage and rgat read.
            y: [N] classes, or [N, C], or the numbers of a regression; and
            train_mask: [N], the nodes whose labels the model was trained on. Only class means, label augmentation and
                Correct & Smooth read them; None: the nodes are new. Without them such a model warns.
            held_out: [N], validation and test nodes of an inductive run; read where y is.
            edge_attr: [E, G], columns of edges, which models gine and gatv2 that were trained on them read. Of a pair that
                is listed twice the first row counts.
            val_mask: [N], the validation nodes of the site, by whose classes y a model with `site_shares` moves logits;
                None: it does not move them.
        """
        data = Inputs(self.spec, x, edge_index, edge_weight, edge_type, y, train_mask, held_out, edge_attr, val_mask)
        self._warn_of_labels(data)
        out = self._site_shares(self._outputs(data), data)
        return self._unit("mean") + self._unit("deviation") * out if self.spec["task"] == "regression" else out

    def _outputs(self, data: Inputs) -> torch.Tensor:
        if self.spec["encoder"]["kind"] == "closed":
            return _ClassMeans(self, data)()
        h = self._encode(data)
        for k, s in enumerate(self.spec["layers"], 1):
            h = self._layer(k, s, h, data)
        if self.spec.get("correct_smooth"):
            h = self._correct_and_smooth(h, data)
        return h

    def _warn_of_labels(self, data: Inputs) -> None:
        s, e = self.spec, self.spec["encoder"]
        train = (s.get("closed") or e.get("classes") or {}).get("leave_out") or e.get("labels") or s.get("correct_smooth")
        reads = (("training", train, data.train_mask), ("validation", s.get("site_shares"), data.val_mask))
        lacks = [name for name, read, mask in reads if read and (data.y is None or mask is None or not mask.any())]
        if lacks:
            _program.warn(
                f"the model reads the labels of {' and '.join(lacks)} nodes, and no such node has one: "
                "predictions for the nodes of the training run differ from the run's"
            )

    def _site_shares(self, out: torch.Tensor, data: Inputs) -> torch.Tensor:  # (17)
        s = self.spec.get("site_shares")
        if not s or data.y is None or data.val_mask is None:
            return out
        y = data.y if data.y.dim() == 2 else data.y[:, None] == torch.arange(out.shape[1], device=out.device)
        own = (y & data.val_mask[:, None]).double()
        soft = torch.softmax(out.double() / s["temperature"], 1) * own.sum(1, keepdim=True)
        move = torch.log((1 + own.sum(0) - own) / (1 + soft.sum(0) - soft))
        return out + (torch.round(4096 * s["scale"] * move) / 4096).to(out.dtype)

    def _linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        y = x @ self.get_parameter(name + ".weight")
        return y + self.get_parameter(name + ".bias") if name + ".bias" in self.names else y

    def _head(self, name: str, x: torch.Tensor) -> torch.Tensor:
        k = 0
        while f"{name}.{k}.weight" in self.names:
            x = self._linear(f"{name}.{k}", torch.relu(x) if k else x)
            k += 1
        return x

    def _layer_norm(self, name: str, y: torch.Tensor) -> torch.Tensor:  # (14)
        mean, var = y.mean(1, keepdim=True), y.var(1, keepdim=True, unbiased=False)
        return (y - mean) / torch.sqrt(var + 1e-5) * self.get_parameter(name + ".gain") + self.get_parameter(name + ".bias")

    def _batch_norm(self, name: str, y: torch.Tensor) -> torch.Tensor:  # (15)
        p = self.get_parameter
        return (y - p(name + ".mean")) / torch.sqrt(p(name + ".variance") + 1e-5) * p(name + ".gain") + p(name + ".bias")

    def _normed(self, x: torch.Tensor) -> torch.Tensor:  # (4), (19)
        e = self.spec["encoder"]
        if e.get("unit_sum"):
            return _over(x, x.abs().sum(1, keepdim=True))
        return _over(x, x.norm(dim=1, keepdim=True)) if e.get("l2_norm") else x

    def _encode(self, data: Inputs) -> torch.Tensor:
        e, x = self.spec["encoder"], self._normed(data.x)
        if e["kind"] == "pca":  # (5)
            x = x @ self.get_parameter("encoder.proj.weight")
            x = _over(x, x.norm(dim=1, keepdim=True))
            return torch.cat([x, 4 * _ClassMeans(self, data)()], 1) if e.get("classes") else x  # (5b)
        if e["kind"] == "mlp":  # (6)
            x = torch.relu(self._layer_norm("encoder.norm", self._linear("encoder.self", x)))
            return self._head("encoder.head", x) if self.spec["carry"] == "scores" or not self.spec["layers"] else x
        if e["kind"] not in ("raw", "sign"):
            raise NotImplementedError(f"there is no torch module of encoder {e['kind']}: use run.predict(data)")
        if e.get("labels"):  # (7)
            x = torch.cat([x, self._given(data)], 1)
        if e["kind"] == "sign":  # (8)
            adj, parts = data.edges.gcn(), [x]
            for _ in range(e["hops"]):
                parts.append(adj.sum(parts[-1]))
            x = torch.cat(parts, 1)
        return x

    def _unit(self, name: str) -> torch.Tensor:
        """Returns the means or deviations of numbers, [C]."""
        return torch.tensor([u[name] for u in self.spec["units"]], device=next(self.parameters()).device)

    def _given(self, data: Inputs) -> torch.Tensor:
        """Returns the training labels as rows [N, C], zeros elsewhere."""
        given = data.x.new_zeros(data.n, self.spec["classes"])
        if data.y is None or data.train_mask is None:
            return given
        if data.y.is_floating_point():
            standard = (data.y.reshape(data.n, -1) - self._unit("mean")) / self._unit("deviation")
            return torch.where(_told(data)[:, None], standard, given)
        if data.y.dim() == 2:
            return torch.where(data.train_mask[:, None], data.y.to(given.dtype), given)
        rows = torch.nonzero(data.train_mask & (data.y >= 0))[:, 0]
        given[rows, data.y[rows]] = 1
        return given

    def _layer(self, k: int, s: dict[str, Any], x: torch.Tensor, data: Inputs) -> torch.Tensor:
        name = f"layer{k}"
        y = self._convolution(name, s, x, data)
        if s.get("norm"):
            y = self._layer_norm(name + ".norm", y)
        if s.get("batch_norm"):
            y = self._batch_norm(name + ".norm", y)
        act = s.get("act", "")
        y = torch.relu(y) if act == "relu" else nn.functional.elu(y) if act == "elu" else y
        if s.get("residual"):
            y = y + (self._linear(name + ".residual", x) if name + ".residual.weight" in self.names else x)
        if self.spec["carry"] == "scores" or k == len(self.spec["layers"]):
            y = self._head(name + ".head", y)
        return y

    def _convolution(self, name: str, s: dict[str, Any], x: torch.Tensor, data: Inputs) -> torch.Tensor:
        hops, conv = max(s.get("hops", 1), 1), s["conv"]
        if conv == "gcn":  # (9)
            return self._linear(name + ".nbr", data.edges.gcn().hops(x, hops))
        if conv == "sage":  # (10)
            return self._linear(name + ".self", x) + self._linear(name + ".nbr", data.edges.mean().hops(x, hops))
        if conv == "sage-sum":  # (10a)
            return self._linear(name + ".self", x) + self._linear(name + ".nbr", data.edges.hops(x, hops))
        if conv == "sage-pool":  # (10b)
            z = torch.relu(self._linear(name + ".pre", x))
            at = data.edges.dst[:, None].expand(-1, z.shape[1])
            pooled = z.new_zeros(data.n, z.shape[1]).scatter_reduce(0, at, z[data.edges.src], "amax")  # z is not negative
            return self._linear(name + ".self", x) + self._linear(name + ".nbr", pooled)
        if conv == "gin":  # (11)
            z = self._linear(name + ".nbr", data.edges.with_loops().hops(x, hops))
            return self._linear(name + ".post", torch.relu(z))
        if conv == "gine":  # (11d)
            message = self._linear(name + ".pre", x)[data.edges.src] + self.get_parameter(name + ".edge.bias")
            if s.get("edge_columns"):
                message = message + data.edges.columns @ self.get_parameter(name + ".edge.weight")
            message = torch.relu(message)
            h = self._linear(name + ".self", x)
            h = h + _into(torch.zeros_like(h), data.edges.dst, message)
            return self._linear(name + ".post", torch.relu(self._linear(name + ".nbr", h)))
        if conv in ("gat", "gatv2"):
            return self._attention(name, s, x, data)
        if conv in ("rgcn", "rsage"):
            return self._typed(name, s, x, data)
        if conv == "rgat":
            return self._typed_attention(name, s, x, data)
        if conv == "appnp":  # (13)
            first, adj, alpha = self._linear(name + ".pre", x), data.edges.gcn(), s["teleport"]
            z = first
            for _ in range(hops):
                z = (1 - alpha) * adj.sum(z) + alpha * first
            return z
        if conv == "sign":  # (13b)
            parts = s["hops"] + 1
            w = self.get_parameter(name + ".self.weight").reshape(parts, s["in"] // parts, -1)
            y = torch.cat([p @ w[k] for k, p in enumerate(x.chunk(parts, 1))], 1)
            return y + self.get_parameter(name + ".self.bias") if name + ".self.bias" in self.names else y
        if conv == "mlp":
            return self._linear(name + ".self", x)
        raise NotImplementedError(f"{name}: there is no torch module of convolution {conv}: use run.predict(data)")

    def _attention(self, name: str, s: dict[str, Any], x: torch.Tensor, data: Inputs) -> torch.Tensor:  # (11b), (11c)
        z = self._linear(name + ".pre", x).reshape(data.n, s["heads"], -1)
        g = data.edges.with_loops()
        p = self.get_parameter
        if s["conv"] == "gat":
            e = (z * p(name + ".attention.src")).sum(2)[g.src] + (z * p(name + ".attention.dst")).sum(2)[g.dst]
            e = nn.functional.leaky_relu(e, 0.2)
        else:
            u = z[g.src] + self._linear(name + ".dst", x).reshape(data.n, s["heads"], -1)[g.dst]
            if s.get("edge_columns"):
                u = u + (g.columns @ p(name + ".attention.edge")).reshape(u.shape)
            e = (nn.functional.leaky_relu(u, 0.2) * p(name + ".attention.vector")).sum(2)
        h = _attended(torch.zeros_like(z), g.dst, e, z[g.src])
        h = h.mean(1) if s.get("average") else h.reshape(data.n, -1)
        return h + p(name + ".post.bias") if name + ".post.bias" in self.names else h

    def _typed(self, name: str, s: dict[str, Any], x: torch.Tensor, data: Inputs) -> torch.Tensor:  # (12), (12b)
        y, maps = self._linear(name + ".self", x), self._maps(name + ".nbr", s)
        for r, edges in enumerate(data.relations):
            y = y + edges.mean().sum(x) @ maps[r]
            if s["conv"] == "rsage":
                reached = (edges.degree() > 0)[:, None]
                y = y + torch.where(reached, x @ maps[len(data.relations) + r], torch.zeros_like(y))
        return y

    def _typed_attention(self, name: str, s: dict[str, Any], x: torch.Tensor, data: Inputs) -> torch.Tensor:  # (12c)
        maps, heads, p = self._maps(name + ".attention", s), s["heads"], self.get_parameter
        own = self._linear(name + ".self", x).reshape(data.n, heads, -1)
        dst, logit, rows = [], [], []
        for r, g in enumerate(data.relations):
            z = (x @ maps[r]).reshape(data.n, heads, -1)
            to, of = ((z * p(f"{name}.attention.{v}").reshape(-1, heads, z.shape[2])[r]).sum(2) for v in ("dst", "src"))
            dst.append(g.dst)
            logit.append(nn.functional.leaky_relu(to[g.dst] + of[g.src], 0.2))
            rows.append(z[g.src])
        h = _attended(own, torch.cat(dst), torch.cat(logit), torch.cat(rows))
        h = h.mean(1) if s.get("average") else h.reshape(data.n, -1)
        return h + p(name + ".post.bias") if name + ".post.bias" in self.names else h

    def _maps(self, name: str, s: dict[str, Any]) -> torch.Tensor:
        """Returns the matrices of relations, one after the other."""
        p = self.get_parameter
        if name + ".bases" in self.names:
            bases = p(name + ".bases")
            return torch.tensordot(p(name + ".coefficients"), bases.reshape(-1, s["in"], bases.shape[1]), 1)
        w = p(name + ".weight")
        return w.reshape(-1, s["in"], w.shape[1])

    def _correct_and_smooth(self, logits: torch.Tensor, data: Inputs) -> torch.Tensor:  # (16)
        c, adj, truth = self.spec["correct_smooth"], data.edges.symmetric(), self._given(data)
        known = truth.sum(1, keepdim=True) > 0

        def spread(first: torch.Tensor, alpha: float, low: float) -> torch.Tensor:
            z = first
            for _ in range(c["steps"]):
                z = (alpha * adj.sum(z) + (1 - alpha) * first).clamp(low, 1)
            return z

        p = torch.softmax(logits, 1)
        error = torch.where(known, truth - p, torch.zeros_like(p))
        far = spread(error, c["correct"], -1)
        scale = error.abs().sum() / known.sum() / far.abs().sum(1, keepdim=True)
        scale = torch.where(scale <= 1000, scale, torch.ones_like(scale))
        p = torch.where(known, truth, p + scale * far)
        p = spread(p, c["smooth"], 0).clamp(min=1e-9)
        return torch.log(p / p.sum(1, keepdim=True))


def _into(h: torch.Tensor, at: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Adds each row to the row of h that at names. index_add would do, but is wrong in ONNX if at names a row twice."""
    return h.scatter_add(0, at.reshape(-1, *[1] * (rows.dim() - 1)).expand_as(rows), rows)


def _attended(h: torch.Tensor, dst: torch.Tensor, e: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Adds to h [N, heads, D], for each destination and head, its edges' rows weighed by the softmax of their logits e."""
    n, heads = h.shape[:2]
    top = e.new_full((n, heads), -math.inf).scatter_reduce(0, dst[:, None].expand(-1, heads), e, "amax")
    w = torch.exp(e - top[dst])
    alpha = w / _into(w.new_zeros(n, heads), dst, w)[dst]
    return _into(h, dst, alpha[:, :, None] * rows)


def _over(x: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """Divides rows by their size; a row of zeros stays."""
    return x / torch.where(size > 0, size, torch.ones_like(size))


def _told(data: Inputs) -> torch.Tensor:
    """Returns which nodes are training nodes with a label, [N]."""
    if data.y.is_floating_point():
        return data.train_mask & ~data.y.reshape(data.n, -1).isnan().all(1)
    return data.train_mask & (data.y >= 0) if data.y.dim() == 1 else data.train_mask


class _ClassMeans:
    """Rounds of class means, (19) to (24)."""

    def __init__(self, m: Model, data: Inputs):
        self.m, self.data, self.s = m, data, m.spec.get("closed") or m.spec["encoder"]["classes"]
        self.classes = m.spec["classes"]
        self.width = self.classes
        if self.s.get("residual") and not self.s.get("multi") and not self.s.get("numbers"):
            self.width = max(self.classes - 1, 1)
        x = data.x
        if self.s.get("adjacent"):
            x = _neighbour_columns(data, self.s["adjacent"])
        self.x = m._normed(x)
        self.sparse = True if self.s.get("adjacent") else data.sparse
        self.values = (self.x != 0).long().sum(1)

    def __call__(self) -> torch.Tensor:
        s, p = self.s, self.m.get_parameter
        adj = self.data.edges.mean() if s.get("mean") else self.data.edges.gcn()
        given, train, others = None, None, None
        if s.get("leave_out") and self.data.train_mask is not None:
            given = self.m._given(self.data)
            train = _told(self.data)
            others = ~train & train.any()  # without a training node nothing is left out
            if s.get("inductive") and self.data.held_out is not None:
                others = others & ~self.data.held_out
        columns: list[torch.Tensor] = []
        logits = self.x.new_zeros(self.data.n, self.classes)
        if given is not None and s.get("residual") and not s.get("numbers"):
            first = p("round1.counts")[0] - (0.5 if s.get("multi") else 0)
            logits = torch.cat([logits[:, : self.width] + first, logits[:, self.width :]], 1)
        for r in range(1, s["rounds"] + 1):
            z = self.x @ p(f"round{r}.means")  # (20)
            alone = r <= s.get("rounds_alone", 0)
            if given is not None and (alone or not s.get("directions_only")):  # directions have no own part
                left = self._leave_out(r, z[:, : self.width], self._targets(r, given, train, others, logits), train)
                z = torch.cat([left, z[:, self.width :]], 1)
            own = z
            if not s.get("own_rounds") and (not alone or s.get("logit_hops")):
                z = self._coarse(z, 1, 0)
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
                columns.append(torch.log1p(self.data.edges.degree())[:, None].to(z.dtype))
            if r == 1 and s.get("own_features"):
                mean, scale = p("encoder.own")
                columns.append((self.x - mean) * scale)
            if s.get("own_rounds", 0) and r > s["own_rounds"]:
                columns += self._sums(logits)
            logits = self._logits(r, torch.cat(columns, 1))
        return logits

    def _targets(self, r: int, given: Any, train: Any, others: Any, logits: torch.Tensor) -> torch.Tensor:
        s = self.s
        if s.get("residual"):
            left = given[:, : self.width] - logits[:, : self.width] - (0.5 if s.get("multi") else 0)
            return torch.where(train[:, None], left.clamp(-4, 4), torch.zeros_like(left))
        soft = torch.softmax(8 * logits, 1) if r > 1 else torch.zeros_like(given)
        return torch.where(train[:, None], given, torch.where(others[:, None], soft, torch.zeros_like(given)))

    def _leave_out(self, r: int, z: torch.Tensor, target: torch.Tensor, train: torch.Tensor) -> torch.Tensor:  # (21)
        p = self.m.get_parameter
        inverse, centre = p("encoder.inverse"), p("encoder.centre")
        n, scale, *lead = p(f"round{r}.counts")[:, : self.width]
        quad = (self.x * self.x * inverse).sum(1, keepdim=True)
        shift = (self.x * centre * inverse).sum(1, keepdim=True)
        if self.s.get("residual"):
            return z - target * quad * scale
        rest = n - target
        part = torch.where(rest > target, target / torch.where(rest > target, rest, torch.ones_like(rest)), torch.ones_like(rest))
        left = z + part * (z + scale * (shift - quad))
        if lead:
            left = torch.where(train[:, None], left - lead[0], left)
        return torch.where((target > 0) & (n > 0), left, z)

    def _coarse(self, z: torch.Tensor, deviation: float, fine: float) -> torch.Tensor:
        """Rounds the rows of sparse features of few values, whose deviation is given, to no finer a grid than fine."""
        coarse, columns = self.s.get("coarse", 0), int(self.x.shape[1])
        if not coarse or self.sparse is False:
            return z
        steps = [math.sqrt(2 * math.pi * math.e) * 2 ** (-self._told(columns, v) / coarse) if v else 0.0 for v in range(columns + 1)]
        grids = [deviation * max(step if step >= 1 / 64 else 0.0, fine) for step in steps]
        grid = torch.tensor(grids, dtype=torch.float64, device=z.device)[self.values][:, None]
        used = (grid > 0) & self.sparse
        rounded = torch.round(z.double() / torch.where(used, grid, torch.ones_like(grid))) * grid
        return torch.where(used, rounded.to(z.dtype), z)

    def _told(self, features: int, values: int) -> float:
        def name(v: int) -> float:
            return (math.lgamma(features + 1) - math.lgamma(v + 1) - math.lgamma(features - v + 1)) / math.log(2)

        part, each = (0.3, 1.2) if self.s.get("own_exact") else (0.5, 1.6)
        if self.s.get("adjacent"):
            return part * name(values)
        return min(part * name(values), max(part * name(min(values, 5)), each * values))

    def _sums(self, logits: torch.Tensor) -> list[torch.Tensor]:
        rows = torch.softmax(8 * logits.double(), 1).to(logits.dtype) - 1 / self.classes
        rows = self._coarse(_over(rows, rows.norm(dim=1, keepdim=True)), 1 / math.sqrt(self.classes), 1 / 64)
        sums = self.data.edges.plain().sum(rows)
        return [sums, _over(sums, sums.norm(dim=1, keepdim=True)), logits]

    def _logits(self, r: int, columns: torch.Tensor) -> torch.Tensor:  # (23), (24)
        p = self.m.get_parameter
        if self.s.get("random"):
            z = ((columns - p(f"round{r}.mean")) * p(f"round{r}.scale")) @ p(f"round{r}.frequency")
            columns = torch.cat([columns, math.sqrt(2) * torch.cos(z + p(f"round{r}.phase"))], 1)
        return columns @ p(f"round{r}.weight") + p(f"round{r}.bias")


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _neighbour_columns(data: Inputs, columns: int) -> torch.Tensor:
    """Returns features of nodes that have none: a one for the node and each neighbour, hashed if they are too many."""
    number = np.arange(data.n, dtype=np.uint64)
    sign = np.ones(data.n, np.float32)
    if data.n > columns:
        with np.errstate(over="ignore"):
            h = np.uint64(0xCBF29CE484222325)
            for c in b"columns of neighbours":
                h = (h ^ np.uint64(c)) * np.uint64(0x100000001B3)
            golden = np.uint64(0x9E3779B97F4A7C15)
            key = _mix(_mix(np.array([0x486564646C652121], np.uint64)) + golden * (h + np.uint64(1)))
            drawn = _mix(key ^ _mix(number + golden))
        number, sign = (drawn >> np.uint64(1)) % np.uint64(columns), 1 - 2 * (drawn & np.uint64(1)).astype(np.float32)
    column = torch.from_numpy(number.astype(np.int64)).to(data.x.device)
    values = torch.from_numpy(sign).to(data.x.device)
    g = data.edges.with_loops()
    x = values.new_zeros(data.n * columns).index_add(0, g.dst * columns + column[g.src], values[g.src])
    return x.reshape(data.n, columns)


def module(file: _program.Path) -> Model:
    """Returns the model of a model file, in evaluation mode, as a torch.nn.Module; Model.forward says what it reads."""
    return Model(*_run.read_model(file)).eval()


def inputs(data: Any, split: int = 0) -> dict[str, torch.Tensor]:
    """Returns what Model.forward takes, as keywords, of data as `train` takes it.

    split is the column of masks that have several.
    """
    g = _graph.graph_of(data)
    if not isinstance(g, _graph.Graph):
        raise _program.InputError("data must be a graph: tables become one by `heddle import`")
    masks = [None if m is None else (m if m.ndim == 1 else m[:, split]).astype(bool) for m in (g.train_mask, g.val_mask, g.test_mask)]
    x = np.zeros((g.num_nodes, 0), np.float32) if g.x is None else g.x
    out: dict[str, Any] = {"x": x if isinstance(x, np.ndarray) else None, "edge_index": g.edge_index, "y": g.y}
    out.update(edge_weight=g.edge_weight, edge_type=g.edge_type, edge_attr=g.edge_attr)
    out["train_mask"], out["val_mask"] = masks[:2]
    held = [m for m in masks[1:] if m is not None]
    out["held_out"] = np.logical_or.reduce(held) if held else None
    if out["edge_weight"] is not None:
        out["edge_weight"] = out["edge_weight"].astype(np.float32)
    tensors = {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in out.items() if v is not None}
    if isinstance(x, _graph.SparseRows):
        rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        at = torch.from_numpy(np.stack([rows, x.indices.astype(np.int64)]))
        tensors["x"] = torch.sparse_coo_tensor(at, torch.from_numpy(x.data.astype(np.float32)), x.shape)
    return tensors
