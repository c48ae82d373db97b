"""FedAvg by Flower with a GCN of PyTorch Geometric. Each site trains on the edges that it has alone.

Flower has no example with a graph: this is its quickstart-pytorch, with PyG's model in place of the images' one.
"""

import json
import os
import sys
import time

os.environ.update(FLWR_TELEMETRY_ENABLED="0", RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=os.path.dirname(os.path.abspath(__file__)))
begin = time.perf_counter()
# user code
import torch
from data import load
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch_geometric.nn import GCN
from torch_geometric.utils import subgraph

SEED, SITES, ROUNDS = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
client, server, results = ClientApp(), ServerApp(), []


def model_of(x, y):
    torch.manual_seed(SEED)
    return GCN(x.shape[1], 64, num_layers=2, out_channels=int(y.max()) + 1, dropout=0.5)


def received(message, context):
    x, y, edges, *masks, site = load()
    nodes = torch.nonzero(site == context.node_config["partition-id"])[:, 0]
    inside, _ = subgraph(nodes, edges, relabel_nodes=True, num_nodes=len(y))  # edges to other sites are lost
    model = model_of(x, y)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return model, x[nodes], y[nodes], inside, [mask[nodes] for mask in masks]


@client.train()
def train(message, context):
    model, x, y, edges, (mask, _, _) = received(message, context)
    torch.manual_seed(SEED + 1000 * message.content["config"]["server-round"])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(3):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x, edges)[mask], y[mask]).backward()
        optimiser.step()
    metrics = MetricRecord({"num-examples": int(mask.sum())})
    return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=message)


@client.evaluate()
def evaluate(message, context):
    model, x, y, edges, (_, val, test) = received(message, context)
    with torch.no_grad():
        right = model.eval()(x, edges).argmax(1) == y
    counts = {"val": int(right[val].sum()), "test": int(right[test].sum()), "num-examples": 1}  # the server averages them
    return Message(RecordDict({"metrics": MetricRecord(counts)}), reply_to=message)


@server.main()
def main(grid, context):
    arrays = ArrayRecord(model_of(*load()[:2]).state_dict())
    strategy = FedAvg(min_train_nodes=SITES, min_evaluate_nodes=SITES, min_available_nodes=SITES)
    results.append(strategy.start(grid, arrays, num_rounds=ROUNDS))


if __name__ == "__main__":
    run_simulation(server, client, SITES, backend_config={"client_resources": {"num_cpus": 1}})
    best = max(results[0].evaluate_metrics_clientapp.values(), key=lambda m: m["val"])
    accuracy = best["test"] * SITES / int(load()[5].sum())
    # end
    size = sum(4 * v.numel() for v in results[0].arrays.to_torch_state_dict().values())
    # A round sends the parameters to each site to train, back, and to each site to evaluate.
    print(json.dumps({"test": accuracy, "bytes": 3 * SITES * ROUNDS * size, "seconds": time.perf_counter() - begin}))
