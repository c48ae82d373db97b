"""Starts Heddle in a placement group of Ray, a peer in each bundle.

    import heddle.ray

    run = heddle.ray.train("/shared/parts", ranks=4, method="mini-batch", model="sage")
    table = heddle.ray.predict(run, "/shared/parts", ranks=4)      # also needs pyarrow
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional, Union

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from heddle import _program, _ranks, _run

if TYPE_CHECKING:
    import pyarrow
    from typing_extensions import Unpack

    from heddle._settings import Settings


class _Rank:
    """A peer's process on a node of the cluster."""

    def __init__(self, job: _ranks.Job, rank: int):
        self.job, self.rank = job, rank

    def host(self) -> str:
        return ray.util.get_node_ip_address()

    def join(self, hosts: list[str]) -> dict[str, bytes]:
        return self.job.join(self.rank, hosts)

    def predict(self, hosts: list[str], model: bytes) -> bytes:
        return self.job.predict(self.rank, hosts, model)


@contextlib.contextmanager
def _placed(job: _ranks.Job, cpus: float, strategy: str) -> Iterator[tuple[list[Any], list[str]]]:
    """Yields an actor for each rank, all placed at once, and the hosts that they are on."""
    group = placement_group([{"CPU": cpus}] * job.ranks, strategy=strategy)
    try:
        ray.get(group.ready())
        make = ray.remote(num_cpus=cpus)(_Rank)
        actors = [
            make.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)).remote(job, rank)
            for rank in range(job.ranks)
        ]
        yield actors, ray.get([a.host.remote() for a in actors])
    finally:
        remove_placement_group(group)


def train(
    shard: _program.Path,
    *,
    ranks: int,
    cpus: float = 1,
    strategy: str = "SPREAD",
    plan: Optional[_program.Path] = None,
    out: Optional[_program.Path] = None,
    state: Optional[_program.Path] = None,
    port: int = 4001,
    **settings: "Unpack[Settings]",
) -> _run.Run:
    """Trains over a partition with `ranks` peers, and returns the run of rank 0.

    cpus are the processors of each bundle, strategy is SPREAD, STRICT_SPREAD, PACK or STRICT_PACK; the rest is as of
    `heddle.spark.train`.
    """
    job = _ranks.job(shard, ranks, port, _ranks.one(plan, settings), {"state": state})
    with _placed(job, cpus, strategy) as (actors, hosts):
        files = ray.get([a.join.remote(hosts) for a in actors])[0]
    return _ranks.run(files, out)


def predict(
    model: Union[_run.Run, _program.Path],
    shard: _program.Path,
    *,
    ranks: int,
    cpus: float = 1,
    strategy: str = "SPREAD",
    port: int = 4001,
    **settings: Any,
) -> "pyarrow.Table":
    """Predicts for all nodes of a partition, over as many peers; a row a node has the columns of predictions.parquet."""
    import pyarrow
    from pyarrow import parquet

    file = model.model_file if isinstance(model, _run.Run) else pathlib.Path(model)
    job = _ranks.job(shard, ranks, port, settings, {})
    with _placed(job, cpus, strategy) as (actors, hosts):
        content = ray.put(file.read_bytes())
        parts = ray.get([a.predict.remote(hosts, content) for a in actors])
    return pyarrow.concat_tables([parquet.read_table(pyarrow.BufferReader(p)) for p in parts])
