"""Trains a GCN on one graph, with the same sites and splits, by PyG on pooled data, by Flower, by FedGraph and by Heddle.

    python bench/frameworks/beside.py DATA [--seeds 3] [--rounds 40 100]

DATA is a data set of Heddle with sites. The interpreter that HEDDLE_FRAMEWORKS names, else this one, must have torch and
torch_geometric, and flwr[simulation] and fedgraph: a way whose packages are not there is skipped. Settings are those of the
scripts beside this one; none was tuned. What is validated chooses the round, but of FedGraph, which takes the last.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
WAYS = {
    "pyg": ("PyG, pooled data", "pyg_gcn.py", "torch_geometric"),
    "flower": ("Flower + PyG, FedAvg", "flower_gcn.py", "flwr"),
    "fedgraph": ("FedGraph, FedGCN", "fedgraph_gcn.py", "fedgraph"),
    "heddle": ("Heddle, default", "heddle_train.py", "heddle"),
}


def lines(script):
    """Returns how many lines of a script a user writes: those between the marks, without comments and empty ones."""
    text = (HERE / script).read_text()
    user = text[text.index("# user code") : text.index("# end")].splitlines()
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in user)


def processor_seconds(mark, ended):
    """Returns the processor seconds of all processes whose environment has a mark; None where there is no /proc."""
    if not os.path.exists("/proc/self/stat"):
        return None
    spent, tick = {}, os.sysconf("SC_CLK_TCK")
    while not ended.wait(0.2):
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes():
                    fields = (process / "stat").read_text().rpartition(")")[2].split()
                    spent[process.name, fields[19]] = (int(fields[11]) + int(fields[12])) / tick
            except OSError:
                continue  # it ended, or belongs to another user
    return sum(spent.values())


def run(way, data, seed, rounds):
    """Returns test accuracy, bytes, seconds and processor seconds of one way; None: its package is not there."""
    _, script, package = WAYS[way]
    python = sys.executable if way == "heddle" else os.environ.get("HEDDLE_FRAMEWORKS", sys.executable)
    env = {**os.environ, "HEDDLE_BESIDE": str(pathlib.Path(data).resolve()), "HEDDLE_BESIDE_RUN": f"{os.getpid()}-{way}-{seed}", "OMP_NUM_THREADS": "1"}
    if subprocess.run([python, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"], env=env).returncode != 0:
        return None
    with np.load(pathlib.Path(data) / "graph.npz") as z:
        sites = int(z["client"].max()) + 1
    ended, spent = threading.Event(), []
    mark = f"HEDDLE_BESIDE_RUN={env['HEDDLE_BESIDE_RUN']}".encode()
    watcher = threading.Thread(target=lambda: spent.append(processor_seconds(mark, ended)))
    watcher.start()
    try:
        command = [python, str(HERE / script), str(seed), str(sites), str(rounds.get(way, 0))]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=3600)
    finally:
        ended.set()
        watcher.join()
    if done.returncode != 0:
        raise RuntimeError(f"{script} ended with code {done.returncode}:\n{done.stderr[-2000:]}")
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "processor_seconds": spent[0]}


def beside(data, seeds=1, rounds=None):
    """Returns a row a way: name, test accuracies [seeds], and means of bytes, seconds and processor seconds; and lines of user code."""
    rounds, rows = rounds or {"flower": 40, "fedgraph": 100}, []
    for way, (name, script, package) in WAYS.items():
        runs = [run(way, data, seed, rounds) for seed in range(1, seeds + 1)]
        if None in runs:
            print(f"SKIPPED: {name}: {package} is not installed", file=sys.stderr)
            continue
        means = {k: None if runs[0][k] is None else statistics.mean(r[k] for r in runs) for k in ("bytes", "seconds", "processor_seconds")}
        rows.append({"way": name, "test": [r["test"] for r in runs], **means, "lines": lines(script)})
    return rows


def table(rows):
    """Returns rows as a table of Markdown."""
    text = ["| | test accuracy | sent | seconds | processor seconds | lines of user code |", "|---|---|---|---|---|---|"]
    for r in rows:
        mean, spread = 100 * statistics.mean(r["test"]), 100 * statistics.stdev(r["test"]) if len(r["test"]) > 1 else None
        shown = f"{mean:.1f} %" if spread is None else f"{mean:.1f} ± {spread:.1f} %"
        spent = "" if r["processor_seconds"] is None else f"{r['processor_seconds']:.0f}"
        text.append(f"| {r['way']} | {shown} | {r['bytes'] / 1e6:.1f} MB | {r['seconds']:.0f} | {spent} | {r['lines']} |")
    return "\n".join(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="directory of a data set with sites")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each way")
    parser.add_argument("--rounds", type=int, nargs=2, default=[40, 100], help="rounds of Flower and of FedGraph")
    args = parser.parse_args()
    print(table(beside(args.data, args.seeds, dict(zip(("flower", "fedgraph"), args.rounds)))))
