"""ONNX files give the logits of `heddle predict` in onnxruntime."""

import dataclasses
import json
import pathlib
import tempfile
import unittest
import unittest.mock
import warnings

import numpy as np
from test_heddle import needs, small
from test_torch import columned, numbers, sparse, told, typed

import heddle
from heddle import _run

BOUND = 1e-4
ENDS = "edge_index"
EDGES = ENDS + " edge_weight"


def part_of(graph, n=101):
    """The first n nodes of a graph as new ones: nothing of them was in training, and each fifth has no edge."""
    (a, b), fields = graph.edge_index, {}
    edges = (a < n) & (b < n) & (a % 5 > 0) & (b % 5 > 0)
    for f in dataclasses.fields(graph):
        value = getattr(graph, f.name)
        if f.name == "edge_index":
            fields[f.name] = value[:, edges]
        elif f.name.startswith("edge_") and value is not None:
            fields[f.name] = value[edges]
        elif f.name in ("x", "y", "site") and isinstance(value, np.ndarray):
            fields[f.name] = value[:n]
        elif isinstance(value, heddle.SparseRows):
            end = value.indptr[n]
            fields[f.name] = heddle.SparseRows(value.data[:end], value.indices[:end], value.indptr[: n + 1], (n, value.shape[1]))
        else:
            fields[f.name] = None
    return heddle.Graph(**fields)


@needs("torch", "onnx", "onnxruntime")
class Files(unittest.TestCase):
    def opened(self, run):
        import onnxruntime

        with tempfile.TemporaryDirectory() as t:
            return onnxruntime.InferenceSession(heddle.export_onnx(run, pathlib.Path(t) / "model.onnx"), providers=["CPUExecutionProvider"])

    def same(self, graph, inputs, **plan):
        """Trains, and compares the outputs of a file on the graph, also without labels, and on new nodes, and the names of its
        inputs behind x."""
        run = heddle.train(graph, progress=False, transport="memory", **plan)
        session = self.opened(run)
        if inputs is not None:
            self.assertEqual([i.name for i in session.get_inputs()], ["x", *inputs.split()])
        self.agree(run, session, graph, told=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # labels that the model reads are not there
            self.agree(run, session, dataclasses.replace(graph, train_mask=None, val_mask=None, test_mask=None), told=False)
            self.agree(run, session, part_of(graph), told=False)

    def agree(self, run, session, graph, told):
        n, classes, regression = graph.num_nodes, len(run.classes), graph.y.dtype.kind == "f"
        x = graph.x if isinstance(graph.x, np.ndarray) else graph.x.toarray()
        labels = graph.y.reshape(n, -1) if graph.y.ndim == 2 or regression else graph.y[:, None] == np.arange(classes)
        every = {
            "x": x,
            "edge_index": graph.edge_index.astype(np.int64),
            "edge_weight": np.ones(graph.edge_index.shape[1], np.float32) if graph.edge_weight is None else graph.edge_weight.astype(np.float32),
            "labels": (labels * (graph.train_mask | graph.val_mask)[:, None]).astype(np.float32) if told else np.zeros((n, classes), np.float32),
            "train_mask": graph.train_mask if told else np.zeros(n, bool),
            "val_mask": graph.val_mask if told else np.zeros(n, bool),
            "held_out": graph.val_mask | graph.test_mask if told else np.zeros(n, bool),
            "sparse": np.array(not isinstance(graph.x, np.ndarray)),
            "edge_type": graph.edge_type,
            "edge_attr": graph.edge_attr,
        }
        if regression:
            (got,) = session.run(["prediction"], {i.name: every[i.name] for i in session.get_inputs()})
            want = run.predict(graph)
            np.testing.assert_allclose(got, want, rtol=0, atol=BOUND * np.abs(want).max())
            return
        logits, probabilities = session.run(["logits", "probabilities"], {i.name: every[i.name] for i in session.get_inputs()})
        want = run.logits(graph)
        self.assertEqual(logits.shape, (n, classes))
        np.testing.assert_allclose(logits, want, rtol=0, atol=BOUND * max(1, np.abs(want).max()))
        np.testing.assert_allclose(probabilities, run.predict_proba(graph), rtol=0, atol=BOUND)

    def test_layers(self):
        graph = told()
        for model, plan in (
            ("gcn", {}),
            ("gcn", {"norm": "layer", "residual": True, "layers": 3}),
            ("sage", {"norm": "batch"}),
            ("sage-sum", {}),
            ("sage-pool", {}),
            ("gat", {}),
            ("gatv2", {}),
            ("gin", {}),
            ("gine", {}),
            ("appnp", {}),
            ("sign", {}),
            ("mlp", {}),
            ("gcn", {"label_inputs": 0.5}),
            ("mlp", {"correct_smooth": 10}),
            ("gcn", {"correct_smooth": 3, "label_inputs": 0.5}),
        ):
            inputs = EDGES if model in ("gcn", "sage", "sage-sum", "gin", "appnp", "sign") or plan else ENDS if model != "mlp" else ""
            labels = " labels train_mask" if "label_inputs" in plan or "correct_smooth" in plan else ""
            with self.subTest(model, **plan):
                self.same(graph, inputs + labels, method="full-batch", peers=1, model=model, rounds=3, **plan)

    def test_layer_wise(self):
        graph = told(edge_weight=1 + np.arange(small().edge_index.shape[1]) % 5)
        for inputs, plan in (
            (EDGES, {"encoder": "pca:6", "layers": 1, "rounds": 3}),
            (EDGES + " labels train_mask", {"rounds": 3, "keep_last": True}),
            (EDGES, {"rounds": 3, "keep_last": True, "model": "sage", "encoder": "mlp", "layer_output": "logits"}),
            (EDGES + " labels train_mask", {"rounds": 3, "keep_last": True, "model": "gin", "hops": 2, "row_norm": "l2"}),
        ):
            with self.subTest(**plan):
                self.same(graph, inputs, method="layer-wise", **plan)

    def test_class_means(self):
        rows = sparse()
        several = told(y=np.stack([rows.y == 0, rows.y >= 1, rows.y == 2], 1))
        own = " labels train_mask"
        for name, of, inputs, plan in (
            ("dense", told(), " sparse", {}),
            ("sparse", rows, " sparse", {}),
            ("residual", rows, " sparse", {"class_target": "residual"}),
            ("labels", rows, own + " sparse", {"class_target": "labels"}),
            ("inductive", rows, " sparse", {"inductive": True}),
            ("inductive, own part left out", rows, own + " held_out sparse", {"inductive": True, "leave_one_out": "true", "class_target": "labels"}),
            ("private edges", rows, None, {"epsilon": 4}),  # noise decides what the model reads
            ("several classes", several, " sparse", {}),
            ("demo", heddle.demo_graph(), own + " sparse", {}),
        ):
            with self.subTest(name):
                self.same(of, inputs if inputs is None else EDGES + inputs, **plan)

    def test_numbers(self):
        for inputs, plan in ((" labels train_mask", {"method": "class-means", "coarse_rows": False}), ("", {"method": "full-batch", "rounds": 5})):
            with self.subTest(**plan):
                self.same(numbers(), EDGES + inputs, **plan)

    def test_columns_of_edges(self):
        for model in ("gine", "gatv2"):
            with self.subTest(model):
                self.same(columned(), ENDS + " edge_attr", method="full-batch", peers=1, model=model, rounds=3)

    def test_types_of_edges(self):
        for reversed_too in (False, True):
            graph = typed(reversed_too)
            for model, plan in (("rgcn", {}), ("rgcn", {"hidden": 12, "layers": 3}), ("rgcn", {"bases": 1}), ("rsage", {"bases": 1}),
                                ("rsage", {}), ("rgat", {"heads": 2}), ("rgat", {"bases": 1})):  # fmt: skip
                with self.subTest(model, reversed_too=reversed_too, **plan):
                    inputs = (ENDS if model == "rgat" else EDGES) + " edge_type"
                    self.same(graph, inputs, method="full-batch", peers=1, model=model, rounds=3, **plan)

    def changed(self, run, change):
        """Exports the run as if change had been made to the spec and card of its file."""
        spec, card, tensors = _run.read_model(run.model_file)
        change(spec, card)
        with unittest.mock.patch.object(_run, "read_model", lambda _: (spec, card, tensors)):
            return self.opened(run)

    def test_what_a_file_says(self):
        import onnx

        names = ["well", "ill", "dead"]
        run = heddle.train(told(class_names=names), progress=False, transport="memory", method="full-batch", peers=1, model="sage-pool", rounds=1)
        with tempfile.TemporaryDirectory() as t:
            files = [heddle.export_onnx(run, pathlib.Path(t) / name).read_bytes() for name in "ab"]
        self.assertEqual(files[0], files[1])
        file = onnx.load_model_from_string(files[0])
        onnx.checker.check_model(file, full_check=True)
        self.assertEqual([(one.domain, one.version) for one in file.opset_import], [("", 18)])
        said = {one.key: json.loads(one.value) for one in file.metadata_props}
        self.assertEqual((said["card"]["dataset"], said["classes"]), ("graph", names))
        self.assertLess({n for n in run.weights() if n.endswith(".weight")}, {one.name for one in file.graph.initializer})

    def test_temperatures_of_classes(self):
        graph = told()
        run = heddle.train(graph, progress=False, transport="memory", method="full-batch", peers=1, model="mlp", rounds=1)
        for task, all_of in (("multi", [0.5, 1.0, 4.0]), ("single", None)):
            with self.subTest(task):
                session = self.changed(run, lambda spec, card: (spec.update(task=task), card.update(temperatures=all_of, temperature=3)))
                logits, probabilities = session.run(["logits", "probabilities"], {"x": graph.x})
                e = np.exp(logits / (all_of or [3]))
                np.testing.assert_allclose(probabilities, e / (1 + e) if all_of else e / e.sum(1, keepdims=True), atol=1e-6)

    def test_refusals(self):
        given = {"progress": False, "transport": "memory"}
        for run, message in ((heddle.train(told(x=None), **given), "without features"),
                             (heddle.train(told(x=None), method="full-batch", encoder="embedding:8", rounds=1, **given), "no torch module of encoder embedding"),
                             (heddle.train(small(), method="full-batch", peers=1, task="links", rounds=1, **given), "a model of links")):  # fmt: skip
            with self.assertRaisesRegex(heddle.InputError, message):
                heddle.export_onnx(run, "never.onnx")
        run = heddle.train(told(), method="full-batch", peers=1, model="gcn", rounds=1, **given)
        with self.assertRaisesRegex(heddle.InputError, "layer2: there is no torch module of convolution one of our own"):
            self.changed(run, lambda spec, _: spec["layers"][1].update(conv="one of our own"))
        self.assertFalse(pathlib.Path("never.onnx").exists())


if __name__ == "__main__":
    unittest.main()
