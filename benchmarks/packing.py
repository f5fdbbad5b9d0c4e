"""Packed and padded sequences of ``train_vla.py``: loss, and tokens per CPU-second of a forward and backward pass.

    python benchmarks/packing.py [--batch 16] [--repeats 8]

Instructions have 1 to N bytes, where N follows from the fraction of padding; there are two cameras of 96 px. The
benchmark needs torch.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import numpy as np  # noqa: E402

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)


def main() -> None:
    """Print a line for each fraction of padding."""
    import torch  # pyright: ignore[reportMissingImports]

    from nimbus.train.network import VlaNetwork, VlaSizes

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=8)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = VlaSizes(cameras=2, height=96, image_width=96, state=9, action=8)
    network = VlaNetwork(sizes)
    random = np.random.default_rng(0)
    count, shape = args.batch, (args.batch, sizes.horizon, sizes.action)
    fixed = {
        "pictures": torch.tensor(random.integers(0, 256, (count, 2, 96, 96, 3), np.uint8)),
        "state": torch.tensor(random.normal(size=(count, 9)), dtype=torch.float32),
        "action": torch.tensor(random.normal(size=shape), dtype=torch.float32),
        "noise": torch.tensor(random.normal(size=shape), dtype=torch.float32),
        "time": torch.tensor(random.random(count), dtype=torch.float32),
    }
    for share in SHARES:
        base = sizes.token_count(0)
        longest = max(1, round(share * base / (0.5 - share)))  # the mean length divided by the largest one is 1 - share
        letters = np.linspace(1 if share else longest, longest, count).round().astype(int)
        text = torch.tensor(np.where(np.arange(longest) < letters[:, None], 98, 0))
        batch, tokens = fixed | {"text": text}, int(sum(base + letters))
        found: dict[bool, float] = {}
        seconds = {False: 0.0, True: 0.0}
        for _ in range(args.repeats):
            for is_packed in seconds:
                network.is_packed = is_packed
                begin = time.process_time()
                loss = network(batch).mean()
                loss.backward()
                seconds[is_packed] += time.process_time() - begin
                found[is_packed] = loss.item()
        speed = {is_packed: tokens * args.repeats / spent for is_packed, spent in seconds.items()}
        padding = 1 - tokens / (count * (base + longest))
        sys.stdout.write(
            f"padding {padding:.1%}: padded {speed[False]:.0f}, packed {speed[True]:.0f} tokens a CPU-second, "
            f"{speed[True] / speed[False]:.2f} times; losses differ by {abs(found[True] - found[False]):.1e}\n"
        )


if __name__ == "__main__":
    main()
