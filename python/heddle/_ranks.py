"""Peers that an engine of a cluster starts: what each of them is given, and what it gives back."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from heddle import _program, _run

# What rank 0 gives back of a run. Predictions, which are as long as the graph, are each rank's own.
RETURNED = ["model.safetensors", "result.json", "settings.yaml", "report.html"]


@dataclasses.dataclass(frozen=True)
class Job:
    """What all ranks are given alike, pickled. The shards are at a path that every rank can read.

    Attributes:
        ranks: number of peers.
        shard: directory of the partition.
        port: of the first rank on a host; the next rank there has the next port.
        options: further flags of the command.
        plan, model, secret: contents of the files; the keys of all ranks follow from the secret.
    """

    ranks: int
    shard: str
    port: int
    options: Mapping[str, Any]
    plan: bytes
    model: bytes
    secret: bytes = dataclasses.field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def join(self, rank: int, hosts: Sequence[str]) -> dict[str, bytes]:
        """Takes part in training, and returns the files of rank 0; of other ranks nothing."""
        with tempfile.TemporaryDirectory() as t:
            # Events, although nobody reads them: the program ends when the process that started it has died.
            _program.run(["join", *self._flags(t, rank, hosts), f"--out={t}/out"], lambda _: None)
            if rank > 0:
                return {}
            own = pathlib.Path(t) / "out" / "rank-0"
            return {name: (own / name).read_bytes() for name in RETURNED if (own / name).exists()}

    def predict(self, rank: int, hosts: Sequence[str]) -> bytes:
        """Takes part in predicting, and returns a Parquet file with the predictions for the rank's own nodes."""
        with tempfile.TemporaryDirectory() as t:
            files = pathlib.Path(t)
            (files / "model").write_bytes(self.model)
            _program.run(["predict", *self._flags(t, rank, hosts), f"--model={t}/model", f"--out={t}/{{rank}}.parquet"])
            return (files / f"{rank}.parquet").read_bytes()

    def _flags(self, directory: str, rank: int, hosts: Sequence[str]) -> list[str]:
        for name, content in (("plan.yaml", self.plan), ("secret", self.secret)):
            with open(os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
                f.write(content)
        given = {"plan": f"{directory}/plan.yaml", "secret": f"{directory}/secret", "shard": self.shard, "rank": rank, "ranks": self.ranks}
        return _program.flags({**given, "hosts": ",".join(hosts), "port": self.port, **self.options})


def job(
    shard: _program.Path, ranks: int, port: int, settings: Mapping[str, Any], model: Any = None, **options: Any
) -> Job:
    """Returns the job of so many ranks. settings are those of a plan, model is a run or the path of a model file.

    Raises:
        InputError: a setting is wrong.
    """
    if ranks < 1:
        raise _program.InputError(f"ranks must be at least 1 (got {ranks})")
    with tempfile.TemporaryDirectory() as t:
        written = pathlib.Path(t) / "plan.yaml"
        _program.run(["plan", f"--out={written}", *_program.flags(dict(settings))])
        plan = written.read_bytes()
    file = model.model_file if isinstance(model, _run.Run) else model
    return Job(ranks, os.fspath(shard), port, options, plan, b"" if file is None else pathlib.Path(file).read_bytes())


def run(files: Mapping[str, bytes], out: Optional[_program.Path]) -> _run.Run:
    """Returns the run whose files rank 0 gave back, in a directory; None: a temporary one."""
    directory, owner = _run._directory(out)
    for name, content in files.items():
        (directory / name).touch(0o600)
        (directory / name).write_bytes(content)
    return _run.Run(directory, owner=owner)
