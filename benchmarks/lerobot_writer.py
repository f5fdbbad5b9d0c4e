"""Lerobot's own writer on episodes in arrays; run by a Python that has the real lerobot."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.support.lerobot_reader import lerobot_dataset  # noqa: E402 # pyright: ignore[reportMissingImports]


def main(source: str, target: str) -> None:
    """Write every episode and print the CPU seconds."""
    dataset_type = lerobot_dataset()
    episodes = [np.load(path, mmap_mode="r") for path in sorted(Path(source).glob("*.npy"))]
    height, width = episodes[0].shape[1:3]
    image = {"dtype": "video", "shape": (height, width, 3), "names": ["height", "width", "channels"]}
    state = {"dtype": "float32", "shape": (9,), "names": [f"joint{row}" for row in range(9)]}
    features: dict[str, Any] = {"observation.images.front": image, "observation.state": state, "action": state}
    begin = time.process_time()
    dataset = dataset_type.create("nimbus/bench", fps=15, features=features, root=target)
    zeros = np.zeros(9, np.float32)
    for images in episodes:
        for picture in images:
            row = {"observation.images.front": picture, "observation.state": zeros, "action": zeros, "task": "sort"}
            dataset.add_frame(row)
        dataset.save_episode()
    dataset.finalize()
    sys.stdout.write(json.dumps({"cpu_seconds": time.process_time() - begin}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
