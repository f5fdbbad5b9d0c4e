"""Prints the samples of torch's and torchdata's loaders as JSON; run by a Python that has both."""

from __future__ import annotations

import json
import sys

from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.datasets.training.samples import Samples
from nimbus.datagen.datasets.training.torch_dataset import torch_dataset


def main(folder: str) -> None:
    """Print the indices from each kind of loader."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch.utils.data import DataLoader  # pyright: ignore[reportMissingImports]
    from torchdata.stateful_dataloader import StatefulDataLoader  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    found = {}
    for workers in (0, 2):
        samples = Samples(Reader(folder, windows={"action": (0, 1)}), block=8, pool=2, rank=1, ranks=2)
        loader = DataLoader(torch_dataset(samples), batch_size=4, num_workers=workers)
        batches = list(loader)
        found[f"workers {workers}"] = [int(row) for batch in batches for row in batch["index"]]
        found["shape"] = list(batches[0]["observation.images.front"].shape)
    loaders = [
        StatefulDataLoader(torch_dataset(Samples(Reader(folder), block=8, pool=2)), batch_size=4, num_workers=2)
        for _ in range(2)
    ]
    iterator = iter(loaders[0])
    before = [int(row) for _ in range(5) for row in next(iterator)["index"]]
    loaders[1].load_state_dict(loaders[0].state_dict())
    found["stateful"] = before + [int(row) for batch in loaders[1] for row in batch["index"]]
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
