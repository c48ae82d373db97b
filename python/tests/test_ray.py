"""Tests of heddle.ray in a cluster of this machine."""

import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest

import engines

import heddle
from heddle import _program

MISSING = [m for m in ("ray", "pyarrow") if importlib.util.find_spec(m) is None]


@unittest.skipIf(MISSING, f"SKIPPED: tests of heddle.ray: {', '.join(MISSING)} is missing")
class Ray(unittest.TestCase):
    def test_training_and_predictions(self):
        import ray

        from heddle import ray as engine

        with tempfile.TemporaryDirectory() as t:
            at = pathlib.Path(t)
            nodes, edges = engines.people()
            number = {n[0]: i for i, n in enumerate(nodes)}
            (at / "nodes.csv").write_text("id,x,smoker\n" + "".join(f"{number[n]},{x},{s}\n" for n, x, s in nodes))
            (at / "edges.csv").write_text("source,target\n" + "".join(f"{number[a]},{number[b]}\n" for a, b, _ in edges))
            parts = engines.parts_of(at / "nodes.csv", at / "edges.csv", at)
            path = os.pathsep.join(p for p in sys.path if p)
            ray.init(
                num_cpus=2, include_dashboard=False, object_store_memory=80 << 20, logging_level="error",
                runtime_env={"env_vars": {"HEDDLE_PROGRAM": _program.program(), "PYTHONPATH": path}},
            )
            try:
                port = engines.free_ports(2)
                run = engine.train(parts, ranks=2, strategy="PACK", port=port, out=at / "run", **engines.SETTINGS)
                table = engine.predict(run, parts, ranks=2, strategy="PACK", port=port)
                engines.check(self, parts, run, {int(r["id"]): r for r in table.to_pylist()})
                with self.assertRaisesRegex(heddle.InputError, "plan.yaml"):
                    engine.train(parts, ranks=2, plan="plan.yaml", model="sage")
            finally:
                ray.shutdown()


if __name__ == "__main__":
    unittest.main()
