"""What one of two sites needs for a made graph: memory, disk and processor time of `peer join` by the defaults.

Five edges for each of N nodes, 70 % within a class, 20 features, random parts. Needs NumPy, and heddle and peer in the PATH.

    python3 bench/baselines/site.py DIR 10000 100000 1000000
    python3 bench/baselines/site.py DIR 100000 --method layer-wise --model sage
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np


def graph(nodes, classes=5, features=20):
    r = np.random.default_rng(1)
    y = r.integers(0, classes, nodes)
    order = np.argsort(y, kind="stable")
    start = np.searchsorted(y[order], np.arange(classes + 1))
    source, target = r.integers(0, nodes, (2, 5 * nodes))
    c = y[source]
    same = order[start[c] + r.integers(0, 1 << 40, len(c)) % (start[c + 1] - start[c])]
    target = np.where(r.random(len(c)) < 0.7, same, target)
    x = r.normal(size=(nodes, features)) + 0.5 * r.normal(size=(classes, features))[y]
    u = r.random(nodes)
    return dict(edge_index=np.stack([source, target]).astype(np.int32), x=x.astype(np.float32), y=y,
                train_mask=u < 0.1, val_mask=(u >= 0.1) & (u < 0.2), test_mask=u >= 0.2)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def measure(base, nodes, settings):
    (base / "data").mkdir(parents=True)
    np.savez(base / "data/graph.npz", **graph(nodes))
    run("heddle", "partition", "--data", base / "data", "--parts", "2", "--policy", "random", "--out", base / "parts")
    members = [f"site-{i}={run('peer', 'init', '--identity', base / f'{i}.key')}@127.0.0.1" for i in (0, 1)]
    run("heddle", "plan", "--out", base / "plan.yaml", "--port", "4301", *settings, *members)
    peers = [subprocess.Popen(["peer", "join", "--plan", base / "plan.yaml", "--identity", base / f"{i}.key", "--quiet",
                               "--shard", base / f"parts/part-{i}", "--state", base / f"state-{i}", "--out", base / f"out-{i}"],
                              stdout=subprocess.DEVNULL) for i in (0, 1)]
    ended = [os.wait4(p.pid, 0)[1:] for p in peers]
    if any(status for status, _ in ended):
        sys.exit(f"a peer of {nodes} nodes failed")
    files = [f for d in ("parts/part-0", "state-0", "out-0") for f in (base / d).rglob("*") if f.is_file()]
    return {"nodes": nodes, "edges": 5 * nodes, "memory, MB": round(max(u.ru_maxrss for _, u in ended) * 1024 / 1e6),
            "disk, MB": round(sum(f.stat().st_size for f in files) / 1e6),
            "processor s": round(max(u.ru_utime + u.ru_stime for _, u in ended), 1)}


sizes = [int(a) for a in sys.argv[2:] if a.isdigit()]
for n in sizes:
    print(json.dumps(measure(pathlib.Path(sys.argv[1]) / str(n), n, sys.argv[2 + len(sizes) :])), flush=True)
