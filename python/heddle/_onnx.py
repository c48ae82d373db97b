"""Models in the format of ONNX, which torch.onnx.export writes. This module alone imports onnx."""

from __future__ import annotations

import inspect
import io
import json
import os
import pathlib
import warnings
from typing import Any

import onnx
import onnx.version_converter
import torch

from heddle import _program, _run
from heddle import torch as _torch

# Inputs by name, with their types and extents. A file has those that its model reads.
_INPUTS: dict[str, tuple[torch.dtype, str]] = {
    "x": (torch.float32, "NF"),
    "edge_index": (torch.int64, "2E"),
    "edge_weight": (torch.float32, "E"),
    "edge_type": (torch.int64, "E"),
    "edge_attr": (torch.float32, "EG"),
    "labels": (torch.float32, "NC"),
    "train_mask": (torch.bool, "N"),
    "val_mask": (torch.bool, "N"),
    "held_out": (torch.bool, "N"),
    "sparse": (torch.bool, ""),
}


class _Model(_torch.Model):
    """A model that reads _INPUTS in their order and returns the outputs of a file."""

    def forward(self, x, edge_index, edge_weight, edge_type, edge_attr, labels, train_mask, val_mask, held_out, sparse):  # type: ignore
        y = labels if self.spec["task"] == "regression" else labels != 0
        data = _torch.Inputs(self.spec, x, edge_index, edge_weight, edge_type, y, train_mask, held_out, edge_attr, val_mask)
        data.sparse = sparse
        out = self._site_shares(self._outputs(data), data)
        if self.spec["task"] == "regression":
            return self._unit("mean") + self._unit("deviation") * out
        scaled = out / torch.tensor(self.card.get("temperatures") or [self.card.get("temperature") or 1.0])
        return out, torch.sigmoid(scaled) if self.spec["task"] == "multi" else torch.softmax(scaled, 1)


@torch.onnx.symbolic_helper.parse_args("v", "i", "v", "v", "s", "b")
def _most(g: Any, h: Any, dim: int, index: Any, rows: Any, reduction: str, _: bool) -> Any:
    """Writes scatter_reduce as one node. Torch writes a branch for a rank of 0, and onnxruntime warns of its shapes."""
    return g.op("ScatterElements", h, index, rows, axis_i=dim, reduction_s={"amax": "max", "amin": "min"}[reduction])


def export(file: _program.Path, to: _program.Path) -> pathlib.Path:
    """Writes the model of a model file as ONNX, operator set 18."""
    model = _Model(*_run.read_model(file)).eval()
    spec = model.spec
    if spec.get("decoder"):
        raise _program.InputError("a model of links scores pairs of nodes, which ONNX files of Heddle do not: use run.recommend()")
    if (spec.get("closed") or {}).get("adjacent"):
        raise _program.InputError("a model of nodes without features hashes their neighbours, which ONNX cannot express: use run.predict(data)")
    # A path of five nodes, for torch to follow the model; N and E of other graphs may be any.
    columns = max((layer.get("edge_columns", 0) for layer in spec["layers"] or []), default=0)
    extents = {"N": 5, "E": 4, "2": 2, "F": spec["features"], "C": spec["classes"], "G": columns}
    graph = {name: torch.ones([extents[d] for d in shape], dtype=kind) for name, (kind, shape) in _INPUTS.items()}
    graph["edge_index"], graph["edge_type"] = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]), torch.zeros(4, dtype=torch.int64)
    axes = {name: {k: d for k, d in enumerate(shape) if d in "NE"} for name, (_, shape) in _INPUTS.items()}
    outputs = ["prediction"] if spec["task"] == "regression" else ["logits", "probabilities"]
    axes.update({name: {0: "N"} for name in outputs})
    # Newer versions of torch trace only if dynamo is off, and older ones do not know the word.
    tracing = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    written = io.BytesIO()
    torch.onnx.register_custom_op_symbolic("aten::scatter_reduce", _most, 16)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # torch warns of each constant
            torch.onnx.export(model, tuple(graph.values()), written, input_names=list(graph), output_names=outputs,
                              dynamic_axes=axes, opset_version=17, **tracing)  # fmt: skip
    except (NotImplementedError, torch.onnx.errors.OnnxExporterError) as e:
        raise _program.InputError(f"torch {torch.__version__} cannot export this model: {e}") from e
    finally:
        torch.onnx.unregister_custom_op_symbolic("aten::scatter_reduce", 16)
    # ScatterElements has maximum and minimum since operator set 18, but torch 2.2 writes 17 at most.
    out = onnx.version_converter.convert_version(onnx.load_model_from_string(written.getvalue()), 18)
    del out.graph.value_info[:]  # shapes that torch guessed
    classes = model.card.pop("classes", None)
    onnx.helper.set_model_props(out, {"card": json.dumps(model.card), "classes": json.dumps(classes)})
    onnx.save(out, os.fspath(to))
    return pathlib.Path(to)
