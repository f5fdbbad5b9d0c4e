"""Samples of lerobot's own dataset class in random order; run by a Python that has the real lerobot."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.support.lerobot_reader import lerobot_dataset  # noqa: E402 # pyright: ignore[reportMissingImports]


def main(root: str, count: str, horizon: str) -> None:
    """Read samples, and print the CPU seconds of each decoder that works on this machine."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    kind = lerobot_dataset()
    found = {}
    for backend in ("torchcodec", "pyav"):
        try:
            windows = {"action": [step / 15 for step in range(int(horizon))]}
            dataset = kind("nimbus/bench", root=root, delta_timestamps=windows, video_backend=backend)
            order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))[: int(count)].tolist()
            dataset[order[0]]
            begin = time.process_time()
            for row in order:
                dataset[row]
        except Exception as error:  # noqa: BLE001 - whatever keeps a backend from working here
            sys.stderr.write(f"{backend}: {error!r}\n"[:300])
            continue
        found[backend] = len(order) / (time.process_time() - begin)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
