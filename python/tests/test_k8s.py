"""Validates the manifests in examples/k8s and packaging/k8s: those of Kubernetes by its own schemas, JobSet and TrainJob by Kubeflow's models."""

import importlib.util
import json
import pathlib
import unittest

MISSING = [m for m in ("kubernetes_validate", "kubeflow_trainer_api", "yaml") if importlib.util.find_spec(m) is None]
ROOT = pathlib.Path(__file__).parents[2]


def differences(given, kept, at=""):
    """Yields the places where kept, what a model made of given, lacks or changes something of it."""
    if isinstance(given, dict):
        for k, v in given.items():
            if not isinstance(kept, dict) or k not in kept:
                yield f"{at}.{k} is unknown"
            else:
                yield from differences(v, kept[k], f"{at}.{k}")
    elif isinstance(given, list):
        for i, v in enumerate(given):
            yield from differences(v, kept[i], f"{at}[{i}]")
    elif given != kept:
        yield f"{at} is {given!r}, read as {kept!r}"


@unittest.skipIf(MISSING, f"SKIPPED: schemas of Kubernetes: {', '.join(MISSING)} is missing")
class Manifests(unittest.TestCase):
    def faults(self, document):
        import kubernetes_validate
        from kubeflow_trainer_api import models

        custom = {
            "JobSet": models.JobsetV1alpha2JobSet,
            "TrainingRuntime": models.TrainerV1alpha1TrainingRuntime,
            "TrainJob": models.TrainerV1alpha1TrainJob,
        }
        model = custom.get(document["kind"])
        if model is None:
            try:
                kubernetes_validate.validate(document, "1.37", strict=True)
            except kubernetes_validate.ValidationError as e:
                return [str(e)]
            return []
        try:
            kept = json.loads(model.from_dict(document).to_json())
        except ValueError as e:
            return [str(e)]
        return list(differences(document, kept, document["kind"]))

    def test_manifests_are_valid(self):
        import yaml

        kinds = set()
        for path in sorted([*ROOT.glob("examples/k8s/*.yaml"), *ROOT.glob("packaging/k8s/*.yaml")]):
            for document in yaml.safe_load_all(path.read_text()):
                kinds.add(document["kind"])
                with self.subTest(f"{path.name}: {document['kind']}"):
                    self.assertEqual([], self.faults(document))
                    spec = document.get("spec")
                    if spec is not None:
                        spec["completionModes"] = "Indexed"
                        self.assertNotEqual([], self.faults(document), "a wrong field is accepted")
        self.assertEqual({"ConfigMap", "Service", "Job", "JobSet", "TrainingRuntime", "TrainJob"}, kinds)


if __name__ == "__main__":
    unittest.main()
