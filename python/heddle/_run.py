"""Runs of the program, and what they left."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import os
import pathlib
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Optional, TypeVar

import numpy as np

from heddle import _graph, _program

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heddle._settings import Settings

OnRound = Callable[[dict[str, Any]], Any]


class Report:
    """A page that the program wrote. A notebook shows it.

    Attributes:
        path: the HTML file, which needs no other.
    """

    def __init__(self, path: pathlib.Path, of: Any):
        self.path = path
        self._of = of  # a temporary directory goes with the run

    def _repr_html_(self) -> str:
        page = base64.b64encode(self.path.read_bytes()).decode()
        return f'<iframe src="data:text/html;base64,{page}" style="width:100%;height:40em;border:0"></iframe>'


class _Owner:
    """Removes a temporary directory when it is no longer referenced, unless keep is called."""

    def __init__(self, directory: pathlib.Path):
        self.keep = weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True).detach


class _Output:
    """A directory that the program wrote."""

    _page = "report"

    def __init__(self, out: _program.Path, text: str = "", history: Optional[list[dict[str, Any]]] = None, owner: Any = None):
        self.out = pathlib.Path(out)
        self.text = text
        self.history = history or []
        self._owner = owner
        self._data: Optional[pathlib.Path] = None
        self._labels: tuple[Optional[np.ndarray], Any] = (None, None)  # as the caller gave them, and names for them
        self._cached: dict[str, dict[str, np.ndarray]] = {}

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text or repr(self))}</pre>"

    def __getstate__(self) -> dict[str, Any]:
        files = {str(f.relative_to(self.out)): f.read_bytes() for f in self.out.rglob("*") if f.is_file()}
        return {**self.__dict__, "_owner": None, "_files": files}

    def __setstate__(self, state: dict[str, Any]) -> None:
        files, before = state.pop("_files"), state["out"]
        self.__dict__.update(state)
        self.out, self._owner = _directory(None)
        for name, content in files.items():
            (self.out / name).parent.mkdir(parents=True, exist_ok=True)
            (self.out / name).write_bytes(content)
        data = state.get("_data")
        if data is not None and data.is_relative_to(before):
            self._data = self.out / data.relative_to(before)

    def report(self) -> Report:
        """Returns the page about the run or comparison, which a notebook shows."""
        return Report(self.out / f"{self._page}.html", self)

    def save(self, directory: _program.Path) -> pathlib.Path:
        """Copies all files to a new directory and returns it."""
        return pathlib.Path(shutil.copytree(self.out, directory))


_Made = TypeVar("_Made", bound=_Output)


class Run(_Output):
    """A trained model, with its figures and predictions. N nodes, C classes, H hidden columns.

    Attributes:
        out: directory of the run; a temporary one goes with this object unless `save` copies it.
        text: what the program printed.
        history: an object each round: docs/reference/events.md has its fields. `pandas.DataFrame(run.history)` is a table.
    """

    def __repr__(self) -> str:
        m = self.metrics
        model = "" if m["method"] == "class-means" else f" {m['model']}"
        return f"<heddle.Run {m['method']}{model}: {m['metric']} {m['test']} test, {m['val']} validation, {self.out}>"

    @property
    def model_file(self) -> pathlib.Path:
        """model.safetensors, which `heddle predict` and `peer join --init` read."""
        return self.out / "model.safetensors"

    @property
    def metrics(self) -> dict[str, Any]:
        """Figures of the run: result.json. `test` and `val` are the metric named `metric`, in [0, 1]."""
        return _json(self.out / "result.json")

    @property
    def classes(self) -> list[str]:
        """Names of the C classes, or of the C numbers of a regression."""
        arrays = self._arrays()
        return [str(name) for name in arrays["targets" if "targets" in arrays else "classes"]]

    @property
    def ids(self) -> np.ndarray:
        """Names of the nodes, [N]."""
        return self._arrays()["id"]

    @property
    def split(self) -> np.ndarray:
        """Returns what each node was for, [N]: train, val, test or none."""
        return self._arrays()["split"]

    def weights(self) -> dict[str, np.ndarray]:
        """Returns the parameters by name, float32; docs/reference/model-file.md says what each one is."""
        return read_model(self.model_file)[2]

    def predict(self, data: Any = None) -> np.ndarray:
        """Returns the predicted class of every node, [N]; where a node may have several classes, [N, C] bool;
        of a regression the predicted numbers, [N, C] float32.

        A class has the value and type that it had in `y`, or in the label column of tables. Of a run of files it is a
        number if the names of all classes are, else its name. predict_proba().argmax(axis=1) is its place in `classes`.

        Args:
            data: a graph or tables, as of `train`, with the columns of the training data; labels may be missing. Tables
                are encoded as those of the training run. The masks of a graph mark the nodes that the model was trained
                on; without masks all its nodes are new. None: the nodes of the run, predicted at its end.
        """
        arrays = self._arrays(data)
        found = arrays["prediction" if "prediction" in arrays else "class"]
        if found.ndim == 2:
            return found
        return np.asarray(self.values([str(name) for name in arrays["classes"]])[found])

    def values(self, names: Optional[list[str]] = None) -> np.ndarray:
        """Returns the classes of those names, None: all, as `predict` has them."""
        y, titles = self._labels
        return _graph.values_of(y, self.classes if names is None else names, titles)

    def predict_proba(self, data: Any = None) -> np.ndarray:
        """Returns the calibrated probability of every class, [N, C] float32."""
        return self._of_classes("probability", data)

    def logits(self, data: Any = None) -> np.ndarray:
        """Returns the logits of every class, [N, C] float32."""
        return self._of_classes("logits", data)

    def embeddings(self, data: Any = None) -> np.ndarray:
        """Returns the rows that the last linear map reads, [N, H] float32."""
        self._of_nodes()
        return self._ask(data, embeddings=True)["embeddings"]

    def recommend(
        self, nodes: Optional[Iterable[Any]] = None, k: int = 10, data: Any = None, relation: Optional[str] = None
    ) -> dict[str, np.ndarray]:
        """Returns the best new links by a model of links (task="links"), a row a link, R rows.

        Args:
            nodes: IDs of the nodes that get links; None: all.
            k: links for each node and relation.
            data: a graph, as of `train`, whose links are known and left out; None: the one of the run.
            relation: name of the relation of the links; None: each of the model's.

        Returns:
            arrays [R]: `node` and `other`, IDs of the two ends, `relation`, its name, `rank` from 1, and `score`, log-odds.
        """
        given = _program.flags({"k": k, "relation": relation}) + [f"--node={one}" for one in ([] if nodes is None else nodes)]
        return self._ask(data, *given, command="recommend")

    def torch_module(self) -> Any:
        """Returns the model as a torch.nn.Module with forward(x, edge_index, edge_weight=None); see heddle.torch."""
        from heddle import torch

        return torch.module(self.model_file)

    def _of_nodes(self) -> None:
        if read_model(self.model_file)[0]["task"] == "links":
            raise _program.InputError("a model of links predicts nothing of a node: recommend() returns links, metrics['ranks'] the figures")

    def _of_classes(self, name: str, data: Any) -> np.ndarray:
        if (found := self._arrays(data).get(name)) is None:
            raise _program.InputError(f"there is no {name} of numbers: predict() returns them")
        return found

    def _arrays(self, data: Any = None) -> dict[str, np.ndarray]:
        """Returns the predictions by node number."""
        self._of_nodes()
        if data is None:
            if "own" not in self._cached:
                self._cached["own"] = _load(self.out / "predictions.npz")
            return self._cached["own"]
        return self._ask(data)

    def _ask(self, data: Any, *args: str, command: str = "predict", embeddings: bool = False) -> dict[str, np.ndarray]:
        """Returns what a command gives for data; None: for the data of the run."""
        if data is None and self._data is None:
            raise _program.InputError("this run was not trained here: give the data")
        with tempfile.TemporaryDirectory() as temporary:
            t = pathlib.Path(temporary)
            of = data if data is None or isinstance(data, (str, os.PathLike)) else _graph.graph_of(data)
            if command == "predict" and isinstance(of, _graph.Tables):
                given = of.files(t)  # read as those that the model was trained on
            else:
                given = {"data": self._data if of is None else _written(of, t, False)}
            files = {"out": t / "out.npz", "embeddings": t / "rows.npz" if embeddings else None}
            with _program.in_words(data, t, self.out):
                text = _program.run([command, "--model", str(self.model_file), *_program.flags({**given, **files}), *args])
            for line in text.splitlines():
                if line.startswith("warning: "):
                    _program.warn(_program.in_python(line.removeprefix("warning: ")))
            return _load(files["embeddings"] or t / "out.npz", by_node=command == "predict")


class Comparison(_Output):
    """What sites reach together, alone, with features only and with pooled data.

    Attributes:
        out: directory with compare.html, compare.json, compare.csv and compare.npz.
        text: the tables.
        history: an object each round of every run.
    """

    _page = "compare"

    @property
    def metrics(self) -> dict[str, Any]:
        """Figures: compare.json. `sentence` reports whether joining helped, `ways` what each way of training gave."""
        return _json(self.out / "compare.json")

    def __repr__(self) -> str:
        return f"<heddle.Comparison: {self.metrics['sentence']}>"


def demo_graph(seed: int = 1) -> _graph.Graph:
    """Returns the graph of `heddle demo`: 8,000 nodes of 4 sites in 7 classes. It is made, not downloaded."""
    with tempfile.TemporaryDirectory() as t:
        _program.run(["demo", f"--seed={seed}", "--graph", os.path.join(t, "sites")])
        return _graph.Graph.read(os.path.join(t, "sites"))


def train(
    data: Any,
    sites: Any = None,
    *,
    split: int = 0,
    seeds: int = 1,
    out: Optional[_program.Path] = None,
    resume: bool = False,
    on_round: Optional[OnRound] = None,
    progress: bool = True,
    **plan: "Unpack[Settings]",
) -> Run:
    """Trains one model across sites, each simulated by a peer on this machine, and returns it.

    Args:
        data: the graph of all sites: a PyG `Data` or `HeteroData`, a DGL or networkx graph, a `Graph` of arrays,
            `Tables`, or the path of a data set or of a partition (`heddle partition`).
        sites: the site of each node, [N] numbers or names; the name of the node attribute or column that has it; or
            a number of peers among which nodes are divided by `policy`. None: attribute `site`, else 4 peers.
        split: column of masks that have several.
        seeds: runs, by the next seeds and splits; the one that validates best is returned.
        out: directory for the results; None: a temporary one.
        resume: whether an interrupted run in `out` goes on.
        on_round: gets an object after each round. True ends the rounds of the layer, or of the run if all layers are
            trained together: the model is that of a run with so many `rounds`. What it raises interrupts the run.
        progress: whether tqdm, where it is installed, shows progress.
        plan: settings, as `method="layer-wise", model="sage"`. Without a method it is class-means.
            `init` may also be the state dict of a PyG model: with method full-batch its GCN, GraphSAGE, GAT or
            GIN layers are those that training starts from.

    Raises:
        InputError: data or settings are wrong.
        Error: the run failed.
        Interrupted: Ctrl-C; the checkpoints are in its `out`.
    """
    return _simulate(Run, "train", data, sites, out, on_round, progress, {"split": split, "seeds": seeds, "resume": resume or None, **plan})


def compare(
    data: Any,
    sites: Any = None,
    *,
    seeds: int = 5,
    split: int = 0,
    out: Optional[_program.Path] = None,
    on_round: Optional[OnRound] = None,
    progress: bool = True,
    **plan: "Unpack[Settings]",
) -> Comparison:
    """Compares training together with training at each site alone, on features only and on pooled data.

    Arguments are as of `train`; `seeds` runs give the intervals.
    """
    return _simulate(Comparison, "compare", data, sites, out, on_round, progress, {"split": split, "seeds": seeds, **plan})


def cross_validate(data: Any, folds: int = 5, sites: Any = None, *, val: float = 0.2, seed: int = 0, **settings: Any) -> np.ndarray:
    """Returns the test metric of each fold, [folds]: each labelled node is a test node once.

    Rows of a graph are not apart, so scikit-learn's splitters, which cut tables, do not fit: here all nodes and edges stay,
    and a fold is a mask.

    Args:
        data, sites, settings: as of `train`; masks of data are left out.
        folds: parts of the labelled nodes of each class.
        val: fraction of the other nodes that choose the round.
        seed: of the parts.
    """
    if folds < 2:
        raise _program.InputError(f"folds must be at least 2 (got {folds})")
    g, figures = _graph.graph_of(data, None if isinstance(sites, (int, np.integer)) else sites), []
    if isinstance(g, _graph.Tables):
        with tempfile.TemporaryDirectory() as t:
            g = _graph.Graph.read(g.write(t))
    number = isinstance(sites, (int, np.integer))
    for fold in range(folds):
        draw = {"train": 1 - val, "val": val, "seed": seed, "folds": folds, "fold": fold}
        one = dataclasses.replace(g, train_mask=None, val_mask=None, test_mask=None, draw=draw)
        figures.append(train(one, sites if number else None, progress=False, **settings).metrics["test"])
    return np.array(figures, float)


def join(
    plan: _program.Path,
    shard: _program.Path,
    *,
    out: Optional[_program.Path] = None,
    on_round: Optional[OnRound] = None,
    progress: bool = True,
    **options: Any,
) -> Run:
    """Takes part in a run on several machines with this site's own part, and returns the model of all sites.

    Args:
        plan: file of the plan, the same at all sites (`heddle plan`).
        shard: this site's part (`heddle partition`, `heddle match`).
        out, on_round, progress: as of `train`, but what on_round returns ends nothing: members agree on rounds by the plan.
        options: further flags of `peer join`, as `identity="site-a.key"`, `state="state"`, `policy="policy.yaml"`.
    """
    directory, owner = _directory(out)
    args = _program.flags({"plan": plan, "shard": shard, "out": directory, **options})
    text, history = _watched(["join", *args], directory, on_round, progress, owner)
    return Run(directory, text, history, owner)


def simulate(data: Any = None, **options: Any) -> dict[str, Any]:
    """Simulates a federation in which phones send shares of their numbers to a few sites, and returns its figures.

    Args:
        data: a graph as of `train`, cut into communities, one a phone; None: each phone has a generated graph.
        options: flags of `heddle simulate`, as `phones=1000`, `trace="day"`, `participation=[1, 0.3]`.
    """
    with tempfile.TemporaryDirectory() as t:
        at = None if data is None else _written(data, pathlib.Path(t), True)
        with _program.in_words(data, t):
            figures: dict[str, Any] = json.loads(_program.run(["simulate", "--json", *_program.flags({"data": at, **options})]))
            return figures


def load(directory: _program.Path) -> Run:
    """Returns the run whose files are in a directory: of `train`, `join`, `Run.save` or the program."""
    run = Run(directory)
    if not run.model_file.exists():
        raise _program.InputError(f"{directory} must be the directory of a run, with model.safetensors (got none)")
    run.history = _History.read(run.out / "events.jsonl")
    return run


def export_onnx(run: Run, path: _program.Path) -> pathlib.Path:
    """Writes the model of a run as ONNX, operator set 18, and returns the file. It needs torch and onnx.

    Inputs are x [N, F], and edge_index [2, E], edge_weight [E], edge_type [E], edge_attr [E, G], labels [N, C],
    train_mask [N], held_out [N] and sparse [] where the model reads them; outputs are logits and probabilities [N, C]
    (docs/reference/model-file.md). Models of links and of nodes without features are refused.
    """
    from heddle import _onnx

    return _onnx.export(run.model_file, path)


def read_model(file: _program.Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
    """Returns spec, card, with the classes, and tensors of a model file; docs/reference/model-file.md describes them."""
    return parse_model(pathlib.Path(file).read_bytes(), file)


def parse_model(blob: bytes, file: _program.Path = "the model") -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
    """Returns what `read_model` does, of a file's content."""
    at = blob.find(b'"digest":"') + 10
    digest = hashlib.sha256(blob[:at] + b"0" * 64 + blob[at + 64 :]).hexdigest().encode()
    if blob[at : at + 64] != digest:
        raise _program.InputError(f"{file} must be a model file without damage: its digest must be {digest!r} (got {blob[at : at + 64]!r})")
    size = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + size])
    meta = header.pop("__metadata__")
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        tensors[name] = np.frombuffer(blob, "<f4", (end - begin) // 4, 8 + size + begin).reshape(t["shape"]).copy()
    card = json.loads(meta["card"])
    if "classes" in meta:
        card["classes"] = json.loads(meta["classes"])
    return json.loads(meta["spec"]), card, tensors


def _simulate(
    kind: type[_Made], command: str, data: Any, sites: Any, out: Optional[_program.Path], on_round: Optional[OnRound], progress: bool,
    settings: dict[str, Any],
) -> _Made:  # fmt: skip
    if on_round is not None and not callable(on_round):
        raise _program.InputError(f"on_round must be a function of one object (got {on_round!r})")
    directory, owner = _directory(out)
    with _program.in_words(data, directory):
        args, at, labels = _given(data, sites, directory, settings)
        if isinstance(settings.get("init"), Mapping):
            args.append(f"--init={_initial(settings['init'], directory / 'init.safetensors')}")
        text, history = _watched([command, *args], directory, on_round, progress, owner, bool(settings.get("resume")))
    made = kind(directory, text, history, owner)
    made._data, made._labels = at, labels
    return made


def _directory(out: Optional[_program.Path]) -> tuple[pathlib.Path, Any]:
    """Makes the directory of a run, and returns it and, of a temporary one, what removes it when it is no longer referenced."""
    if out is not None:
        pathlib.Path(out).mkdir(parents=True, exist_ok=True)
        return pathlib.Path(out), None
    directory = pathlib.Path(tempfile.mkdtemp(prefix="heddle-"))
    return directory, _Owner(directory)


def _given(data: Any, sites: Any, directory: pathlib.Path, settings: dict[str, Any]) -> tuple[list[str], Optional[pathlib.Path], Any]:
    """Returns the flags of a simulation, the data set that it reads, and its labels with their names."""
    if isinstance(sites, (int, np.integer)) and not isinstance(sites, bool) and sites > 0:
        settings, sites = {"peers": int(sites), "policy": "random", **settings}, None
    elif sites is not None and not isinstance(sites, str) and np.ndim(sites) == 0:
        raise _program.InputError(f"sites must be a number of peers from 1 on, the name of an attribute or column, or [N] (got {sites!r})")
    labels: Any = (None, None)
    if isinstance(data, (str, os.PathLike)):
        at = pathlib.Path(data)
        if sites is not None:
            raise _program.InputError("a data set on disk has its own sites: sites must be None or a number of peers")
        which = "shards" if (at / "manifest.json").exists() else "data"
    else:
        which, of = "data", _graph.graph_of(data, sites)
        if isinstance(of, _graph.Tables):
            of = dataclasses.replace(of, options={**_graph.regression(settings.get("task")), **of.options})
        at, labels = of.write(directory / "data", settings.get("task") != "links"), of.labels()
    given = {k: v for k, v in settings.items() if k != "resume" and not isinstance(v, Mapping)}
    flags = _program.flags({which: at, "out": directory, **given})
    if settings.get("resume"):
        flags.append("--resume")
    return flags, at if which == "data" else None, labels


def _initial(state: Mapping[str, Any], file: pathlib.Path) -> pathlib.Path:
    """Writes a state dict of PyG as `init` reads it, in the format of safetensors, and returns the file."""
    header: dict[str, Any] = {}
    body = bytearray()
    for name, value in state.items():
        a = np.asarray(_graph.array(value), "<f4")
        header[name] = {"dtype": "F32", "shape": a.shape, "data_offsets": [len(body), len(body) + a.nbytes]}
        body += a.tobytes()
    head = json.dumps(header).encode()
    file.write_bytes(len(head).to_bytes(8, "little") + head + body)
    return file


def _written(data: Any, directory: pathlib.Path, draw: bool) -> pathlib.Path:
    return pathlib.Path(data) if isinstance(data, (str, os.PathLike)) else _graph.graph_of(data).write(directory, draw)


class _History(list[dict[str, Any]]):
    """Rounds, by their events. Rounds that are made again after a resume are listed once."""

    resumed = False

    def add(self, e: dict[str, Any]) -> bool:
        """Adds an event and reports whether it is a round."""
        self.resumed = self.resumed or e["kind"] == "restored"
        if e["kind"] != "round":
            return False
        before = float("inf")
        while self.resumed and self and e["done"] <= self[-1]["done"] < before:
            before = self.pop()["done"]
        self.resumed = False
        self.append(e)
        return True

    @classmethod
    def read(cls, file: pathlib.Path) -> "_History":
        out = cls()
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                out.add(json.loads(line))
        return out


def _watched(
    args: list[str], out: pathlib.Path, on_round: Optional[OnRound], progress: bool, owner: Any, resume: bool = False
) -> tuple[str, list[dict[str, Any]]]:
    history = _History.read(out / "events.jsonl") if resume else _History()
    events = open(out / "events.jsonl", "a" if resume else "w", encoding="utf-8")
    bar = _bar() if progress else None

    def on_event(e: dict[str, Any]) -> Optional[bool]:
        events.write(json.dumps(e) + "\n")
        if not history.add(e):
            return None
        if bar is not None:
            bar.total = e["total"]
            bar.n = e["done"]
            bar.set_description_str(e["stage_name"], refresh=False)
            bar.set_postfix(loss=e["loss"], val=e["val"])
        last = on_round(e) if on_round is not None else None
        return isinstance(last, (bool, np.bool_)) and bool(last)

    try:
        if resume:
            events.write('{"kind": "restored"}\n')
            history.resumed = True
        return _program.run(args, on_event, out, ask=on_round is not None and args[0] == "train"), list(history)
    except _program.Interrupted:
        if owner is not None:
            owner.keep()
        raise
    finally:
        events.close()
        if bar is not None:
            bar.close()


def _bar() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(unit="round", leave=False, file=sys.stderr)


def _json(file: pathlib.Path) -> dict[str, Any]:
    out: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return out


def _load(file: pathlib.Path, by_node: bool = True) -> dict[str, np.ndarray]:
    """Returns arrays, of rows a node by node number where the file has them."""
    if not file.exists():
        raise _program.InputError(f"{file} is missing: this peer received the model from another one")
    with np.load(file) as z:
        arrays = dict(z)
    if by_node and "node" in arrays:
        order = np.argsort(arrays["node"], kind="stable")
        n = len(order)
        arrays = {k: a[order] if k != "classes" and len(a) == n else a for k, a in arrays.items()}
    return arrays
