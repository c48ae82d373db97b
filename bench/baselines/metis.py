"""The baseline of `bench partition`: METIS 5 through pymetis (pip install pymetis), on the graphs that it exports.

    go run ./bench partition -export /tmp/graphs
    python bench/baselines/metis.py /tmp/graphs            # k-way, 3 % of imbalance, objectives cut and volume
"""
import argparse
import ctypes
import os
import time

import numpy as np
import pymetis


def status(line):
    with open("/proc/self/status") as f:
        return next(int(text.split()[1]) for text in f if text.startswith(line + ":"))


def measure(path, k, objective, repeat, recursive):
    ptr = np.fromfile(os.path.join(path, "ptr"), np.int64)
    col = np.fromfile(os.path.join(path, "col"), np.int32)
    n, dst = len(ptr) - 1, None
    graph = pymetis.CSRAdjacency(ptr.astype(np.int32), col)
    options = pymetis.Options(seed=1, ufactor=30)
    if objective == "volume":
        options.objtype = 1
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # else METIS would take room that nobody has returned yet, uncounted
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    base, cpu, peak = status("VmRSS"), np.inf, 0
    for _ in range(repeat):
        busy = time.process_time()
        _, owner = pymetis.part_graph(k, graph, recursive=recursive, options=options)
        cpu = min(cpu, time.process_time() - busy)
        peak = peak or status("VmHWM")
    owner = np.asarray(owner)
    dst = np.repeat(np.arange(n), np.diff(ptr))
    cross = owner[dst] != owner[col]
    volume = len(np.unique(owner[dst[cross]].astype(np.int64) * n + col[cross]))
    nodes, edges = np.bincount(owner, minlength=k), np.bincount(owner[dst], minlength=k)
    print(os.path.basename(path), k, "metis-" + objective, cross.sum() // 2, volume, f"{nodes.max() * k / n:.3f}",
          f"{edges.max() * k / len(col):.3f}", f"{cpu:.4f}", f"{(peak - base) / 1024:.1f}", flush=True)


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("graphs", help="folder of exported graphs")
    a.add_argument("--k", default="4,16,64")
    a.add_argument("--only", default="", help="names of graphs")
    a.add_argument("--objective", default="cut,volume")
    a.add_argument("--repeat", type=int, default=3)
    a.add_argument("--recursive", action="store_true", help="recursive bisection instead of k-way")
    a.add_argument("--bare", action="store_true", help="no line of headings")
    a = a.parse_args()
    if not a.bare:
        print("graph k policy cut volume balance edge_balance processor_seconds extra_MB")
    for name in (a.only.split(",") if a.only else sorted(os.listdir(a.graphs))):
        for k in a.k.split(","):
            for objective in a.objective.split(","):
                measure(os.path.join(a.graphs, name), int(k), objective, a.repeat, a.recursive)
