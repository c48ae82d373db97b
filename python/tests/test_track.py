"""TensorBoard and MLflow read what `peer track` writes."""

import os
import pathlib
import tempfile
import unittest

import heddle
from test_heddle import needs, small


class Tracking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = heddle.train(small(), progress=False, transport="memory", mode="standalone", rounds=5)

    @needs("tensorboard")
    def test_tensorboard(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        with tempfile.TemporaryDirectory() as t:
            self.run_.track(tensorboard=t, name="mine")
            read = EventAccumulator(os.path.join(t, "mine"))
            read.Reload()
            shown = [(e.step, e.value) for e in read.Scalars("val")]
            want = [(e["done"], e["val"]) for e in self.run_.history]
            self.assertEqual([s for s, _ in shown], [s for s, _ in want])
            for (_, a), (_, b) in zip(shown, want):
                self.assertAlmostEqual(a, b, places=6)

    @needs("mlflow")
    def test_mlflow(self):
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # files are in maintenance mode
        import mlflow

        with tempfile.TemporaryDirectory() as t:
            self.run_.track(mlflow=t, name="mine")
            client = mlflow.MlflowClient(pathlib.Path(t).as_uri())
            experiment = client.get_experiment_by_name("heddle")
            (run,) = client.search_runs([experiment.experiment_id])
            self.assertEqual((run.info.run_name, run.info.status, run.data.params["mode"]), ("mine", "FINISHED", "standalone"))
            self.assertEqual(run.data.metrics["final_test"], self.run_.metrics["test"])
            got = [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "val")]
            self.assertEqual(got, [(e["done"], e["val"]) for e in self.run_.history])

    def test_history_of_a_saved_run(self):
        with tempfile.TemporaryDirectory() as t:
            self.assertEqual(heddle.load(self.run_.save(pathlib.Path(t) / "run")).history, self.run_.history)

    def test_faults(self):
        with self.assertRaisesRegex(heddle.InputError, "--tensorboard DIR, --mlflow DIR or both"):
            self.run_.track()


if __name__ == "__main__":
    unittest.main()
