"""Torch modules give the logits of `heddle predict`, for every model that the program trains."""

import dataclasses
import typing
import unittest
import warnings

import numpy as np
from test_heddle import masks, needs, small

import heddle

BOUND = 1e-5  # of logits, or of the largest of them where it is above 1


def told(**more):
    """small() with masks, and more of it."""
    g = small()
    g.train_mask, g.val_mask, g.test_mask = masks(g.y)
    for name, value in more.items():
        setattr(g, name, value)
    return g


def numbers():
    """told() with a number for each node in place of its class."""
    g, draw = small(), np.random.default_rng(1)
    return told(y=(30 + 7 * (g.x @ draw.normal(size=12)) + draw.normal(size=240)).astype(np.float32))


def columned():
    """told() whose edges have four columns."""
    g = told()
    g.edge_attr = np.random.default_rng(2).normal(size=(g.edge_index.shape[1], 4)).astype(np.float32)
    return g


def typed(reversed_too=False):
    """told() with two relations, or with the reverse of each as two more."""
    g = told()
    g.edge_type = np.arange(g.edge_index.shape[1]) % 2
    if reversed_too:
        g.edge_index, g.edge_type = np.hstack([g.edge_index, g.edge_index[::-1]]), np.append(g.edge_type, g.edge_type + 2)
    return g


def sparse(least=False):
    """Sparse features; with least every third row has three values."""
    g = told()
    if least:
        g.x = np.where((np.arange(len(g.x)) % 3 == 0)[:, None] & (np.cumsum(g.x != 0, axis=1) > 3), 0, g.x)
    rows, columns = np.nonzero(g.x)
    g.x = heddle.SparseRows(g.x[rows, columns], columns, np.searchsorted(rows, np.arange(len(g.y) + 1)), g.x.shape)
    return g


@needs("torch")
class Modules(unittest.TestCase):
    def same(self, graph, **plan):
        import torch

        from heddle.torch import inputs

        run = heddle.train(graph, progress=False, transport="memory", **plan)
        want = run.predict(graph) if graph.y.dtype.kind == "f" else run.logits(graph)
        with torch.no_grad():
            got = run.torch_module()(**inputs(graph)).numpy()
        np.testing.assert_allclose(got, want, rtol=0, atol=BOUND * max(1, np.abs(want).max()))
        bare = dataclasses.replace(graph, train_mask=None, val_mask=None, test_mask=None)
        with torch.no_grad(), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            want = run.predict(bare) if graph.y.dtype.kind == "f" else run.logits(bare)
            got = run.torch_module()(**inputs(bare)).numpy()
        np.testing.assert_allclose(got, want, rtol=0, atol=BOUND * max(1, np.abs(want).max()))
        heard = [str(w.message) for w in heard if "labels" in str(w.message)]
        self.assertEqual(heard[1:], heard[:1])  # both warn in the same words of labels that the model reads, or none
        return run

    def test_every_model(self):
        models = typing.get_args(typing.get_type_hints(heddle.Settings)["model"])
        methods = set(typing.get_args(typing.get_type_hints(heddle.Settings)["method"])) - {"class-means"}
        self.assertGreater(len(models), 9)
        of = {"rgcn": typed(), "rsage": typed(True), "rgat": typed(), "gine": columned(), "gatv2": columned()}
        for model in models:
            trained = 0
            for method in sorted(methods):
                with self.subTest(model=model, method=method):
                    try:
                        run = self.same(of.get(model, told()), method=method, model=model, rounds=3, keep_last=method == "layer-wise" or None)
                        self.assertEqual({n for n in run.weights() if "edge" in n} != set(), model in ("gine", "gatv2"))
                        trained += 1
                    except heddle.InputError as e:
                        self.assertRegex(str(e), "model must")
            self.assertGreater(trained, 0, f"no method trains {model}")

    def test_class_means(self):
        graph, rows = told(), sparse()
        several = told(y=np.stack([graph.y == 0, graph.y >= 1, graph.y == 2], 1))
        for name, of, plan in (
            ("dense", graph, {}),
            ("sparse", rows, {}),
            ("residual", rows, {"class_target": "residual"}),
            ("labels", rows, {"class_target": "labels"}),
            ("rows of few values", sparse(True), {}),
            ("inductive", rows, {"inductive": True}),
            ("private edges", rows, {"epsilon": 4}),
            ("several classes", several, {}),
            ("one round", rows, {"class_rounds": 1, "leave_one_out": "true"}),
            ("no features", told(x=None), {}),
            ("demo", heddle.demo_graph(), {}),
        ):
            with self.subTest(name):
                run = self.same(of, **plan)
                self.assertIn("round1.means", run.weights())

    def test_numbers(self):
        for plan in ({"method": "class-means"}, {"method": "full-batch", "rounds": 5}, {"method": "layer-wise", "rounds": 5, "model": "sage", "keep_last": True}):
            with self.subTest(**plan):
                run = self.same(numbers(), **plan)
                with self.assertRaisesRegex(heddle.InputError, "no probability of numbers"):
                    run.predict_proba()

    def test_neighbours_that_are_hashed(self):
        draw = np.random.default_rng(5)
        n = 9000  # more than the columns of neighbours
        g = heddle.Graph(draw.integers(0, n, (2, 3 * n)), draw.integers(0, 3, n))
        g.train_mask, g.val_mask, g.test_mask = masks(g.y)
        self.same(g, class_rounds=2)

    def test_what_stands_around_layers(self):
        graph = told()
        for plan in (
            {"method": "layer-wise", "encoder": "pca:6", "layers": 1, "rounds": 3},
            {"method": "layer-wise", "encoder": "mlp", "layer_output": "logits", "model": "sage", "rounds": 3, "keep_last": True, "row_norm": "l1", "residual": True},  # fmt: skip
            {"method": "layer-wise", "encoder": "raw", "model": "gin", "hops": 2, "rounds": 3, "keep_last": True},
            {"method": "full-batch", "norm": "batch", "rounds": 3, "residual": True},
            {"method": "full-batch", "norm": "layer", "rounds": 3, "model": "gat"},
            {"method": "full-batch", "label_inputs": 0.5, "rounds": 3},
            {"method": "full-batch", "peers": 1, "model": "mlp", "correct_smooth": 5, "rounds": 3},
        ):
            with self.subTest(**plan):
                self.same(graph, **plan)
        weight = 1 + np.arange(graph.edge_index.shape[1]) % 5
        for plan in ({"model": "rgcn", "hidden": 12, "layers": 3}, {"model": "rsage", "bases": 1}, {"model": "rgat", "bases": 1}):
            with self.subTest(**plan):
                self.same(typed(), method="full-batch", rounds=3, **plan)
        for model in ("gine", "gatv2"):
            with self.subTest("edges without columns", model=model):
                self.same(graph, method="full-batch", peers=1, rounds=3, model=model)
        with self.subTest("weights"):
            self.same(told(edge_weight=weight), method="full-batch", rounds=3)

    def test_what_edges_lack(self):
        import torch

        from heddle.torch import inputs

        for graph, plan, message in ((columned(), {"model": "gine"}, r"edge_attr must have the shape \[720, 4\], as layer 1 reads \(got None\)"),
                                     (typed(), {"model": "rgcn"}, "edge_type must be")):  # fmt: skip
            run = heddle.train(graph, progress=False, transport="memory", method="full-batch", peers=1, rounds=1, **plan)
            with self.assertRaisesRegex(ValueError, message):
                run.torch_module()(**inputs(told()))
        with self.assertRaisesRegex(ValueError, r"edge_type must be 0 to 3, the relations of the model \(got 9\)"):
            run.torch_module()(**{**inputs(graph), "edge_type": torch.full((720,), 9)})

    def test_parameters(self):
        run = heddle.train(told(), progress=False, transport="memory", method="layer-wise", model="gat", rounds=2)
        module = run.torch_module()
        self.assertEqual({n for n, _ in module.named_parameters()}, set(run.weights()))
        self.assertFalse(module.training)


@needs("torch", "torch_geometric")
class PyG(unittest.TestCase):
    def test_start_from_a_model_of_pyg(self):
        """Training starts from the layers of the state dict: after no step to speak of, the logits are PyG's."""
        import torch
        import torch_geometric.nn.models as pyg
        from torch_geometric.nn import GATConv

        graph = told()
        pairs = graph.edge_index[:, graph.edge_index[0] != graph.edge_index[1]]
        index = torch.unique(torch.from_numpy(np.hstack([pairs, pairs[::-1]])), dim=1)
        still = {"lr": 1e-12, "decay": 0.0, "dropout": 0.0, "rounds": 1, "norm": "none", "hidden": 16, "layers": 2, "method": "full-batch", "peers": 1}
        for name, model, plan in (
            ("gcn", pyg.GCN(12, 16, 2, 3), {}),
            ("sage", pyg.GraphSAGE(12, 16, 2, 3), {}),
            ("gin", pyg.GIN(12, 16, 2, 3, norm=None), {}),
            ("gat", torch.nn.ModuleList([GATConv(12, 8, 2), GATConv(16, 3, 1, concat=False)]), {"heads": 2, "attention_dropout": 0.0}),
        ):
            with self.subTest(name):
                run = heddle.train(graph, progress=False, transport="memory", model=name, init=model.state_dict(), **still, **plan)
                x = torch.from_numpy(graph.x)
                with torch.no_grad():
                    if name == "gat":
                        want = model[1](torch.nn.functional.elu(model[0](x, index)), index)
                    else:
                        want = model.eval()(x, index)
                np.testing.assert_allclose(run.logits(), want.numpy(), atol=1e-4)
        with self.assertRaisesRegex(heddle.InputError, "2 layers of the run"):
            heddle.train(graph, progress=False, transport="memory", model="gcn", init=pyg.GCN(12, 16, 3, 3).state_dict(), **still)
        with self.assertRaisesRegex(heddle.InputError, r"convs.0.lin.weight must have the shape \[16 12\], as layer1 of the run \(got \[8 12\]\)"):
            heddle.train(graph, progress=False, transport="memory", model="gcn", init=pyg.GCN(12, 8, 2, 3).state_dict(), **still)


if __name__ == "__main__":
    unittest.main()
