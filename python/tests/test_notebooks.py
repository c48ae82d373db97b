"""The notebooks of docs/notebooks print what they show, but for times. HEDDLE_WRITE=1 stores new outputs."""

import os
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
FIGURES = {"first-run.ipynb", "three-hospitals.ipynb", "from-fedavg.ipynb"}
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]\d+)?")


def run(name):
    """Returns a notebook as stored, and after a run."""
    for module in ("nbclient", "ipykernel", "torch", "torch_geometric", "pandas", "matplotlib"):
        pytest.importorskip(module)
    import nbclient
    import nbformat

    stored, notebook = (nbformat.read(NOTEBOOKS / name, as_version=4) for _ in range(2))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
        cell.outputs = [o for o in cell.get("outputs", []) if o.get("name") != "stderr"] if cell.cell_type == "code" else []
        if cell.cell_type != "code":
            del cell["outputs"]
    if os.environ.get("HEDDLE_WRITE"):
        nbformat.write(notebook, NOTEBOOKS / name)
        stored = notebook
    return stored, notebook


def shown(notebook):
    """Returns the texts that a notebook shows, and how many figures. Figures are left out: fonts differ."""
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    figures = sum("image/png" in o.get("data", {}) for o in outputs)
    texts = [o.text if o.output_type == "stream" else o.data["text/plain"] for o in outputs if "image/png" not in o.get("data", {})]
    return re.sub(r"\S*/heddle-\w+/|\d+\.\d s\b|\d\.\de-\d\d", "", "\n".join(texts)), figures


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_notebook_prints_what_it_shows(name):
    (want, figures), (got, _) = map(shown, run(name))
    assert figures >= 1
    assert NUMBER.sub("#", got) == NUMBER.sub("#", want)
    for a, b in zip(NUMBER.findall(got), NUMBER.findall(want)):  # processors round differently, and acknowledgements depend on clocks
        assert float(a) == pytest.approx(float(b), rel=0.05, abs=0.02), f"{a} in place of {b}"


def test_beside_others():
    """Flower and FedGraph run if HEDDLE_FRAMEWORKS, or this interpreter, has them."""
    _, notebook = run("beside-others.ipynb")
    print("\n".join(line for line in shown(notebook)[0].splitlines() if line.startswith("SKIPPED")), file=sys.stderr)


def test_all_are_run():
    assert {p.name for p in NOTEBOOKS.glob("*.ipynb")} == FIGURES | {"beside-others.ipynb"}
