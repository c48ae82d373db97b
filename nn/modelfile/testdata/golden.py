"""Writes golden.safetensors by the format's own library. Run: python golden.py"""
import torch
from safetensors.torch import save_file

save_file({
    "f32": torch.tensor([[1.5, -2.0, 0.25], [3e-39, 1e30, -0.0]]),
    "f16": torch.tensor([1.0, -0.5, 6e-8, 65504.0, float("inf")], dtype=torch.float16),
    "bf16": torch.tensor([[1.0], [-3.140625], [1e-40]], dtype=torch.bfloat16),
    "scalar": torch.tensor(7.0),
    "empty": torch.zeros(0, 4),
}, "golden.safetensors", metadata={"spec": '{"task":"single"}', "größe": "1 < 2 & 3"})
