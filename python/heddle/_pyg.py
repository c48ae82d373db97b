"""Layers of PyTorch Geometric with the weights of a model, and the other way round."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any, Mapping

import numpy as np

from heddle import _graph, _program, _run


def to_pyg(file: _program.Path) -> Any:
    """Returns the model with layers of torch_geometric.nn, as `convs`; forward is that of heddle.torch.Model.

    gcn becomes GCNConv (SGConv with several hops), sage SAGEConv, gat GATConv, gatv2 GATv2Conv, gin GINConv, appnp APPNP
    behind a Linear, mlp a Linear. SAGEConv and the layers of attention read no edge weights; GATv2Conv reads columns of edges.
    """
    import torch

    from heddle import torch as models

    spec, card, tensors = _run.read_model(file)
    if not spec["layers"]:
        raise _program.InputError("a model without graph layers, such as one of class means, has no layers of PyG: use torch_module()")

    class Model(models.Model):
        def _convolution(self, name: str, s: dict[str, Any], x: Any, data: Any) -> Any:
            conv = self.convs[int(name.removeprefix("layer")) - 1]
            edges = data.edges
            index = torch.stack([edges.src, edges.dst])
            if s["conv"] == "mlp":
                return conv(x)
            if s["conv"] == "appnp":
                return conv[1](conv[0](x), index, edges.weight)
            if s.get("edge_columns"):
                return conv(x, index, edges.columns)
            return conv(x, index, edges.weight) if s["conv"] in ("gcn", "sage-sum") else conv(x, index)

    rest = {n: t for n, t in tensors.items() if not re.match(r"layer\d+\.(nbr|self|pre|dst|post|attention)\.", n)}
    model = Model(spec, card, rest)
    model.convs = torch.nn.ModuleList(
        _layer(s, {n.split(".", 1)[1]: t for n, t in tensors.items() if n.startswith(f"layer{k}.")}) for k, s in enumerate(spec["layers"], 1)
    )
    return model.eval()


def _layer(s: dict[str, Any], t: dict[str, np.ndarray]) -> Any:
    import torch
    from torch_geometric import nn

    conv, width_in, out, hops = s["conv"], s["in"], s["out"], max(s.get("hops", 1), 1)
    if conv == "gcn" and hops > 1:
        layer = nn.SGConv(width_in, out, K=hops, bias="nbr.bias" in t)
    elif conv == "gcn":
        layer = nn.GCNConv(width_in, out, bias="nbr.bias" in t)
    elif conv == "sage" and hops == 1:
        layer = nn.SAGEConv(width_in, out, bias="nbr.bias" in t)
    elif conv == "sage-sum" and hops == 1:
        layer = nn.GraphConv(width_in, out, bias="nbr.bias" in t)
    elif conv in ("gat", "gatv2"):
        heads, concat = s["heads"], not s.get("average")
        columns: dict[str, Any] = {"edge_dim": s["edge_columns"], "fill_value": 0.0} if s.get("edge_columns") else {}
        of = nn.GATConv if conv == "gat" else nn.GATv2Conv
        layer = of(width_in, out // heads if concat else out, heads, concat, bias="post.bias" in t, **columns)
    elif conv == "gin" and hops == 1:
        inner = t["nbr.weight"].shape[1]
        layer = nn.GINConv(torch.nn.Sequential(torch.nn.Linear(width_in, inner), torch.nn.ReLU(), torch.nn.Linear(inner, out, bias="post.bias" in t)))
    elif conv == "mlp":
        layer = torch.nn.Linear(width_in, out, bias="self.bias" in t)
    elif conv == "appnp":
        layer = torch.nn.ModuleList([torch.nn.Linear(width_in, out, bias="pre.bias" in t), nn.APPNP(hops, s["teleport"])])
    else:
        raise _program.InputError(f"there is no layer of PyG for {conv} with {hops} hops: use torch_module()")
    state = layer.state_dict()
    names = _names(conv, set(state), hops)
    for ours, theirs in names.items():
        if ours in t:
            value = torch.from_numpy(t[ours])
            state[theirs] = (value.T if _transposed(ours) else value).reshape(state[theirs].shape)
    if missing := set(state) - {theirs for ours, theirs in names.items() if ours in t}:
        state.update({name: torch.zeros_like(state[name]) for name in missing})
    layer.load_state_dict(state)
    return layer


def _transposed(name: str) -> bool:
    """Says whether a tensor of ours has inputs as rows, which PyG has as columns."""
    return name.endswith(".weight") or name == "attention.edge"


def _names(conv: str, keys: set[str], hops: int = 1) -> dict[str, str]:
    """Returns PyG's name of each tensor of a layer, whose keys in PyG are given."""
    if conv == "gcn":
        return {"nbr.weight": "lin.weight", "nbr.bias": "lin.bias" if hops > 1 else "bias"}
    if conv == "sage":
        return {"nbr.weight": "lin_l.weight", "nbr.bias": "lin_l.bias", "self.weight": "lin_r.weight"}
    if conv == "sage-sum":
        return {"nbr.weight": "lin_rel.weight", "nbr.bias": "lin_rel.bias", "self.weight": "lin_root.weight"}
    if conv == "gat":
        lin = "lin.weight" if "lin.weight" in keys else "lin_src.weight"
        return {"pre.weight": lin, "attention.src": "att_src", "attention.dst": "att_dst", "post.bias": "bias"}
    if conv == "gatv2":
        return {"pre.weight": "lin_l.weight", "pre.bias": "lin_l.bias", "dst.weight": "lin_r.weight", "dst.bias": "lin_r.bias",
                "attention.vector": "att", "attention.edge": "lin_edge.weight", "post.bias": "bias"}  # fmt: skip
    if conv == "gin":
        first, second = ("nn.lins.0", "nn.lins.1") if "nn.lins.0.weight" in keys else ("nn.0", "nn.2")
        return {"nbr.weight": first + ".weight", "nbr.bias": first + ".bias", "post.weight": second + ".weight", "post.bias": second + ".bias"}
    if conv == "mlp":
        return {"self.weight": "weight", "self.bias": "bias"}
    if conv == "appnp":
        return {"pre.weight": "0.weight", "pre.bias": "0.bias"}
    raise _program.InputError(f"there are no PyG names of the tensors of {conv}")


_TENSOR = re.compile(r"(^|(?<=\.))(lin(_l|_r|_rel|_root|_src|_edge)?\.(weight|bias)|att(_src|_dst)?|bias|nn\.(lins\.)?[0-9]+\.(weight|bias)|eps)$")


def initial(state: Mapping[str, Any], template: _program.Path, file: _program.Path) -> pathlib.Path:
    """Writes a model file that `init` reads, with the layers of a PyG state dict, and returns it.

    Args:
        state: state_dict() of a module of GCNConv, SAGEConv, GraphConv, GATConv, GATv2Conv or GINConv layers, in order.
        template: model file of the same architecture.
    """
    spec, _, tensors = _run.read_model(template)
    layers: dict[str, dict[str, Any]] = {}
    for key, value in state.items():
        found = _TENSOR.search(key)
        if found is None:
            raise _program.InputError(f"{key} must be a tensor of a graph layer of PyG (got one of another module)")
        layers.setdefault(key[: found.start()], {})[found.group()] = _graph.array(value)
    if len(layers) != len(spec["layers"]):
        raise _program.InputError(f"the state dict must have the {len(spec['layers'])} layers of the run (got {len(layers)}: {', '.join(layers)})")
    filled = dict(tensors)
    for k, (s, (prefix, theirs)) in enumerate(zip(spec["layers"], layers.items()), 1):
        eps = theirs.pop("eps", np.zeros(1))
        if np.any(eps != 0):
            raise _program.InputError(f"{prefix}eps must be 0 (got {eps})")
        names = _names(s["conv"], set(theirs))
        for ours, name in names.items():
            full = f"layer{k}.{ours}"
            if full not in tensors:
                continue
            if name not in theirs:
                raise _program.InputError(f"the state dict has no {prefix}{name}, which is {full} of a {s['conv']} layer")
            value = theirs[name].T if _transposed(ours) else theirs[name]
            if value.size != tensors[full].size or _transposed(ours) and value.shape != tensors[full].shape:
                raise _program.InputError(f"{prefix}{name} must have the shape of {full}, {tensors[full].shape} (got {value.shape})")
            filled[full] = np.ascontiguousarray(value, np.float32).reshape(tensors[full].shape)
        if more := set(theirs) - set(names.values()):
            raise _program.InputError(f"{prefix}{sorted(more)[0]} is no tensor of a {s['conv']} layer")
    return _write(template, filled, pathlib.Path(file))


def _write(template: _program.Path, tensors: dict[str, np.ndarray], file: pathlib.Path) -> pathlib.Path:
    blob = pathlib.Path(template).read_bytes()
    size = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + size])
    body = bytearray(blob[8 + size :])
    for name, value in tensors.items():
        begin, end = header[name]["data_offsets"]
        body[begin:end] = np.ascontiguousarray(value, "<f4").tobytes()
    whole = blob[: 8 + size] + bytes(body)
    at, digest = _run.model_digest(whole)
    file.touch(0o600)  # names and texts of the tables are in it
    file.write_bytes(whole[:at] + digest + whole[at + 64 :])
    return file
