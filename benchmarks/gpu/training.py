"""Steps per second of the network of ``train_vla.py``: fp32, bf16 and FP8, padded and packed.

Batches are random: images of 128 x 96 from two cameras, and instructions of different lengths. A step is forward,
backward and AdamW. Padded and packed losses of one batch must agree.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import numpy as np

from benchmarks.gpu.physics import need
from benchmarks.gpu.result import PartResult, Row
from nimbus.datagen.errors import InputError
from nimbus.datagen.random_streams import generator
from nimbus.datagen.render.stacked import find_device

_SIZE, _CPU_SIZE = 64, 2
_STEPS, _CPU_STEPS = 30, 1
_WIDTH, _CPU_WIDTH = 512, 32
_LONGEST = 60
"""Length of the longest instruction [bytes]."""
_CLOSE = 2e-3
"""Largest difference between padded and packed losses in fp32."""


def measure(device: str) -> PartResult:
    """Measure every precision that the device supports.

    Args:
        device: ``cuda`` or ``cpu``.

    Raises:
        InputError: The device does not exist.
        MissingError: PyTorch is not installed.
    """
    torch = need("torch")
    find_device(device)
    kinds = ("fp32", "bf16") if device == "cpu" else ("fp32", "bf16", "fp8")
    rows: list[Row] = []
    losses: dict[str, float] = {}
    problems: list[str] = []
    skipped = ""
    for kind in kinds:
        for is_packed in (False, True):
            form = "packed" if is_packed else "padded"
            try:
                loss, row = _measure_steps(torch, device, kind, is_packed=is_packed)
            except InputError as error:
                skipped = error.what
                continue
            except RuntimeError as error:
                # The other precisions are still measured.
                problems.append(f"{kind} {form}: {error}")
                continue
            rows.append({"precision": kind, "sequences": form} | row | {"loss": loss})
            losses[f"{kind} {form}"] = loss
    apart = abs(losses.get("fp32 padded", np.nan) - losses.get("fp32 packed", np.nan))
    problems += [] if apart <= _CLOSE else [f"padded and packed losses differ by {apart:.2e}, at most {_CLOSE:.0e}"]
    problems += [f"the loss of {name} is {loss}" for name, loss in losses.items() if not np.isfinite(loss)]
    return PartResult(rows=tuple(rows), problems=tuple(problems), skipped=skipped)


def make_arrays(count: int) -> dict[str, np.ndarray]:
    """Draw a batch in the form of ``nimbus.train.sequences.make_batch``."""
    rng = generator(0, "gpu", "training", count)
    text = np.zeros((count, _LONGEST), dtype=np.int64)
    for row, length in enumerate(rng.integers(10, _LONGEST + 1, count)):
        text[row, :length] = rng.integers(1, 256, length)
    actions = rng.normal(size=(count, 16, 8)).astype(np.float32)
    return {
        "pictures": rng.integers(0, 256, (count, 2, 96, 128, 3), dtype=np.uint8),
        "text": text,
        "state": rng.normal(size=(count, 9)).astype(np.float32),
        "action": actions,
        "noise": rng.normal(size=actions.shape).astype(np.float32),
        "time": rng.random(count).astype(np.float32),
    }


def _measure_steps(torch: Any, device: str, kind: str, *, is_packed: bool) -> tuple[float, Row]:
    """Return the loss before the first step, and the rate.

    Raises:
        InputError: The device does not support the precision.
    """
    from nimbus.train.network import VlaNetwork, VlaSizes
    from nimbus.train.parallel import to_fp8

    small = device == "cpu"
    size, steps = (_CPU_SIZE, _CPU_STEPS) if small else (_SIZE, _STEPS)
    width = _CPU_WIDTH if small else _WIDTH
    torch.manual_seed(0)
    sizes = VlaSizes(cameras=2, height=96, image_width=128, state=9, action=8, width=width, depth=2 if small else 8)
    network = VlaNetwork(sizes, is_packed=is_packed)
    if kind == "fp8":
        to_fp8(network)
    network.to(device)
    batch = {name: torch.from_numpy(values).to(device) for name, values in make_arrays(size).items()}
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)

    def step() -> float:
        mixed = nullcontext() if kind == "fp32" else torch.autocast(device, torch.bfloat16)
        with mixed:
            loss = network(batch).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())  # waits for the device

    first = step()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    seconds = time.perf_counter() - start
    return first, {"batch": size, "steps_per_s": steps / seconds, "samples_per_s": steps * size / seconds}
