"""Models that start from layers of PyTorch Geometric."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from heddle import _graph, _program, _run


def _transposed(name: str) -> bool:
    """Says whether a tensor of ours has inputs as rows, which PyG has as columns."""
    return name.endswith(".weight") or name == "attention.edge"


def _names(conv: str, keys: set[str]) -> dict[str, str]:
    """Returns PyG's name of each tensor of a layer, whose keys in PyG are given."""
    if conv == "gcn":
        return {"nbr.weight": "lin.weight", "nbr.bias": "bias"}
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
    raise _program.InputError(f"there are no PyG names of the tensors of {conv}")


_TENSOR = re.compile(r"(^|(?<=\.))(lin(_l|_r|_rel|_root|_src|_dst|_edge)?\.(weight|bias)|att(_src|_dst)?|bias|nn\.(lins\.)?[0-9]+\.(weight|bias)|eps)$")


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
        if np.array_equal(theirs.get("lin_src.weight", []), theirs.get("lin_dst.weight", [])):
            theirs.pop("lin_dst.weight", None)  # PyG before 2.5 lists the one map of both ends twice
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
