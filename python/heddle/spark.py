"""Starts Heddle where the tables are: in Spark. Needs pyspark 4; predictions also need pyarrow.

    import heddle.spark

    heddle.spark.write_tables(nodes, edges, "/shared/web")      # what `heddle import` streams
    run = heddle.spark.train(session, "/shared/parts", ranks=4, method="mini-batch", model="sage")
    frame = heddle.spark.predict(session, run, "/shared/parts", ranks=4)

docs/how-to/spark.md has the whole way from tables to predictions.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional, Union

from pyspark import BarrierTaskContext
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from heddle import _program, _ranks, _run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heddle._settings import Settings

# Columns of `predict`, by what the model predicts.
CLASSES = "id string, class string, probability double, split string, label string, site string, probabilities array<double>"
NUMBERS = "id string, prediction array<double>, split string, target array<double>, site string"


def write_tables(
    nodes: DataFrame, edges: DataFrame, directory: _program.Path, *, id: str = "id", source: str = "source", target: str = "target"
) -> int:
    """Writes tables of Parquet files for `heddle import`, and returns the number of nodes, which get numbers by their names.

    nodes.parquet has the columns of nodes with numbers in id, edges.parquet numbers in source and target, names.parquet
    number and name of each node, to join predictions with.

    Args:
        nodes, edges: a row a node, and a row an edge between names of nodes. From Parquet, Delta, Iceberg or anything else
            that Spark reads.
        directory: a path that all executors, and later `heddle import`, reach. It must not have these tables.
        id, source, target: the columns that have names of nodes.

    Raises:
        InputError: a name is missing, occurs twice, or is in edges only. The directory keeps what was written until then.
    """
    at = os.fspath(directory).rstrip("/")
    session = nodes.sparkSession
    _numbers(nodes, id).write.parquet(f"{at}/names.parquet")
    names = session.read.parquet(f"{at}/names.parquet")
    n, distinct, top = names.agg(F.count("*"), F.count_distinct("name"), F.max("number")).first()
    if n == 0 or distinct != n or top != n - 1:
        twice = names.groupBy("name").count().where("count > 1 or name is null").first()
        got = "none" if n == 0 else f"{twice['name']!r} {twice['count']} times" if twice else "another table while it was read"
        raise _program.InputError(f"nodes: names in column {id} must be there in each row, and differ (got {got})")

    numbered = nodes.join(names, nodes[id].eqNullSafe(names["name"])).drop("name", id).withColumnRenamed("number", "id")
    numbered.orderBy("id").write.parquet(f"{at}/nodes.parquet")

    ends, missing = edges, {}
    for end, column in (("source", source), ("target", target)):
        other = names.select(F.col("name").alias(f"_{end}_name"), F.col("number").alias(f"_{end}"))
        ends = ends.join(other, F.col(column) == other[f"_{end}_name"], "left")
        # Seen while the table is written: to keep or read again the edges of a large graph takes as much disk or time.
        name = F.coalesce(F.col(column).cast("string"), F.lit("null"))
        missing[column] = Observation()
        ends = ends.observe(missing[column], F.min(F.when(F.col(f"_{end}").isNull(), name)).alias("name")).drop(column, f"_{end}_name")
    ends.withColumnsRenamed({"_source": "source", "_target": "target"}).write.parquet(f"{at}/edges.parquet")
    for column, seen in missing.items():
        if seen.get["name"] is not None:
            raise _program.InputError(f"edges: column {column} must name nodes of column {id} (got {seen.get['name']!r})")
    return int(n)


def _numbers(nodes: DataFrame, id: str) -> DataFrame:
    """Returns number and name of each node. Rows are counted per partition of the sorted names, so that no executor has more."""
    rows = (
        nodes.select(F.col(id).alias("name"))
        .orderBy("name")
        .withColumn("part", F.spark_partition_id())
        .withColumn("row", F.monotonically_increasing_id() % (1 << 33))  # the number of the partition is above bit 33
        .persist()
    )
    counts = sorted(rows.groupBy("part").count().collect())
    before = itertools.accumulate((count for _, count in counts), initial=0)
    table = nodes.sparkSession.createDataFrame([(part, n) for (part, _), n in zip(counts, before)], "part int, before long")
    return rows.join(F.broadcast(table), "part").select((F.col("before") + F.col("row")).alias("number"), "name")


def train(
    session: SparkSession,
    shard: _program.Path,
    *,
    ranks: int,
    plan: Optional[_program.Path] = None,
    out: Optional[_program.Path] = None,
    state: Optional[_program.Path] = None,
    port: int = 4001,
    **settings: "Unpack[Settings]",
) -> _run.Run:
    """Trains over a partition with a peer in each of `ranks` tasks of one barrier stage, and returns the run of rank 0.

    The tasks run at the same time, so the cluster must have a slot for each. If one fails, Spark fails the stage, and starts
    all of it again if the job is submitted again; with `state` the peers then go on from their checkpoints.

    Args:
        shard: directory of the partition, which all executors reach. Ranks get equally many parts each.
        plan: settings file without members; settings by name, as `method="mini-batch", model="sage"`, come before its.
        out: directory on the driver for model, figures and report; None: a temporary one.
        state: directory for checkpoints that all executors reach.
        port: UDP or TCP port of a host's first peer; the next peer on the host has the next one.
    """
    job = _ranks.job(shard, ranks, port, {"config": plan, **settings}, state=state)
    tasks = session.sparkContext.parallelize(range(ranks), ranks).barrier()
    files: dict[str, bytes] = {}
    for returned in tasks.mapPartitions(functools.partial(_join, job)).collect():
        files.update(returned)
    return _ranks.run(files, out)


def predict(
    session: SparkSession, model: Union[_run.Run, _program.Path], shard: _program.Path, *, ranks: int, port: int = 4001, **settings: Any
) -> DataFrame:
    """Predicts for all nodes of a partition, over as many peers, which exchange rows of their boundary nodes once.

    model is a run, or a model file on the driver; settings are those of the connections, as carrier="tcp"; the rest is as of
    `train`. A row a node has the columns of CLASSES or NUMBERS. `mapInArrow` computes them each time they are read: write
    or persist them.
    """
    job = _ranks.job(shard, ranks, port, settings, model)
    columns = NUMBERS if _run.parse_model(job.model)[0]["task"] == "regression" else CLASSES
    return session.range(0, ranks, 1, ranks).mapInArrow(functools.partial(_predict, job), columns, barrier=True)


def _place() -> tuple[int, list[str]]:
    """Returns the rank of this task and the hosts of all ranks."""
    context = BarrierTaskContext.get()
    context.barrier()
    return context.partitionId(), [t.address.rsplit(":", 1)[0] for t in context.getTaskInfos()]


def _join(job: _ranks.Job, _: Iterator[Any]) -> Iterator[dict[str, bytes]]:
    yield job.join(*_place())


def _predict(job: _ranks.Job, batches: Iterator[Any]) -> Iterator[Any]:  # record batches of Arrow
    import pyarrow.parquet

    for _ in batches:  # the number of the task, which says nothing
        pass
    table = pyarrow.parquet.read_table(pyarrow.BufferReader(job.predict(*_place())))
    yield from table.to_batches(max_chunksize=1 << 16)
