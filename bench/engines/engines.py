"""From tables in Spark to one epoch of sampled training: seconds, and the most memory that any process held.

    HEDDLE_PROGRAM=peer PYTHONPATH=python python bench/engines/engines.py --edges 10000000 --dir /data/bench

It generates nodes and edges in Spark (local-cluster, two workers of two cores), numbers and writes them, imports them into
a stored graph, partitions that into 16 shards, and trains one epoch of mini-batches over four peers in a barrier stage. What
a step has read is deleted after it. It fails where a process holds more than --bound MiB. docs/measurements/partition.md has
figures.
"""

import argparse
import os
import pathlib
import shutil
import sys
import threading
import time

import heddle.spark
from heddle import _program


class Memory:
    """The most memory (VmHWM) of each descendant of this process, looked at twice a second."""

    def __init__(self):
        self.peak, self.ended = {}, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        while not self.ended.wait(0.5):
            self._look()

    def _look(self):
        parents, status = {}, {}
        for path in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                fields = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
            except OSError:
                continue
            pid = int(path.parent.name)
            parents[pid], status[pid] = int(fields["PPid"]), fields
        for pid, fields in status.items():
            at = pid
            while at in parents and at != os.getpid():
                at = parents[at]
            if at == os.getpid() and pid != at and "VmHWM" in fields:
                key = pid, fields["Name"].strip()
                self.peak[key] = max(self.peak.get(key, 0), int(fields["VmHWM"].split()[0]) >> 10)

    def largest(self):
        """Returns MiB of the processes of each name since the last call, the largest first."""
        out = {}
        for (_, name), mib in sorted(self.peak.items(), key=lambda p: -p[1]):
            out.setdefault(name, []).append(mib)
        self.peak = {}
        return out


def size(path):
    """Bytes of a file or of all files of a directory."""
    return sum(f.stat().st_size for f in ([path] if path.is_file() else path.rglob("*")) if f.is_file())


def tables(session, n, edges):
    """A graph of 16 communities: squared sources, so that some nodes have many edges; three of four edges stay inside."""
    from pyspark.sql import functions as F

    label = F.col("number") % 16
    nodes = session.range(n).withColumnRenamed("id", "number").select(
        F.format_string("n%09d", "number").alias("name"), F.concat(F.lit("c"), label.cast("string")).alias("label"),
        *[(F.randn(100 + k) + F.when(label == k, 1.5).otherwise(0)).cast("float").alias(f"x{k}") for k in range(16)],
    )
    source = (F.rand(1) * F.rand(1) * n).cast("long")
    inside = ((F.rand(2) * (n // 16)).cast("long") * 16 + F.col("source") % 16)
    target = F.when(F.rand(3) < 0.75, inside).otherwise((F.rand(4) * n).cast("long"))
    links = session.range(edges).select(source.alias("source")).withColumn("target", target)
    return nodes, links.select(*[F.format_string("n%09d", c).alias(c) for c in ("source", "target")])


def main():
    from pyspark.sql import SparkSession

    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--edges", type=int, default=10_000_000)
    flags.add_argument("--nodes", type=int, help="default: a node for every 25 edges")
    flags.add_argument("--parts", type=int, default=16)
    flags.add_argument("--peers", type=int, default=4)
    flags.add_argument("--memory", type=int, default=1024, help="MiB of each of Spark's executors while they make the tables")
    flags.add_argument("--bound", type=int, default=4096, help="MiB that no process may pass")
    flags.add_argument("--dir", type=pathlib.Path, required=True, help="new directory for everything")
    a = flags.parse_args()
    n = a.nodes or a.edges // 25
    at = a.dir.absolute()
    at.mkdir(parents=True)
    memory, began, over = Memory(), time.monotonic(), []

    def done(step):
        nonlocal began
        memory._look()
        seconds, held = time.monotonic() - began, {k: v for k, v in memory.largest().items() if k in ("java", "heddle")}
        largest = ", ".join(f"{k} {' '.join(map(str, v[: a.peers]))}" for k, v in sorted(held.items()))
        print(f"| {step} | {seconds:.0f} | {largest} | {size(at) / 1e6:.0f} |", flush=True)
        over.extend(f"{step}: {k} {v[0]} MiB" for k, v in held.items() if v[0] > a.bound)
        began = time.monotonic()

    path = os.pathsep.join(p for p in sys.path if p)
    os.environ["PYSPARK_PYTHON"] = sys.executable

    def spark(memory):
        session = (
            SparkSession.builder.master(f"local-cluster[2,2,{memory}]").config("spark.executor.memory", f"{memory}m")
            .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.memory", "1g")
            .config("spark.local.dir", str(at / "spark")).config("spark.sql.shuffle.partitions", str(max(16, a.edges // 2_000_000)))
            .config("spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold", "64m")  # names of a partition fit, so that edges need no sort
            .config("spark.executorEnv.HEDDLE_PROGRAM", _program.program()).config("spark.executorEnv.PYTHONPATH", path)
            .config("spark.executorEnv.GOMEMLIMIT", f"{a.bound * 3 // 4}MiB")  # Go collects more often; mapped files are beside it
            .config("spark.executorEnv.SPARK_LOCAL_IP", "127.0.0.1").config("spark.executorEnv.TMPDIR", str(at))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        return session

    session = spark(a.memory)
    print(f"{n:,} nodes, {a.edges:,} edges\n\n| step | s | largest processes, MiB | on disk, MB |\n|---|---|---|---|", flush=True)
    heddle.spark.write_tables(*tables(session, n, a.edges), at / "tables", id="name", source="source", target="target")
    done("tables in Spark")
    session.stop()
    shutil.rmtree(at / "spark", ignore_errors=True)
    stored, parts = at / "web.graph", at / "parts"
    _program.run(["import", "--nodes", str(at / "tables/nodes.parquet"), "--edges", str(at / "tables/edges.parquet"),
                  "--label-column", "label", "--train", "0.1", "--val", "0.05", "--test", "0.05", "--out", str(stored)])
    done("heddle import")
    sizes = {"tables": size(at / "tables"), "stored graph": size(stored)}
    shutil.rmtree(at / "tables")
    _program.run(["partition", "--data", str(stored), "--parts", str(a.parts), "--policy", "restream:3", "--memory", "2GiB", "--out", str(parts)])
    done(f"heddle partition, {a.parts} shards")
    sizes["shards"] = size(parts)
    stored.unlink()
    session = spark(512)  # it only starts the peers
    began = time.monotonic()
    run = heddle.spark.train(session, parts, ranks=a.peers, port=24001, out=at / "run", method="mini-batch", model="sage", hidden=16, rounds=1)
    done(f"one epoch, {a.peers} peers")
    m = run.metrics
    print(f"\n{m['metric']} {m['test']:.3f}; sent {sum(m['bytes_all_peers'][k] for k in ('halo', 'reduce', 'control')) / 1e6:.0f} MB")
    session.stop()
    print("on disk: " + ", ".join(f"{name} {bytes / 1e6:.0f} MB" for name, bytes in sizes.items()))
    shutil.rmtree(at / "spark", ignore_errors=True)
    if over:
        sys.exit(f"over the bound of {a.bound} MiB: {'; '.join(over)}")


if __name__ == "__main__":
    main()
