"""Tests of heddle.spark in a local cluster: a master and two workers in processes of their own, on this machine."""

import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import sys
import tempfile
import unittest

import engines

import heddle
from heddle import _program

MISSING = [m for m in ("pyspark", "pyarrow") if importlib.util.find_spec(m) is None] + (["Java"] if shutil.which("java") is None else [])


@unittest.skipIf(MISSING, f"SKIPPED: tests of heddle.spark: {', '.join(MISSING)} is missing")
class Spark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from pyspark.sql import SparkSession

        cls.dir = tempfile.TemporaryDirectory()
        cls.at = pathlib.Path(cls.dir.name)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        cls.session = (
            SparkSession.builder.master("local-cluster[2,2,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", str(cls.at / "warehouse"))
            .config("spark.default.parallelism", "2")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.executorEnv.HEDDLE_PROGRAM", _program.program())
            .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(p for p in sys.path if p))
            .config("spark.executorEnv.SPARK_LOCAL_IP", "127.0.0.1")
            .getOrCreate()
        )
        cls.session.sparkContext.setLogLevel("ERROR")
        nodes, edges = engines.people()
        cls.nodes = cls.session.createDataFrame(nodes[::-1], ["name", "x", "smoker"])
        cls.edges = cls.session.createDataFrame(edges, ["src", "dst", "calls"])

    @classmethod
    def tearDownClass(cls):
        cls.session.stop()
        cls.dir.cleanup()

    def write(self, name, nodes=None, edges=None):
        from heddle import spark

        n = self.nodes if nodes is None else nodes
        e = self.edges if edges is None else edges
        return spark.write_tables(n, e, self.at / name, id="name", source="src", target="dst")

    def test_from_tables_to_predictions(self):
        from heddle import spark

        self.assertEqual(120, self.write("web"))
        web = self.at / "web"
        read = self.session.read.parquet
        names = {r["number"]: r["name"] for r in read(str(web / "names.parquet")).collect()}
        self.assertEqual({i: f"p{i:03d}" for i in range(120)}, names)
        edges = read(str(web / "edges.parquet"))
        self.assertEqual({"source", "target", "calls"}, set(edges.columns))
        self.assertEqual(
            sorted((e[0], e[1]) for e in engines.people()[1]), sorted((names[r["source"]], names[r["target"]]) for r in edges.collect())
        )
        parts = engines.parts_of(web / "nodes.parquet", web / "edges.parquet", self.at)
        port = engines.free_ports(2)
        run = spark.train(self.session, parts, ranks=2, port=port, out=self.at / "run", **engines.SETTINGS)
        rows = spark.predict(self.session, run, parts, ranks=2, port=port).collect()
        engines.check(self, parts, run, {int(r["id"]): r for r in rows})

    def test_the_page(self):
        """What docs/how-to/spark.md shows, word for word but for /shared and the ports. HEDDLE_TABLES is the format of the
        tables, which the session may need packages and settings for (PYSPARK_SUBMIT_ARGS)."""
        of, shared = os.environ.get("HEDDLE_TABLES", "parquet"), self.at / "shared"
        shared.mkdir()
        self.session.sql("create database if not exists lake")
        self.nodes.toDF("person", "x", "fraud").write.format(of).saveAsTable("lake.people")
        self.edges.toDF("caller", "called", "calls").write.format(of).saveAsTable("lake.calls")
        page = (pathlib.Path(__file__).parents[2] / "docs/how-to/spark.md").read_text().partition("## Ray")[0]
        names = {"spark": self.session}
        blocks = re.findall(r"```(python)?\n(.*?)```", page, re.S)
        self.assertEqual(4, len(blocks))
        for language, code in blocks:
            code = code.replace("/shared", str(shared)).replace("ranks=4", f"ranks=4, port={engines.free_ports(4)}")
            if language:
                exec(code, names)
                continue
            for line in code.splitlines():
                _program.run(shlex.split(line)[1:])
        rows = self.session.read.parquet(str(shared / "predictions")).collect()
        self.assertEqual([f"p{i:03d}" for i in range(120)], sorted(r["name"] for r in rows))
        self.assertGreater(names["run"].metrics["test"], 0.8)

    def test_tables_with_faults_are_refused(self):
        more = self.session.createDataFrame([("p007", 0.5, "no")], ["name", "x", "smoker"])
        with self.assertRaisesRegex(heddle.InputError, "differ .got 'p007' 2 times"):
            self.write("twice", nodes=self.nodes.union(more))
        stray = self.session.createDataFrame([("p001", "nobody", 1)], ["src", "dst", "calls"])
        with self.assertRaisesRegex(heddle.InputError, "nobody"):
            self.write("stray", edges=self.edges.union(stray))

    def test_a_wrong_setting_is_refused_before_anything_starts(self):
        from heddle import spark

        with self.assertRaisesRegex(heddle.InputError, "ranks must be at least 1"):
            spark.train(self.session, "parts", ranks=0)
        with self.assertRaisesRegex(heddle.InputError, "hidden"):
            spark.train(self.session, "parts", ranks=2, method="full-batch", hidden=-1)


if __name__ == "__main__":
    unittest.main()
