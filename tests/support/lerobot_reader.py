"""Copy of everything that lerobot reads from a dataset in one NumPy file; run by a Python with the real lerobot."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def ready() -> None:
    """Make torchvision importable if it was built for another torch and needs operators that are missing."""
    try:
        import torchvision  # noqa: F401 # pyright: ignore[reportMissingImports]
    except RuntimeError:
        import torch  # pyright: ignore[reportMissingImports]

        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        _KEPT.append(library)
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


_KEPT: list[Any] = []
"""Kept library, because its operators exist only as long as it does."""


def lerobot_dataset() -> Any:
    """Return the class ``LeRobotDataset``."""
    ready()
    from lerobot.datasets.lerobot_dataset import LeRobotDataset  # pyright: ignore[reportMissingImports]

    return LeRobotDataset


def main(root: str, target: str) -> None:
    """Read every item, a window of actions, and a batch of a DataLoader."""
    import torch  # pyright: ignore[reportMissingImports]

    dataset = lerobot_dataset()("nimbus/test", root=root, delta_timestamps={"action": [-1 / 15, 0.0, 1 / 15]})
    items = [dataset[row] for row in range(len(dataset))]
    keys = [key for key in items[0] if key != "task"]
    arrays = {key: torch.stack([item[key] for item in items]).numpy() for key in keys}
    batch = next(iter(torch.utils.data.DataLoader(dataset, batch_size=4)))
    arrays["batch"] = batch["observation.state"].numpy()
    arrays["mean"] = np.asarray(dataset.meta.stats["action"]["mean"])
    arrays["tasks"] = np.array([item["task"] for item in items])
    np.savez(target, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
