"""What the baselines have from us: a split, and the initial weights of their layers."""
import json

import numpy as np
import torch


def weights(path):
    """The tensors of a safetensors file, by name."""
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        body = f.read()
    return {k: torch.from_numpy(np.frombuffer(body[slice(*t["data_offsets"])], np.float32).reshape(t["shape"]).copy())
            for k, t in head.items() if k != "__metadata__"}


def fill(model, layer, w, dgl):
    """Copies the weights w(name) of a layer into one of DGL's or PyG's."""
    with torch.no_grad():
        if model == "gcn":
            if dgl:
                layer.weight.copy_(w("nbr.weight"))
            else:
                layer.lin.weight.copy_(w("nbr.weight").t())
            layer.bias.copy_(w("nbr.bias").flatten())
        elif model == "sage":
            own, nbr = (layer.fc_self, layer.fc_neigh) if dgl else (layer.lin_r, layer.lin_l)
            own.weight.copy_(w("self.weight").t())
            nbr.weight.copy_(w("nbr.weight").t())
            (own if dgl else nbr).bias.copy_(w("nbr.bias").flatten())
        else:
            (layer.fc if dgl else layer.lin).weight.copy_(w("pre.weight").t())
            src, dst = (layer.attn_l, layer.attn_r) if dgl else (layer.att_src, layer.att_dst)
            src.copy_(w("attention.src").reshape(src.shape))
            dst.copy_(w("attention.dst").reshape(dst.shape))
            layer.bias.copy_(w("post.bias").flatten())


def divide(z, share):
    """The nodes that train, validate and test. SHARE of the labelled ones train, evenly spread; 0: the graph's own split."""
    n = len(z["y"])
    masks = {k: z[k + "_mask"].reshape(n, -1)[:, 0] for k in ("train", "val", "test")}
    if share == 0:
        return {k: np.flatnonzero(m) for k, m in masks.items()}
    labelled = np.flatnonzero(masks["train"] | masks["val"] | masks["test"])
    trains = np.array([int((k + 1) * share) > int(k * share) for k in range(len(labelled))])
    rest = labelled[~trains]
    return {"train": labelled[trains], "val": rest[::2], "test": rest[1::2]}
