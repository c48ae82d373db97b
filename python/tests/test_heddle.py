"""Tests of the package: HEDDLE_PROGRAM names the program, and those that need a library are skipped without it."""

import concurrent.futures
import dataclasses
import importlib.util
import json
import logging
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import zipfile

import numpy as np

import heddle
from heddle import _program, _run

QUICK = {"transport": "memory"}


def needs(*modules):
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    return unittest.skipIf(missing, f"SKIPPED: {', '.join(missing)} is not installed")


def small(n=240, seed=3, sites=3):
    """A graph of three classes in which neighbours are alike, as arrays."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 3, n)
    x = (draw.random((n, 12)) < 0.1 + 0.3 * (np.arange(12)[None] % 3 == y[:, None])).astype(np.float32)
    pairs = draw.integers(0, n, (2, 12 * n))
    pairs = pairs[:, (y[pairs[0]] == y[pairs[1]]) | (draw.random(12 * n) < 0.1)][:, : 3 * n]
    return heddle.Graph(pairs, y, x, site=draw.integers(0, sites, n))


def masks(y):
    """Masks of 60, 20 and 20 % of the nodes."""
    place = np.random.default_rng(0).permutation(len(y)) / len(y)
    return place < 0.6, (place >= 0.6) & (place < 0.8), place >= 0.8


def relation(g, k):
    """Returns the edges of a relation: weight and columns of each pair, None if edges have no weights."""
    of = np.flatnonzero(g.edge_type == k)
    rows = [None] * len(of) if g.edge_weight is None else np.column_stack([g.edge_weight, g.edge_attr])[of].tolist()
    return dict(zip(map(tuple, g.edge_index.T[of].tolist()), rows))


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.graph = small()
        cls.rounds = []
        cls.run_ = heddle.train(cls.graph, on_round=cls.rounds.append, progress=False, **QUICK)

    def test_predictions_are_by_node(self):
        run, g = self.run_, self.graph
        predicted, test = run.predict(), run.split == "test"
        self.assertEqual(predicted.shape, (240,))
        self.assertAlmostEqual((predicted == g.y)[test].mean(), run.metrics["test"], places=12)
        np.testing.assert_array_equal(run.predict_proba().argmax(axis=1), predicted)
        np.testing.assert_allclose(run.predict_proba().sum(axis=1), 1, atol=1e-5)
        np.testing.assert_array_equal(run.logits().argmax(axis=1), predicted)
        self.assertEqual([str(i) for i in range(240)], list(run.ids))

    def test_predictions_of_other_data(self):
        other = small(seed=4)
        proba = self.run_.predict_proba(other)
        self.assertEqual(proba.shape, (240, 3))
        self.assertGreater((proba.argmax(axis=1) == other.y).mean(), 0.6)
        with self.assertRaisesRegex(heddle.InputError, "^the model does not fit graph: nodes must have 12 features"):
            self.run_.predict(heddle.Graph([[0], [1]], [0, 1], np.ones((2, 3))))

    def test_what_a_run_has(self):
        run = self.run_
        self.assertEqual(run.metrics["peers"], 3)
        self.assertEqual(self.rounds, run.history)
        self.assertGreater(len(run.history), 0)
        self.assertEqual(run.embeddings().shape[0], 240)
        self.assertIn("round1.means", run.weights())
        self.assertIn("<iframe", run.report()._repr_html_())
        self.assertIn("<iframe", heddle.train(self.graph, progress=False, **QUICK).report()._repr_html_())  # which has its run
        self.assertIn("accuracy", str(run))
        self.assertIn("<heddle.Run class-means: accuracy", repr(run))
        self.assertLess(set(heddle.__all__), set(dir(heddle)))
        self.assertIn("Way to train", heddle.Settings.__doc__)

    def test_a_saved_run_is_loaded(self):
        with tempfile.TemporaryDirectory() as t:
            at = self.run_.save(pathlib.Path(t) / "run")
            again = heddle.load(at)
            np.testing.assert_array_equal(again.logits(), self.run_.logits())
            with self.assertRaisesRegex(heddle.InputError, "model.safetensors"):
                heddle.load(t)
            with self.assertRaisesRegex(heddle.InputError, "give the data"):
                again.embeddings()

    def test_a_damaged_model_is_refused(self):
        with tempfile.TemporaryDirectory() as t:
            file = pathlib.Path(t) / "model.safetensors"
            good = self.run_.model_file.read_bytes()
            for at in range(0, len(good), 97):
                file.write_bytes(good[:at] + bytes([good[at] ^ 32]) + good[at + 1 :])
                with self.assertRaisesRegex(heddle.InputError, "without damage"):
                    _run.read_model(file)

    def test_a_temporary_run_goes(self):
        run = heddle.train(self.graph, progress=False, **QUICK)
        out = run.out
        self.assertTrue(out.exists())
        del run
        self.assertFalse(out.exists())

    def test_settings(self):
        run = heddle.train(self.graph, progress=False, method="layer-wise", model="sage", rounds=3, layers=1, residual=False, transport="memory",
                           encoder="raw")  # fmt: skip
        self.assertEqual(run.metrics["model"], "sage")
        self.assertEqual(len(run.history), 3)
        run = heddle.train(self.graph, sites=2, progress=False, **QUICK)
        self.assertEqual(run.metrics["peers"], 2)

    def test_compare(self):
        done = heddle.compare(self.graph, seeds=1, progress=False, **QUICK)
        self.assertEqual([w["way"] for w in done.metrics["ways"]], ["alone", "features", "together", "pooled", "pooled-sage"])
        with np.load(done.out / "compare.npz") as z:
            for way in done.metrics["ways"]:
                of = z["way"] == way["way"]
                np.testing.assert_array_equal(z["test"][of], [r["test"] for r in way["runs"]])
                np.testing.assert_array_equal(z["bytes"][of], [r["bytes"] for r in way["runs"]])
        self.assertIn("each site alone", str(done))
        self.assertIn("<iframe", done.report()._repr_html_())

    def test_simulate(self):
        for data, phones in ((None, 40), (small(800), 20)):
            done = heddle.simulate(data, phones=phones, rounds=1, participation=[1, 0.5])
            self.assertEqual((done["phones"], [r["participation"] for r in done["runs"]]), (phones, [1, 0.5]))
            self.assertGreater(done["runs"][0]["bytes"]["shares"], done["runs"][1]["bytes"]["shares"])
            self.assertAlmostEqual(done["runs"][0]["accuracy"], done["pooled_accuracy"], delta=0.02)
        self.assertEqual(done["nodes"], 800)
        with self.assertRaisesRegex(heddle.InputError, r"participation must .* \(got 2\)"):
            heddle.simulate(phones=40, participation=[2])

    def test_numbers(self):
        draw, y = np.random.default_rng(1), self.graph.x @ np.arange(12) + 3
        numbers = dataclasses.replace(self.graph, y=(y + draw.normal(size=240)).astype(np.float32))
        run = heddle.train(numbers, progress=False, **QUICK)
        test = run.split == "test"
        self.assertEqual((run.metrics["metric"], run.predict().shape), ("r2", (240, 1)))
        off = run.predict()[test, 0] - numbers.y[test]
        self.assertAlmostEqual(1 - (off**2).sum() / ((numbers.y[test] - numbers.y[test].mean()) ** 2).sum(), run.metrics["test"], places=4)
        self.assertGreater(run.metrics["test"], 0.5)

    @unittest.skipIf("task" not in heddle.Settings.__annotations__, "SKIPPED: this program has no task links")
    def test_links(self):
        run = heddle.train(self.graph, progress=False, transport="memory", method="full-batch", peers=1, task="links", rounds=3)
        self.assertEqual((run.metrics["metric"], run.metrics["ranks"]["test"]["mrr"]), ("mrr", run.metrics["test"]))
        links = run.recommend(["3", "40"], k=2)
        self.assertEqual((list(links["node"]), list(links["rank"])), (["3", "3", "40", "40"], [1, 2, 1, 2]))
        known = {tuple(map(str, pair)) for pair in self.graph.edge_index.T}
        for pair in zip(links["node"], links["other"]):
            self.assertFalse(known & {pair, pair[::-1]}, pair)
        self.assertGreaterEqual(links["score"][0], links["score"][1])
        self.assertEqual(len(run.recommend(k=1)["node"]), 240)
        for ask in (run.predict, run.embeddings):
            with self.assertRaisesRegex(heddle.InputError, "recommend"):
                ask()


class Joining(unittest.TestCase):
    def test_two_sites(self):
        """Two sites join over loopback; both get the model of a simulation, and each the predictions of its own nodes."""
        graph = small(sites=2)
        with tempfile.TemporaryDirectory() as t:
            at = pathlib.Path(t)
            _program.run(["partition", "--data", str(graph.write(at / "data")), "--policy=by-column", "--out", str(at / "parts")])
            ids = [_program.run(["init", "--identity", str(at / f"{k}.key")]).strip() for k in range(2)]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
            members = [f"north={ids[0]}@127.0.0.1", f"south={ids[1]}"]
            _program.run(["plan", "--out", str(at / "plan.yaml"), f"--port={port}", *members])
            rounds = [], []

            def join(k):
                return heddle.join(at / "plan.yaml", at / "parts" / f"part-{k}", out=at / f"run-{k}", on_round=rounds[k].append,
                                   progress=False, identity=at / f"{k}.key", state=at / f"state-{k}", wait="60s")  # fmt: skip

            with concurrent.futures.ThreadPoolExecutor() as pool:
                runs = list(pool.map(join, range(2)))
            simulated = heddle.train(graph, progress=False, **QUICK)
            together = {}
            for k, run in enumerate(runs):
                self.assertEqual((run.metrics["peers"], run.metrics["test"]), (2, simulated.metrics["test"]))
                self.assertEqual(run.model_file.read_bytes(), runs[0].model_file.read_bytes())
                self.assertEqual(rounds[k], run.history)
                self.assertGreater(len(run.history), 0)
                together.update(zip(run.ids, run.predict()))
            for name, value in simulated.weights().items():
                np.testing.assert_array_equal(runs[0].weights()[name], value)
            np.testing.assert_array_equal([together[i] for i in simulated.ids], simulated.predict())

    def test_faults(self):
        with tempfile.TemporaryDirectory() as t:
            with self.assertRaisesRegex(heddle.InputError, "nothere.yaml"):
                heddle.join(pathlib.Path(t) / "nothere.yaml", t, progress=False)


class Faults(unittest.TestCase):
    def test_input(self):
        g = small()
        for settings, message in (({"method": "layer-wise", "lr": -1.0}, "lr must be"), ({"rouns": 3}, "rounds"),
                                  ({"method": "layer-wise", "model": "gnc"}, "model must be")):  # fmt: skip
            with self.assertRaisesRegex(heddle.InputError, message):
                heddle.train(g, progress=False, **settings)
        with self.assertRaisesRegex(heddle.InputError, r"edge_index: entry \[0, 0\] must be a node"):
            heddle.train(heddle.Graph([[999], [0]], [0, 1, 0, 1]), progress=False)
        with self.assertRaisesRegex(heddle.InputError, "data must be a PyG Data"):
            heddle.train(3)
        with self.assertRaisesRegex(heddle.InputError, "no attribute 'hospital'"):
            heddle.train(heddle.Graph([[0], [1]], [0, 1]), sites="hospital")
        with self.assertRaisesRegex(ValueError, "sum is at most 1"):
            heddle.train(dataclasses.replace(g, draw={"train": 0.9, "val": 0.3}), progress=False)

    def test_bad_arrays(self):
        """The error names the field, and no file that the user has not written."""
        g = small()
        edges, n = g.edge_index.shape[1], g.num_nodes
        for field, value, message in (
            ("edge_index", g.edge_index.T, r"edge_index: shape must be \[2, any\] \(got \[720, 2\]\): transpose it"),
            ("edge_index", g.edge_index + 0.5, r"edge_index must be an array of whole numbers \(got \d+.5\)"),
            ("edge_index", g.edge_index - 1, r"edge_index: entry \[0, 127\] must be a node, 0 to 239 \(got -1\)"),
            ("edge_index", [["a"], ["b"]], "edge_index must be an array of whole numbers: could not convert"),
            ("y", None, "y must be the classes of nodes"),
            ("y", np.zeros((n, 2, 2)), r"y: shape must be \[any\] \(got \[240, 2, 2\]\)"),
            ("y", np.full(n, -1), r"at least one node must have a label \(got none: all labels are -1 or empty\)"),
            ("y", [None] * n, r"at least one node must have a label \(got none"),
            ("y", g.y - 1, "y: -1 together with 0, 1 may be a class or no label"),
            ("y", g.y.astype(np.float16), r"y: dtype must be bool, int8 to int64, .* \(got <f2\): convert it by astype"),
            ("x", g.x[1:], r"x: shape must be \[240, any\] \(got \[239, 12\]\)"),
            ("x", np.where(g.x == 1, np.nan, g.x), r"x: row 0, column 5 must be a finite number \(got NaN\)"),
            ("x", [["a"]] * n, "x must be an array of numbers: could not convert"),
            ("x", g.x + 1j, "x must be an array of numbers: Cannot cast"),
            ("site", g.site[1:], r"site: shape must be \[240\] \(got \[239\]\)"),
            ("site", g.site - 1, r"site: site of node \d+ must be 0 to 239 \(got -1\)"),
            ("site", np.where(g.site == 1, 5, g.site), r"every site must own a node \(1 owns none\)"),
            ("edge_weight", np.zeros(edges), r"edge_weight: entry 0 must be a finite number above 0 \(got 0\)"),
            ("edge_weight", np.ones((edges, 2)), r"edge_weight: shape must be \[720\] \(got \[720, 2\]\)"),
            ("edge_type", ["a"] * edges, "edge_type must be an array of whole numbers"),
            ("edge_attr", np.zeros((edges - 1, 2)), r"edge_attr: must have a row for each of 720 edges and at least one column \(got shape \[719, 2\]\)"),
            ("edge_attr", np.full((edges, 2), np.inf), r"edge_attr: row 0, column 0 must be a finite number \(got \+Inf\)"),
            ("train_mask", np.linspace(0, 1, n), r"train_mask must be \[N\] or \[N, S\] of true and false \(got shape \[240\] of float64\)"),
            ("ids", ["a"], r"ids must have a name for each of 240 nodes \(got 1\)"),
            ("colour", 3, r"the arrays of a graph must be of edge_index, .* \(got 'colour'\)"),
        ):
            with self.subTest(field, message=message):
                arrays = {"edge_index": g.edge_index, "y": g.y, "x": g.x, "site": g.site, field: value}
                with self.assertRaisesRegex(heddle.InputError, message) as caught:
                    heddle.train(arrays, progress=False, **QUICK)
                self.assertNotIn(".npz", str(caught.exception))
        for sites, message in (([1, 2], r"site: shape must be \[240\] \(got \[2\]\)"), ("hospital", "no attribute 'hospital'")):
            with self.assertRaisesRegex(heddle.InputError, message):
                heddle.train(g, sites, progress=False, **QUICK)
        with self.assertRaisesRegex(heddle.InputError, "on_round must be a function"):
            heddle.train(g, progress=False, on_round=3, **QUICK)
        with self.assertRaisesRegex(heddle.InputError, "x: row 0, column 5 must be a finite number"):
            heddle.simulate(dataclasses.replace(g, x=np.where(g.x == 1, np.nan, g.x)), phones=3)

    def test_exceptions_of_on_round(self):
        def stop(_):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            heddle.train(small(), progress=False, on_round=stop, method="layer-wise", rounds=100000, transport="memory")

    def test_on_round_ends_the_rounds(self):
        """True ends a layer's rounds: the run is that of a plan with so many, also if it was interrupted before."""
        settings = {"method": "layer-wise", "model": "sage", "progress": False, "transport": "memory", "checkpoint_every": 1}
        want = heddle.train(small(), rounds=5, **settings)
        with tempfile.TemporaryDirectory() as t:
            with self.assertRaises(ZeroDivisionError):
                heddle.train(small(), rounds=50, out=t, on_round=lambda e: e["round"] == 3 and 1 / 0, **settings)
            run = heddle.train(small(), rounds=50, out=t, resume=True, on_round=lambda e: np.bool_(e["round"] == 4), **settings)
            self.assertEqual([e["round"] for e in run.history], [e["round"] for e in want.history])
            for name, value in want.weights().items():
                np.testing.assert_array_equal(run.weights()[name], value)
        self.assertEqual(len(heddle.train(small(), on_round=lambda e: True, progress=False, **QUICK).history), 1)

    def test_ctrl_c_leaves_checkpoints(self):
        script = """
            import signal, sys, heddle
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it runs in the background ignore it
            sys.path.insert(0, sys.argv[1])
            from test_heddle import small
            try:
                heddle.train(small(), out=sys.argv[2], progress=False, method="layer-wise", rounds=100000, checkpoint_every=1, transport="memory",
                             on_round=lambda e: print("round", flush=True) if e["round"] == 3 else None)
            except heddle.Interrupted as e:
                print(e, e.out)
        """
        with tempfile.TemporaryDirectory() as t:
            command = [sys.executable, "-c", textwrap.dedent(script), str(pathlib.Path(__file__).parent), t]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(), "round\n")
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate()
            self.assertIn("the checkpoints are in", said)
            self.assertIn(t, said)
            again = []
            with self.assertRaises(ZeroDivisionError):
                heddle.train(small(), out=t, resume=True, progress=False, method="layer-wise", rounds=100000, checkpoint_every=1,
                             transport="memory", on_round=lambda e: again.append(e["round"]) or 1 / 0)  # fmt: skip
            self.assertGreater(again[0], 1)
            rounds = [e["done"] for e in _run._History.read(pathlib.Path(t) / "events.jsonl")]  # of both processes, each once
            self.assertEqual(rounds, list(range(1, len(rounds) + 1)))
            self.assertGreaterEqual(len(rounds), again[-1] + 1)

    def test_warnings_are_logged(self):
        with self.assertLogs("heddle", logging.WARNING) as logs:
            heddle.train(small(), progress=False, method="layer-wise", rounds=2, transport="memory")
        self.assertIn("keeps 6 components, half of the 12 columns", "".join(logs.output))
        with self.assertWarnsRegex(heddle.HeddleWarning, "column 12 of x alone predicts y for 100.0 %") as caught:
            run = heddle.train(dataclasses.replace(small(), x=np.c_[small().x, small().y]), progress=False, **QUICK)
        self.assertEqual((caught.filename, len(run.metrics["warnings"])), (__file__, 1))

    def test_memory(self):
        """A graph of 200,000 nodes and 2 million edges takes no more memory on its way to the program than its arrays once."""
        import tracemalloc

        draw, n = np.random.default_rng(1), 200_000
        arrays = {"edge_index": draw.integers(0, n, (2, 2_000_000)), "y": draw.integers(0, 5, n), "x": draw.random((n, 32), np.float32)}
        with tempfile.TemporaryDirectory() as t:
            tracemalloc.start()
            heddle.Graph(**arrays).write(t)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        self.assertLess(peak, sum(a.nbytes for a in arrays.values()))
        print(f"extra memory {peak / 1e6:.0f} MB, arrays {sum(a.nbytes for a in arrays.values()) / 1e6:.0f} MB", file=sys.stderr)

    def test_overhead(self):
        """The time that this layer adds to that of the program, which the program measures itself, is below 0.5 s."""
        graph = small()
        took = []
        for _ in range(5):
            with tempfile.TemporaryDirectory() as t:
                data = graph.write(pathlib.Path(t) / "data")
                began = time.perf_counter()
                subprocess.run(
                    [_program.program(), "train", "--data", data, "--out", pathlib.Path(t) / "out", *_program.flags(QUICK)], check=True, capture_output=True
                )
                alone = time.perf_counter() - began
            began = time.perf_counter()
            heddle.train(graph, progress=False, **QUICK)
            took.append(time.perf_counter() - began - alone)
        self.assertLess(min(took), 0.5)
        print(f"overhead {min(took):.2f} s", file=sys.stderr)


class Figures(unittest.TestCase):
    def test_cora(self):
        """Cora gives the figure of the table in docs/measurements/accuracy.md."""
        root = pathlib.Path(__file__).resolve().parents[2]
        data = root.parent / "shared" / "data" / "cora"
        if not data.exists():
            self.skipTest(f"SKIPPED: {data} is not there")
        page = (root / "docs/measurements/accuracy.md").read_text().split("## The default, Retexo's setting and one machine")[1]
        line = next(one for one in page.splitlines() if one.startswith("| cora |"))
        want = float(line.split("|")[2].split("±")[0])
        run = heddle.train(heddle.Graph.read(data), progress=False, peers=4, policy="random", seeds=10)
        self.assertAlmostEqual(100 * run.metrics["test_over_runs"]["mean"], want, delta=0.15)


class Sources(unittest.TestCase):
    """Data of other libraries give the same arrays."""

    def setUp(self):
        self.want = small()
        self.want.train_mask, self.want.val_mask, self.want.test_mask = masks(self.want.y)

    def same(self, got):
        want = self.want
        np.testing.assert_array_equal(got.edge_index, want.edge_index)
        np.testing.assert_array_equal(got.y, want.y)
        np.testing.assert_array_equal(got.x if isinstance(got.x, np.ndarray) else got.x.toarray(), want.x)
        np.testing.assert_array_equal(got.site, want.site)
        np.testing.assert_array_equal(got.train_mask, want.train_mask)

    def test_files(self):
        with tempfile.TemporaryDirectory() as t:
            self.want.ids, self.want.class_names = [f"n{i}" for i in range(240)], ["a", "b", "c"]
            got = heddle.Graph.read(self.want.write(t))
            self.same(got)
            self.assertEqual((got.ids, got.class_names), (self.want.ids, self.want.class_names))
            self.same(heddle.Graph.read(pathlib.Path(t) / "graph.npz"))
            file = pathlib.Path(t) / "graph.npz"
            good = file.read_bytes()
            for at in range(40, len(good), len(good) // 40):
                file.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
                with self.assertRaises(heddle.InputError):
                    heddle.train(t, progress=False, **QUICK)
                with self.assertRaises((heddle.InputError, zipfile.BadZipFile)):
                    heddle.Graph.read(t)
            file.write_bytes(good)
            run = heddle.train(t, progress=False, **QUICK)
            self.assertEqual((run.classes, run.ids[3]), (["a", "b", "c"], "n3"))
        with tempfile.TemporaryDirectory() as t:
            table = {"edge_index": [[0, 1, 1, 2], [1, 0, 2, 0]], "y": [0, 1, 0], "edge_attr": np.float32([[7], [8]]), "edge_row": [1, 0, -1, 1]}
            np.savez(pathlib.Path(t) / "graph.npz", **table)
            self.assertEqual(heddle.Graph.read(t).edge_attr.tolist(), [[7], [7], [0], [8]])

    def test_fortran_order(self):
        with tempfile.TemporaryDirectory() as t:
            g = self.want
            arrays = {"edge_index": g.edge_index, "y": g.y, "x": np.asfortranarray(g.x), "train_mask": g.train_mask, "test_mask": g.test_mask}
            np.savez(pathlib.Path(t) / "graph.npz", **arrays)
            a = heddle.train(t, progress=False, **QUICK).weights()
            arrays["x"] = np.ascontiguousarray(g.x)
            np.savez(pathlib.Path(t) / "graph.npz", **arrays)
            b = heddle.train(t, progress=False, **QUICK).weights()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])

    def test_labels(self):
        """Predictions have the values and the type of the labels, and the figures are those of these predictions."""
        g = small()
        of = lambda *values: np.array(values, object)[g.y]
        settings = {"progress": False, "rows": "float32", **QUICK}  # as prediction reads rows
        for y, classes, more in (
            (g.y, ["0", "1", "2"], {}),
            ((g.y + 1).astype(np.int8), ["1", "2", "3"], {}),
            ((10 * g.y).astype(np.uint16), ["0", "10", "20"], {}),
            (of(10, 9, 200), ["9", "10", "200"], {}),
            (of(10, 9, None), ["9", "10"], {}),
            (of("b", 1, 2.5), ["1", "2.5", "b"], {}),
            (np.array(["b", "a", "c"])[g.y], ["a", "b", "c"], {}),
            (g.y == 1, ["0", "1"], {}),
            (np.where(g.y == 1, 1, -1), ["-1", "1"], {}),
            (g.y[:, None], ["0", "1", "2"], {}),
            (g.y.astype(np.float32), ["0", "1", "2"], {"task": "classification"}),
        ):
            with self.subTest(y=y[:3], dtype=y.dtype):
                run = heddle.train(dataclasses.replace(g, y=y), **settings, **more)
                predicted, test = run.predict(), run._arrays()["split"] == "test"
                self.assertEqual((run.classes, run.metrics["metric"]), (classes, "accuracy"))
                self.assertAlmostEqual((predicted == y.reshape(-1))[test].mean(), run.metrics["test"], places=12)
                self.assertTrue(predicted.dtype == y.dtype or y.dtype == object, predicted.dtype)
                self.assertGreater(np.mean(run.predict(dataclasses.replace(g, y=np.full(240, ""))) == predicted), 0.9)  # without training labels
                if run.classes != ["0", "1"]:
                    np.testing.assert_array_equal(heddle.load(run.out).predict(), predicted if predicted.dtype.kind in "iufU" else predicted.astype(str))
        for y, task in ((g.y.astype(float), None), (g.y - 1, "regression"), (of(0.5, None, 1), None)):
            with self.subTest(y=y[:3], task=task):
                run = heddle.train(dataclasses.replace(g, y=y), task=task, **settings)
                self.assertEqual((run.metrics["metric"], "task classification makes them classes" in str(run.metrics["warnings"])), ("r2", y.dtype == float))

    def test_two_classes(self):
        """The rarer of two classes is positive: figures of one class are of it, AUC chooses, and is None if one of them is missing."""
        n, draw = 400, np.random.default_rng(2)
        rare = np.arange(n) % 8 == 0
        x = (draw.normal(size=(n, 3)) + rare[:, None]).astype(np.float32)
        given = dict(zip(("train_mask", "val_mask", "test_mask"), masks(rare)))
        g = heddle.Graph(draw.integers(0, n, (2, 40)), np.where(rare, "alive", "dead"), x, **given)
        for y, more, positive, metric in (
            (g.y, {}, "alive", "auc"),
            (g.y, {"positive": "dead", "metric": "ap"}, "dead", "ap"),
            (np.where(rare, 7, 9), {"metric": "ap"}, "7", "ap"),
            (rare, {"positive": "0"}, "0", "auc"),
        ):
            with self.subTest(y=y[:3], more=more):
                run = heddle.train(dataclasses.replace(g, y=y), sites=2, progress=False, **QUICK, **more)
                m, of = run.metrics, run.classes.index(positive)
                self.assertEqual((m["positive"], m["figures"]["positive"], m["metric"]), (positive, of, metric))
                self.assertIn(f"class {positive}", str(run))
                self.assertEqual(_run.read_model(run.model_file)[1]["positive"], positive)
                logits, test = run.logits().astype(float), given["test_mask"]
                odds, yes = (logits[:, of] - logits[:, 1 - of])[test], y[test] == run.values([positive])[0]
                pairs = odds[yes][:, None] - odds[~yes][None]
                auc = ((pairs > 0) + (pairs == 0) / 2).mean()
                ap = np.mean([yes[odds >= a].mean() for a in odds[yes]])
                self.assertAlmostEqual(m["figures"]["test"]["auc"], auc, places=9)
                self.assertAlmostEqual(m["figures"]["test"]["ap"], ap, places=9)
                self.assertAlmostEqual(m["test"], {"auc": auc, "ap": ap}[metric], places=9)
        with self.assertRaisesRegex(heddle.InputError, 'positive must be .*alive.* "maybe"'):
            heddle.train(g, progress=False, positive="maybe", **QUICK)
        for mask in ("test_mask", "val_mask"):
            with self.subTest(mask):
                run = heddle.train(dataclasses.replace(g, **{mask: given[mask] & ~rare}), sites=2, progress=False, **QUICK)
                which = mask.removesuffix("_mask")
                self.assertEqual((run.metrics["metric"], run.metrics[which], run.metrics["figures"][which]["auc"]), ("auc", None, None))
                self.assertIn(f"{which.replace('val', 'validation')} auc is undefined", " ".join(run.metrics["warnings"]))
                self.assertIn("None", repr(run))

    def test_names_and_missing_labels(self):
        g = heddle.Graph([[0], [1]], ["cat", None, "dog"], site=["b", "a", "b"])
        self.assertEqual((g.y.tolist(), g.site_names, list(g.site)), (["cat", None, "dog"], ["a", "b"], [1, 0, 1]))

    def test_split(self):
        """The program draws the split class by class, and folds in which each labelled node is tested once."""
        y = np.array([0] * 100 + [1] * 10 + [2] * 20 + [-1] * 5)
        g = heddle.Graph(np.zeros((2, 0)), y, np.random.default_rng(0).normal(size=(135, 4)))
        of = lambda **draw: heddle.train(dataclasses.replace(g, draw=draw), 1, progress=False, hops=0, **QUICK).split
        first = of(train=0.5, val=0.2, seed=7)
        names = ("train", "val", "test")
        self.assertEqual([[int((first[a:b] == name).sum()) for name in names] for a, b in ((0, 100), (100, 110), (110, 130), (130, 135))],
                         [[50, 20, 30], [5, 2, 3], [10, 4, 6], [0, 0, 0]])  # fmt: skip
        self.assertTrue((first == of(train=0.5, val=0.2, seed=7)).all())
        self.assertFalse((first == of(train=0.5, val=0.2, seed=8)).all())
        folds = [of(train=0.8, val=0.2, seed=1, folds=3, fold=k) for k in range(3)]
        np.testing.assert_array_equal(sum((f == "test").astype(int) for f in folds), (y >= 0).astype(int))
        self.assertEqual([int((f == "val").sum()) for f in folds], [17, 17, 17])

    def test_cross_validate(self):
        figures = heddle.cross_validate(small(), 3, **QUICK)
        self.assertEqual(figures.shape, (3,))
        self.assertGreater(figures.min(), 0.5)
        with self.assertRaisesRegex(heddle.InputError, r"folds must be at least 2 \(got 1\)"):
            heddle.cross_validate(small(), 1)

    @needs("scipy")
    def test_scipy(self):
        import scipy.sparse as sp

        g = self.want
        n = g.num_nodes
        a = sp.coo_matrix((np.ones(g.edge_index.shape[1]), g.edge_index), (n, n)).tocsr()
        a.data[:] = 1
        got = heddle.Graph(a, g.y, sp.csr_matrix(g.x), g.site)
        np.testing.assert_array_equal(got.x.toarray(), g.x)
        self.assertEqual(set(zip(*got.edge_index)), set(zip(*g.edge_index)))
        self.assertIsNone(got.edge_weight)

    @needs("torch", "torch_geometric")
    def test_pyg(self):
        import torch
        from torch_geometric.data import Data, HeteroData

        g = self.want
        data = Data(x=torch.tensor(g.x), y=torch.tensor(g.y)[:, None], edge_index=torch.tensor(g.edge_index), train_mask=torch.tensor(g.train_mask),
                    val_mask=torch.tensor(g.val_mask), test_mask=torch.tensor(g.test_mask), hospital=torch.tensor(g.site))  # fmt: skip
        from heddle._graph import graph_of

        self.same(graph_of(data, "hospital"))
        data.edge_attr = torch.arange(g.edge_index.shape[1])
        np.testing.assert_array_equal(graph_of(data).edge_attr, np.arange(g.edge_index.shape[1])[:, None])
        del data.edge_attr
        self.same(graph_of(data, torch.tensor(g.site)))
        self.assertGreater(heddle.train(data, "hospital", progress=False, **QUICK).metrics["test"], 0.5)
        hetero = HeteroData()
        hetero["paper"].x, hetero["paper"].y = torch.tensor(g.x), torch.tensor(g.y)
        hetero["author"].x = torch.ones(5, 2)
        hetero["paper", "cites", "paper"].edge_index = torch.tensor(g.edge_index)
        hetero["author", "writes", "paper"].edge_index = torch.tensor([[0, 4], [7, 8]])
        got = graph_of(hetero)
        self.assertEqual((got.num_nodes, got.x.shape, got.ids[240]), (245, (245, 14), "author/0"))
        self.assertEqual(got.relation_names, [f"{name}{way}" for way in ("", " (inverse)") for name in ("paper-cites-paper", "author-writes-paper")])
        self.assertEqual(relation(got, 1), {(240, 7): None, (244, 8): None})
        self.assertEqual(relation(got, 3), {(7, 240): None, (8, 244): None})
        self.assertEqual((set(got.y[240:]), got.y[:240].tolist()), ({-1}, g.y.tolist()))
        self.assertEqual(got.x.toarray()[242].tolist(), [0] * 12 + [1, 1])
        self.assertEqual((got.edge_attr, got.edge_weight, got.site), (None, None, None))
        hetero["paper", "cites", "paper"].edge_attr = torch.arange(g.edge_index.shape[1])
        hetero["author", "writes", "paper"].edge_attr = torch.tensor([[7.0, 8], [9, 10]])
        hetero["author", "writes", "paper"].edge_weight = torch.tensor([2.0, 3])
        got = graph_of(hetero)
        self.assertEqual(relation(got, 1), {(240, 7): [2, 0, 7, 8], (244, 8): [3, 0, 9, 10]})
        cites = {tuple(pair): k for k, pair in reversed([*enumerate(g.edge_index.T.tolist())])}
        for pair, row in relation(got, 0).items():
            self.assertEqual(row, [1, min(cites[pair], cites.get(pair[::-1], 720)), 0, 0])
        run = heddle.train(hetero, sites=2, progress=False, model="gatv2", method="full-batch", encoder="raw", rounds=2, transport="memory")
        self.assertEqual(run.weights()["layer1.attention.edge"].shape[0], 3)
        hetero["paper"].hospital = torch.tensor(g.site)
        with self.assertRaisesRegex(heddle.InputError, "every type of nodes must have the attribute 'hospital' for their sites .author has none"):
            graph_of(hetero, "hospital")
        hetero["author"].hospital = torch.tensor([2, 1, 0, 0, 0])
        self.assertEqual(graph_of(hetero, "hospital").site[-5:].tolist(), [2, 1, 0, 0, 0])
        hetero["author", "writes", "paper"].edge_attr = torch.ones(3, 1)
        with self.assertRaisesRegex(heddle.InputError, r"^edge_attr of author-writes-paper: must have a row for each of 2 edges"):
            graph_of(hetero)
        del hetero["author", "writes", "paper"].edge_attr
        heddle.train(hetero, sites=2, progress=False, model="rgcn", method="full-batch", encoder="raw", rounds=2, transport="memory")
        hetero["paper"].train_mask = torch.ones(240, 3, dtype=torch.bool)
        with self.assertRaisesRegex(heddle.InputError, r"^train_mask of paper must be \[N\]: .* have one split .got 3"):
            graph_of(hetero)

    @needs("torch", "dgl")
    def test_dgl(self):
        import dgl
        import torch

        from heddle._graph import graph_of

        g = self.want
        d = dgl.graph((torch.tensor(g.edge_index[0]), torch.tensor(g.edge_index[1])), num_nodes=g.num_nodes)
        d.ndata.update({"feat": torch.tensor(g.x), "label": torch.tensor(g.y), "train_mask": torch.tensor(g.train_mask), "site": torch.tensor(g.site)})
        self.same(graph_of(d))
        h = dgl.heterograph({("a", "r", "b"): ([0, 1], [1, 2]), ("b", "s", "a"): ([2], [0])})
        h.nodes["b"].data["label"] = torch.tensor([0, 1, 0])
        got = graph_of(h)
        self.assertEqual((got.num_nodes, list(got.y), relation(got, 0)), (5, [-1, -1, 0, 1, 0], {(0, 3): None, (1, 4): None}))
        self.assertEqual((heddle.train(h, 1, progress=False, **QUICK).classes, relation(got, 1)), (["0", "1"], {(4, 0): None}))
        h.edges["r"].data["feat"], h.edges["s"].data["w"] = torch.tensor([[5.0, 6], [7, 8]]), torch.tensor([4.0])
        got = graph_of(h)
        self.assertEqual((relation(got, 0), relation(got, 1)), ({(0, 3): [1, 5, 6], (1, 4): [1, 7, 8]}, {(4, 0): [4, 0, 0]}))
        h.nodes["a"].data["label"] = torch.tensor([0, 1])
        with self.assertRaisesRegex(heddle.InputError, r"^one type of nodes must have labels \(got a and b\)"):
            graph_of(h)

    @needs("networkx")
    def test_networkx(self):
        import networkx

        from heddle._graph import graph_of

        g, n = self.want, networkx.Graph()
        for i in range(g.num_nodes):
            n.add_node(f"n{i}", x=g.x[i].tolist(), label=int(g.y[i]), site=int(g.site[i]), train_mask=bool(g.train_mask[i]))
        n.add_edges_from((f"n{a}", f"n{b}") for a, b in g.edge_index.T)
        got = graph_of(n)
        got.edge_index = g.edge_index  # networkx has each edge once, in an order of its own
        self.same(got)
        self.assertEqual((got.ids[5], got.edge_attr), ("n5", None))
        for k, (_, _, d) in enumerate(n.edges(data=True)):
            d.update(weight=2.0, amount=k, fee=0.5)
        got = graph_of(n)
        self.assertEqual((got.edge_attr[7].tolist(), got.edge_weight[7]), ([7, 0.5], 2))
        for k, (_, _, d) in enumerate(n.edges(data=True)):
            d.update(edge_attr=[k, 1, 2])
        self.assertEqual(graph_of(n).edge_attr[7].tolist(), [7, 1, 2])
        del d["edge_attr"]
        with self.assertRaisesRegex(heddle.InputError, r"every edge must have edge_attr of 3 numbers if nodes have x, as the first has \(edge \d+ has None\)"):
            graph_of(n)
        for kind in (networkx.DiGraph, networkx.MultiGraph):
            with self.assertRaisesRegex(heddle.InputError, rf"got a {kind.__name__}.*give networkx.Graph"):
                graph_of(kind(n))

    @needs("networkx")
    def test_networkx_attributes(self):
        """Attributes become features as columns of tables do: missing values and texts are kept, what is not is named."""
        import networkx

        g, n = self.want, networkx.Graph(node_default={"ward": "east"}, edge_default={})
        for i in range(g.num_nodes):
            n.add_node((i, "a"), age=float(g.x[i, 0] + i % 9), label=["well", "ill", "worse"][g.y[i]], **({"dose": g.x[i, 1] + i % 5} if i % 7 else {}))
            if i % 3:
                n.nodes[i, "a"]["ward"] = "north"
        n.add_edges_from(((a, "a"), (b, "a")) for a, b in g.edge_index.T)
        n.add_edge((0, "a"), "new")
        with self.assertLogs("heddle", logging.WARNING) as logs, self.assertWarns(heddle.HeddleWarning):
            run = heddle.train(n, sites=g.site.tolist() + [0], progress=False, **QUICK)
        self.assertIn("1 nodes have no attributes, as nodes that only an edge names: new", "".join(logs.output))
        self.assertEqual((run.metrics["peers"], run.classes, run.ids[5]), (3, ["ill", "well", "worse"], "(5, 'a')"))
        facts = json.loads((run._data / "import.json").read_text())
        self.assertEqual([(c["name"], c["kind"], c["missing"]) for c in facts["columns"]],
                         [("age", "numeric", 1), ("dose", "numeric", 36), ("ward", "categorical", 0)])  # fmt: skip
        self.assertIn(run.predict()[0], ("well", "ill", "worse"))
        self.assertGreater(np.mean(run.predict(n) == run.predict()), 0.9)
        with self.assertRaisesRegex(heddle.InputError, "the nodes have no attribute 'hospital' for their sites"):
            heddle.train(n, sites="hospital", progress=False)
        with self.assertRaisesRegex(heddle.InputError, "label must be one value in each row .got list"):
            networkx.set_node_attributes(n, [1, 2], "label")
            heddle.train(n, progress=False)

    @needs("networkx")
    def test_graphml(self):
        """Defaults are values, spellings of a boolean two values, keys of one name one column."""
        import networkx

        kinds = (("node", "ward", "string", "<default>A</default>"), ("node", "age", "double", ""), ("node", "age", "string", ""),
                 ("node", "smoker", "boolean", ""), ("node", "label", "string", ""), ("edge", "weight", "double", "<default>2.0</default>"))  # fmt: skip
        text = "".join(f'<key id="d{k}" for="{of}" attr.name="{name}" attr.type="{t}">{d}</key>' for k, (of, name, t, d) in enumerate(kinds))
        text += '<graph edgedefault="undirected">'
        data = lambda **values: "".join(f'<data key="{key}">{value}</data>' for key, value in values.items())
        for i in range(40):
            age = {"d1": i + 0.5} if i % 3 else {"d2": i}
            more = data(**age, d3=("0", "1", "true", "False")[i % 4], d4=("ill", "well")[i % 2], **({} if i % 5 else {"d0": "B"}))
            edge = f'<edge source="{i}" target="{i - 1}">{data(d5=3.5) if i % 2 else ""}</edge>' if i else ""
            text += f'<node id="{i}">{more}</node>{edge}'
        graph = networkx.parse_graphml(f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{text}</graph></graphml>')
        with tempfile.TemporaryDirectory() as t:
            at = heddle._graph.graph_of(graph).write(pathlib.Path(t))
            columns = json.loads((at / "meta.json").read_text())["encoding"]["columns"]
            self.assertEqual([(c["name"], c["kind"], c.get("values")) for c in sorted(columns, key=lambda c: c["name"])],
                             [("age", "numeric", None), ("smoker", "categorical", ["False", "True"]), ("ward", "categorical", ["A", "B"])])  # fmt: skip
            with np.load(at / "graph.npz") as z:
                self.assertEqual(sorted(set(z["edge_weight"].tolist())), [2, 3.5])

    @needs("pandas", "pyarrow")
    def test_tables(self):
        import pandas
        import pyarrow
        import pyarrow.parquet

        g = self.want
        nodes = pandas.DataFrame({f"f{k}": g.x[:, k] for k in range(12)})
        nodes.insert(0, "id", [f"n{i}" for i in range(240)])
        nodes["class"], nodes["hospital"] = [f"c{c}" for c in g.y], [f"h{s}" for s in g.site]
        edges = pandas.DataFrame({"source": [f"n{i}" for i in g.edge_index[0]], "target": [f"n{i}" for i in g.edge_index[1]]})
        runs = []
        for kind in (lambda t: t, pyarrow.Table.from_pandas):
            run = heddle.train(heddle.Tables(kind(nodes), kind(edges), label="class"), "hospital", progress=False, **QUICK)
            self.assertEqual((run.metrics["peers"], run.classes), (3, ["c0", "c1", "c2"]))
            predicted, test = run.predict(), run._arrays()["split"] == "test"
            self.assertEqual(np.mean((predicted == nodes["class"])[test]), run.metrics["test"])
            np.testing.assert_array_equal(run.predict(heddle.Tables(kind(nodes), kind(edges), label="class")), predicted)
            runs.append(run.logits())
        np.testing.assert_array_equal(*runs)
        with tempfile.TemporaryDirectory() as t:  # columns that Parquet has and CSV has not
            half, file = g.x[:, 0].astype(np.float16), pathlib.Path(t) / "nodes.parquet"
            table = pyarrow.table({"id": nodes["id"], "half": pyarrow.array(half), "null": pyarrow.nulls(240), "class": nodes["class"],
                                   "pair": pyarrow.array([{"a": float(v), "b": "z"} for v in g.x[:, 1]]), "deep": pyarrow.array([[[1]]] * 240)})  # fmt: skip
            pyarrow.parquet.write_table(table, file)
            with self.assertRaisesRegex(heddle.InputError, "column deep: must hold"):
                heddle.train(heddle.Tables(file, edges, label="class"), progress=False)
            kept = heddle.Tables(file, edges, label="class", options={"ignore": "deep"}).write(t)
            got = heddle.Graph.read(kept)
            self.assertGreater(np.corrcoef(got.x[:, 0], half)[0, 1], 0.9999)
            self.assertEqual(got.x.shape[1], 4)  # half, pair.a, and pair.b of one category or another
        with self.assertRaisesRegex(heddle.InputError, "nothere"):
            heddle.train(heddle.Tables(nodes, edges, label="nothere"), progress=False)


class Installed(unittest.TestCase):
    def test_program(self):
        said = subprocess.run([sys.executable, "-m", "heddle", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertTrue(said.startswith("heddle version"))

    def test_demo_graph(self):
        g = heddle.demo_graph()
        self.assertEqual((g.num_nodes, g.x.shape, g.site_names), (8000, (8000, 600), [f"site-{k}" for k in range(4)]))
        self.assertEqual(g.x.toarray().sum(), len(g.x.data))

    def test_imports_numpy_only(self):
        script = "import heddle, sys, json; print(json.dumps([m for m in ('torch', 'scipy', 'pandas', 'sklearn', 'tqdm') if m in sys.modules]))"
        said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        self.assertEqual(json.loads(said), [])


if __name__ == "__main__":
    unittest.main()
