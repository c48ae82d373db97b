"""Draws the training and validation nodes of a data set again, so that settings are judged by nodes that took no part and are not test
nodes. Writes data sets of the same names with new masks, whose "test" nodes are these. See docs/adr/0076-heads-are-means.md.

Usage: python bench/results/redraw.py DATA OUT SEED NAME...
Then:  go run ./bench results -root OUT -data NAME -seeds 20 ...

With one split, TRAIN nodes a class and VAL validation nodes are drawn from all labelled nodes that are not test nodes, 30 times. With several,
whose test nodes are most of the others' too, training nodes stay; half of the validation nodes of each class validates, the other
half measures, and the other way round.
"""

import hashlib
import json
import pathlib
import shutil
import sys

import numpy as np

TRAIN, VAL, DRAWS = {"imdb": 60}, {"imdb": 180}, 30  # 20 a class and 500 elsewhere


def again(name, y, masks, seed):
    pool = np.flatnonzero((y >= 0) & ~masks["test_mask"][:, 0])
    for s in range(DRAWS):
        drawn = np.random.default_rng(seed + s).permutation(pool)
        train = np.concatenate([drawn[y[drawn] == c][: TRAIN.get(name, 20)] for c in np.unique(y[pool])])
        rest = drawn[~np.isin(drawn, train)]
        val = VAL.get(name, 500)
        yield train, rest[:val], rest[val:]


def halves(y, masks, seed):
    for s in range(masks["val_mask"].shape[1]):
        rng, val = np.random.default_rng(seed + s), np.flatnonzero(masks["val_mask"][:, s])
        one = []
        for c in np.unique(y[val]):
            nodes = rng.permutation(val[y[val] == c])
            one.extend(nodes[: len(nodes) // 2 + (rng.integers(2) if len(nodes) % 2 else 0)])
        other, train = np.setdiff1d(val, one), np.flatnonzero(masks["train_mask"][:, s])
        yield train, one, other
        yield train, other, one


def main(data, out, seed, *names):
    for name in names:
        source, to = pathlib.Path(data, name), pathlib.Path(out, name)
        to.mkdir(parents=True)
        arrays = dict(np.load(source / "graph.npz"))
        y, kinds = arrays["y"], ("train_mask", "val_mask", "test_mask")
        masks = {k: arrays[k].reshape(len(y), -1) for k in kinds}
        single = masks["val_mask"].shape[1] == 1
        splits = list(again(name, y, masks, int(seed)) if single else halves(y, masks, int(seed)))
        for i, kind in enumerate(kinds):
            arrays[kind] = np.zeros((len(y), len(splits)), bool)
            for s, split in enumerate(splits):
                arrays[kind][split[i], s] = True
        np.savez_compressed(to / "graph.npz", **arrays)
        meta = json.loads((source / "meta.json").read_text())
        meta["sha256"] = hashlib.sha256((to / "graph.npz").read_bytes()).hexdigest()
        (to / "meta.json").write_text(json.dumps(meta))
        shutil.copy(source / "LICENSE.txt", to)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
