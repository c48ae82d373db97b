"""FedGCN by FedGraph, with the settings of its own example (tutorials/FGL_NC.py) on the division that all frameworks get.

FedGraph imports torch_sparse, which pip compiles for many minutes, and uses it for data sets that it loads itself: where it is
not installed an empty module stands for it.
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
import time

os.environ.update(RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=os.path.dirname(os.path.abspath(__file__)))
if importlib.util.find_spec("torch_sparse") is None:
    empty = tempfile.TemporaryDirectory()
    open(os.path.join(empty.name, "torch_sparse.py"), "w").close()
    sys.path.append(empty.name)
    os.environ["PYTHONPATH"] += os.pathsep + empty.name
begin, said = time.perf_counter(), io.StringIO()
sites, rounds = int(sys.argv[2]), int(sys.argv[3])
with contextlib.redirect_stdout(said):
    # user code
    import attridict
    import torch
    from data import load
    from fedgraph.federated_methods import run_NC
    from fedgraph.utils_nc import get_in_comm_indexes

    config = {
        "fedgraph_task": "NC",
        "dataset": "cora",
        "method": "FedGCN",
        "iid_beta": 10000,
        "distribution_type": "average",
        "global_rounds": rounds,
        "local_step": 3,
        "learning_rate": 0.5,
        "n_trainer": sites,
        "batch_size": -1,
        "num_layers": 2,
        "num_hops": 1,
        "gpu": False,
        "num_cpus_per_trainer": 0.4,
        "num_gpus_per_trainer": 0,
        "logdir": "./runs",
        "use_encryption": False,
        "use_huggingface": False,
        "saveto_huggingface": False,
        "use_cluster": False,
    }
    x, y, edges, train, val, test, site = load()
    parts = [torch.nonzero(site == s)[:, 0] for s in range(sites)]
    idx_train, idx_test = torch.nonzero(train)[:, 0], torch.nonzero(test)[:, 0]
    local = get_in_comm_indexes(edges, parts, sites, 1, idx_train, idx_test)
    run_NC(attridict(config), (edges, x, y, idx_train, idx_test, int(y.max()) + 1, parts, *local))
    # end
text = said.getvalue()
accuracy = float(re.search(r"Average test accuracy, ([0-9.]+)", text).group(1))
sent = sum(float(mb) for mb in re.findall(r"Theoretical \w+ Comm Cost: ([0-9.]+) MB", text)) * 2**20
print(json.dumps({"test": accuracy, "bytes": sent, "seconds": time.perf_counter() - begin}))
