"""ONNX files give the logits of `peer predict` in onnxruntime."""

import pathlib
import tempfile
import unittest

import numpy as np

import heddle
from test_heddle import needs, small
from test_torch import columned, numbers, sparse, told, typed

BOUND = 1e-4


@needs("onnxruntime")
class Files(unittest.TestCase):
    def same(self, graph, **plan):
        import onnxruntime

        run = heddle.train(graph, progress=False, transport="memory", **plan)
        with tempfile.TemporaryDirectory() as t:
            session = onnxruntime.InferenceSession(run.to_onnx(pathlib.Path(t) / "model.onnx"), providers=["CPUExecutionProvider"])
        n, classes, regression = graph.num_nodes, len(run.classes), graph.y.dtype.kind == "f"
        x = graph.x if isinstance(graph.x, np.ndarray) else graph.x.toarray()
        labels = graph.y.reshape(n, -1) if graph.y.ndim == 2 or regression else graph.y[:, None] == np.arange(classes)
        every = {
            "x": x,
            "edge_index": graph.edge_index.astype(np.int64),
            "edge_weight": np.ones(graph.edge_index.shape[1], np.float32) if graph.edge_weight is None else graph.edge_weight.astype(np.float32),
            "labels": (labels * graph.train_mask[:, None]).astype(np.float32),
            "train_mask": graph.train_mask,
            "held_out": graph.val_mask | graph.test_mask,
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
            ("sage-pool", {}),
            ("gat", {}),
            ("gatv2", {}),
            ("gin", {}),
            ("gine", {}),
            ("appnp", {}),
            ("sign", {}),
            ("mlp", {}),
            ("gcn", {"label_augmentation": 0.5}),
            ("mlp", {"correct_smooth": 10}),
            ("gcn", {"correct_smooth": 3, "label_augmentation": 0.5}),
        ):
            with self.subTest(model, **plan):
                self.same(graph, mode="standalone", model=model, rounds=3, **plan)

    def test_layer_wise(self):
        graph = told(edge_weight=1 + np.arange(small().edge_index.shape[1]) % 5)
        for plan in (
            {"preset": "frugal-pca"},
            {"rounds": 3, "keep_last": True},
            {"rounds": 3, "keep_last": True, "model": "sage", "encoder": "mlp", "layer_output": "logits"},
            {"rounds": 3, "keep_last": True, "model": "gin", "hops": 2, "row_norm": "l2"},
        ):
            with self.subTest(**plan):
                self.same(graph, **plan)

    def test_class_means(self):
        rows = sparse()
        several = told(y=np.stack([rows.y == 0, rows.y >= 1, rows.y == 2], 1))
        for name, of, plan in (
            ("dense", told(), {}),
            ("sparse", rows, {}),
            ("residual", rows, {"class_target": "residual"}),
            ("all hops", rows, {"class_target": "labels", "hops_kept": "all"}),
            ("inductive", rows, {"inductive": True}),
            ("private edges", rows, {"epsilon": 4}),
            ("several classes", several, {}),
            ("components", rows, {"encoder": "classes+pca:4"}),
        ):
            with self.subTest(name):
                self.same(of, preset="frugal", **plan)
        with self.subTest("preset auto"):
            self.same(heddle.demo_graph())

    def test_numbers(self):
        for plan in ({"preset": "frugal"}, {"mode": "fullbatch", "rounds": 5}):
            with self.subTest(**plan):
                self.same(numbers(), **plan)

    def test_columns_of_edges(self):
        for model in ("gine", "gatv2"):
            with self.subTest(model):
                self.same(columned(), mode="standalone", model=model, rounds=3)

    def test_types_of_edges(self):
        for reversed_too in (False, True):
            graph = typed(reversed_too)
            for model, plan in (("rgcn", {}), ("rgcn", {"hidden": 12, "layers": 3}), ("rgcn", {"bases": 1}), ("rsage", {"bases": 1}),
                                ("rsage", {}), ("rgat", {"heads": 2}), ("rgat", {"bases": 1})):  # fmt: skip
                with self.subTest(model, reversed_too=reversed_too, **plan):
                    self.same(graph, mode="standalone", model=model, rounds=3, **plan)

    def test_refusals(self):
        with self.assertRaisesRegex(heddle.InputError, "without features"):
            heddle.train(told(x=None), progress=False, transport="memory", preset="frugal").to_onnx("never.onnx")


if __name__ == "__main__":
    unittest.main()
