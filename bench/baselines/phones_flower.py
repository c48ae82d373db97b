"""Federated averaging of a GCN by Flower, for docs/measurements/tasks.md: one client a phone, with the edges inside its own part.

    python -m venv v && v/bin/pip install 'flwr[simulation]' torch torch-geometric numpy
    v/bin/python bench/baselines/phones_flower.py data/cora NODES CLIENTS ROUNDS HIDDEN

Strategy (FedAvg), client app and messages are Flower's. Messages go to clients in this process, one after the other: its simulation
with Ray takes a process for each client that runs. Parts are grown from unassigned nodes, edge by edge, to NODES each; the
CLIENTS largest of them are clients (0: all). Bytes are those of Flower's messages in its own protobuf, both ways, without gRPC and TLS.
Test accuracy is that of the averaged model on the graph of all parts without the edges between them.
"""
import json
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity
from torch_geometric.nn import GCNConv

data, each, most, rounds, hidden = sys.argv[1], *map(int, sys.argv[2:6])


def load():
    a = np.load(pathlib.Path(data) / "graph.npz")
    y = torch.from_numpy(a["y"]).long()
    x = torch.sparse_csr_tensor(torch.from_numpy(a["x_indptr"]).long(), torch.from_numpy(a["x_indices"]).long(),
                                torch.from_numpy(a["x_data"]).float(), tuple(a["x_shape"])).to_dense()
    return a, F.normalize(x, dim=1), y


def grow(edges, n):
    near = [[] for _ in range(n)]
    for u, v in edges.T:
        near[u].append(v)
    part, parts = np.full(n, -1), 0
    for first in range(n):
        if part[first] >= 0:
            continue
        queue, size = [first], 0
        while queue and size < each:
            u = queue.pop(0)
            if part[u] < 0:
                part[u], size = parts, size + 1
                queue += near[u]
        parts += 1
    return part


a, x, y = load()
edges = a["edge_index"].astype(np.int64)
part = grow(edges, len(y))
size = np.bincount(part)
order = np.argsort(-size)[: most or None]
inside = part[edges[0]] == part[edges[1]]
train, test = torch.from_numpy(a["train_mask"]).bool(), torch.from_numpy(a["test_mask"]).bool()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(x.shape[1], hidden), GCNConv(hidden, int(y.max()) + 1)

    def forward(self, x, edges):
        h = F.dropout(F.relu(self.first(F.dropout(x, 0.5, self.training), edges)), 0.5, self.training)
        return self.second(h, edges)


client = ClientApp()


@client.train()
def fit(message, context):
    own = np.flatnonzero(part == order[int(context.node_config["partition-id"])])
    place = np.full(len(y), -1)
    place[own] = np.arange(len(own))
    of = edges[:, inside & (place[edges[0]] >= 0)]
    model = Model()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    rows, e, labels, labelled = x[own], torch.from_numpy(place[of]).long(), y[own], train[own]
    n = int(labelled.sum())
    if n:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        model.train()
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(rows, e)[labelled], labels[labelled]).backward()
            optimizer.step()
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": n})})
    return Message(content=content, reply_to=message)


class Counting(FedAvg):
    def aggregate_train(self, server_round, replies):
        return super().aggregate_train(server_round, [r for r in replies if r.content["metrics"]["num-examples"] > 0])


class OneProcess(Grid):
    """Delivers Flower's messages, as its protobuf has them, to clients in this process, and counts their bytes."""

    def __init__(self):
        self.count, self.replies = {"down": [], "up": []}, {}

    def set_run(self, run):
        pass

    @property
    def run(self):
        return None

    def create_message(self, content, message_type, dst_node_id, group_id="", ttl=None):
        return Message(content=content, dst_node_id=dst_node_id, message_type=message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self):
        return range(1, len(order) + 1)

    def push_messages(self, messages):
        raise NotImplementedError

    def pull_messages(self, message_ids):
        raise NotImplementedError

    def send_and_receive(self, messages, *, timeout=None):
        for m in messages:
            sent = message_to_proto(m)
            self.count["down"].append(len(sent.SerializeToString()))
            node = m.metadata.dst_node_id
            answer = message_to_proto(client(message_from_proto(sent), Context(1, node, {"partition-id": node - 1}, RecordDict(), {})))
            self.count["up"].append(len(answer.SerializeToString()))
            yield message_from_proto(answer)


def main():
    torch.manual_seed(1)
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1  # messages name them; no server gives them here
    began, grid = time.time(), OneProcess()
    strategy = Counting(fraction_train=1.0, fraction_evaluate=0.0, min_train_nodes=len(order), min_available_nodes=len(order))
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(Model().state_dict()), num_rounds=rounds)
    model = Model()
    model.load_state_dict(result.arrays.to_torch_state_dict())
    model.eval()
    with torch.no_grad():
        right = (model(x, torch.from_numpy(edges[:, inside]).long()).argmax(1) == y)[test].float().mean().item()
    count = grid.count
    print(json.dumps({
        "clients": len(order), "rounds": rounds, "hidden": hidden, "parameters": sum(p.numel() for p in model.parameters()),
        "messages": len(count["up"]), "down_a_client": sum(count["down"]) / len(order), "up_a_client": sum(count["up"]) / len(order),
        "test": right, "edges_inside": float(inside.mean()), "seconds": time.time() - began}), flush=True)


main()
