"""Copy of the data that robomimic's dataset class reads in one NumPy file; run by a Python with the real robomimic."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def main(path: str, target: str, split: str) -> None:
    """Read every sequence of a split, and a batch of a DataLoader."""
    import robomimic.utils.obs_utils as observations  # pyright: ignore[reportMissingImports]
    from robomimic.utils.dataset import SequenceDataset  # pyright: ignore[reportMissingImports]
    from torch.utils.data import DataLoader  # pyright: ignore[reportMissingImports]

    low_dim, images = ["joint_pos", "joint_vel", "object"], ["front_image", "wrist_image"]
    observations.initialize_obs_utils_with_obs_specs({"obs": {"low_dim": low_dim, "rgb": images}})
    dataset = SequenceDataset(
        hdf5_path=path,
        obs_keys=tuple(low_dim + images),
        dataset_keys=("actions", "rewards", "dones"),
        seq_length=3,
        get_pad_mask=True,
        filter_by_attribute=split,
        hdf5_use_swmr=False,
    )
    items: list[Any] = [dataset[row] for row in range(len(dataset))]
    arrays: dict[str, Any] = {f"obs/{key}": np.stack([item["obs"][key] for item in items]) for key in low_dim + images}
    arrays["next_obs/front_image"] = np.stack([item["next_obs"]["front_image"] for item in items])
    arrays |= {key: np.stack([item[key] for item in items]) for key in ("actions", "rewards", "dones", "pad_mask")}
    arrays["demos"] = np.array(list(dataset.demos))
    batch = next(iter(DataLoader(dataset, batch_size=4)))
    arrays["batch"] = batch["obs"]["front_image"].numpy()
    np.savez(target, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
