"""Writes decoder_golden.json: scores, losses and gradients of the decoders by PyTorch.

python -m venv v && v/bin/pip install torch numpy && v/bin/python decoder_golden.py
"""
import json

import torch
import torch.nn.functional as F

torch.manual_seed(5)
D, R, H, NEG = 5, 3, 7, 3
cases = {}
for kind in ["dot", "distmult", "mlp"]:
    z = torch.randn(9, D, requires_grad=True)
    relation = torch.randn(R, D, requires_grad=True)
    w1, b1, w2, b2 = torch.randn(D, H), torch.randn(H), torch.randn(H, 1), torch.randn(1)
    u, v, r = torch.randint(9, (24,)), torch.randint(9, (24,)), torch.arange(24) % R
    x = z[u] * z[v]
    if kind != "dot":
        x = x * relation[r]
    s = x.sum(1) if kind != "mlp" else (torch.relu(x @ w1 + b1) @ w2 + b2).squeeze(1)
    groups = s.view(-1, 1 + NEG)
    pos = F.binary_cross_entropy_with_logits(groups[:, 0], torch.ones(6), reduction="sum")
    neg = F.binary_cross_entropy_with_logits(groups[:, 1:], torch.zeros(6, NEG), reduction="none")
    loss = pos + neg.mean(1).sum()
    loss.backward()
    flat = lambda t: [] if t is None else t.detach().flatten().tolist()
    cases[kind] = dict(Z=flat(z), Relation=flat(relation), W1=flat(w1), B1=flat(b1), W2=flat(w2), B2=flat(b2), Scores=flat(s),
                       Pairs=[dict(U=int(a), V=int(b), Relation=int(c)) for a, b, c in zip(u, v, r)], Loss=loss.item(),
                       DZ=flat(z.grad), DRelation=flat(relation.grad))
with open("decoder_golden.json", "w") as f:
    json.dump(cases, f)
