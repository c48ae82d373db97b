"""Starts Heddle in a placement group of Ray, a peer in each bundle.

    import heddle.ray

    run = heddle.ray.train("/shared/parts", ranks=4, method="mini-batch", model="sage")
    table = heddle.ray.predict(run, "/shared/parts", ranks=4)      # also needs pyarrow
"""

from __future__ import annotations

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

    def run(self, command: str, hosts: list[str]) -> Any:
        return getattr(self.job, command)(self.rank, hosts)


def _run_ranks(job: _ranks.Job, command: str, cpus: float, strategy: str) -> list[Any]:
    """Runs a command of a job with an actor for each rank, all placed at once, and returns what each gives back."""
    group = placement_group([{"CPU": cpus}] * job.ranks, strategy=strategy)
    try:
        ray.get(group.ready())
        make, shared = ray.remote(num_cpus=cpus)(_Rank), ray.put(job)
        actors = [
            make.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)).remote(shared, rank)
            for rank in range(job.ranks)
        ]
        hosts = ray.get([a.host.remote() for a in actors])
        return ray.get([a.run.remote(command, hosts) for a in actors])
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
    job = _ranks.job(shard, ranks, port, {"config": plan, **settings}, state=state)
    return _ranks.run(_run_ranks(job, "join", cpus, strategy)[0], out)


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
    import pyarrow.parquet

    job = _ranks.job(shard, ranks, port, settings, model)
    parts = _run_ranks(job, "predict", cpus, strategy)
    return pyarrow.concat_tables([pyarrow.parquet.read_table(pyarrow.BufferReader(p)) for p in parts])
