"""Writes golden.json: seven steps of torch.optim on fixed parameters and gradients. Run: python golden.py"""
import json
import torch

torch.set_num_threads(1)
gen = torch.Generator().manual_seed(7)
n, steps = 11, 7
start = torch.randn(n, generator=gen)
grads = [torch.randn(n, generator=gen) * (0.1 if i % 2 else 3.0) for i in range(steps)]
rates = [0.05 * (1 - i / 10) for i in range(steps)]
cases = {
    "sgd": ({"name": "sgd", "lr": 0.05}, torch.optim.SGD, {}),
    "sgd momentum decay": ({"name": "sgd", "lr": 0.05, "momentum": 0.9, "decay": 0.01}, torch.optim.SGD,
                           {"momentum": 0.9, "weight_decay": 0.01}),
    "adam decay": ({"name": "adam", "lr": 0.05, "decay": 0.01}, torch.optim.Adam, {"weight_decay": 0.01}),
    "adam betas": ({"name": "adam", "lr": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6}, torch.optim.Adam,
                   {"betas": (0.8, 0.95), "eps": 1e-6}),
    "adamw": ({"name": "adamw", "lr": 0.05, "decay": 0.1}, torch.optim.AdamW, {"weight_decay": 0.1}),
}
out = {"torch": torch.__version__, "start": start.tolist(), "grads": [g.tolist() for g in grads], "rates": rates, "cases": {}}
for name, (config, cls, kw) in cases.items():
    p = torch.nn.Parameter(start.clone())
    opt = cls([p], lr=rates[0], foreach=False, **kw)
    after = []
    for g, lr in zip(grads, rates):
        opt.param_groups[0]["lr"] = lr
        p.grad = g.clone()
        opt.step()
        after.append(p.detach().tolist())
    out["cases"][name] = {"config": config, "after": after}
with open("golden.json", "w") as f:
    json.dump(out, f, indent=None, separators=(",", ":"))
    f.write("\n")
