"""The notebooks of docs/notebooks run from the first cell to the last; their own assertions check what they show."""

import os
import pathlib
import sys
import unittest

from test_heddle import needs

ROOT = pathlib.Path(__file__).resolve().parents[2]


@needs("nbclient", "ipykernel", "torch", "torch_geometric", "pandas", "onnx", "onnxruntime")
class Notebooks(unittest.TestCase):
    def run_(self, name):
        import nbclient
        import nbformat

        notebook = nbformat.read(ROOT / "docs" / "notebooks" / name, as_version=4)
        client = nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(ROOT / "docs" / "notebooks")}})
        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "python"), before]))
        try:
            return client.execute()
        finally:
            os.environ["PYTHONPATH"] = before

    def test_all_are_run(self):
        names = {p.name for p in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
        self.assertEqual(names, {"first-run.ipynb", "three-hospitals.ipynb", "from-fedavg.ipynb", "reading-the-model.ipynb", "beside-others.ipynb"})

    def test_first_run(self):
        self.run_("first-run.ipynb")

    def test_three_hospitals(self):
        self.run_("three-hospitals.ipynb")

    def test_from_fedavg(self):
        self.run_("from-fedavg.ipynb")

    def test_beside_others(self):
        """Flower and FedGraph run where HEDDLE_FRAMEWORKS, or this interpreter, has them."""
        notebook = self.run_("beside-others.ipynb")
        said = [o.text for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "stream"]
        for line in "".join(said).splitlines():
            if line.startswith("SKIPPED"):
                print(line, file=sys.stderr)

    def test_reading_the_model(self):
        self.run_("reading-the-model.ipynb")


if __name__ == "__main__":
    unittest.main()
