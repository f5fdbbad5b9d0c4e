"""Samples as arrays for a network: images, instruction bytes, joints, actions and flow-matching noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.training.frames import ACTION, IMAGES, STATE
from nimbus.datagen.datasets.training.reader import Reader, Sample
from nimbus.datagen.errors import InputError
from nimbus.datagen.random_streams import generator

MAX_BYTES = 256
"""Largest number of bytes of an instruction."""
PACKING_THRESHOLD = 0.1
"""Fraction of padding above which packing is faster; measured, see ``docs/training.md``."""

Arrays = dict[str, NDArray[Any]]
"""Batch: ``pictures`` (B, C, H, W, 3) uint8, ``text`` (B, W) int64 with 0 for padding, ``state`` (B, J) [rad or m]; in
training also ``action`` (B, K, A) [rad or m], ``noise`` (B, K, A) and ``time`` (B,)."""


def to_tokens(instruction: str) -> NDArray[np.int64]:
    """Return the bytes (W,) of an instruction, each raised by one because 0 marks padding.

    Raises:
        InputError: The instruction is too long.
    """
    tokens = np.frombuffer(instruction.encode(), np.uint8).astype(np.int64) + 1
    if len(tokens) > MAX_BYTES:
        what = f"an instruction has {len(tokens)} bytes: '{instruction[:40]}…'"
        raise InputError(what, where="instructions", instead=f"write at most {MAX_BYTES} bytes")
    return tokens


def pad_tokens(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the tokens (B, W) of instructions, with the shorter ones padded with 0."""
    rows = [to_tokens(text) for text in texts]
    padded = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for row, tokens in zip(padded, rows, strict=True):
        row[: len(tokens)] = tokens
    return padded


def make_batch(samples: Sequence[Sample], cameras: Sequence[str], *, seed: int, epoch: int) -> Arrays:
    """Collate samples; the noise of each depends only on its row, the seed and the epoch.

    Args:
        samples: Samples with a window of actions.
        cameras: Names of the cameras, in the network's order.
        seed: Seed of the training run.
        epoch: Number of the epoch.
    """
    draws = [generator(seed, epoch, "flow", int(sample["index"])) for sample in samples]
    actions = np.stack([sample[ACTION] for sample in samples])
    return {
        "pictures": np.stack([np.stack([sample[f"{IMAGES}{name}"] for name in cameras]) for sample in samples]),
        "text": pad_tokens([sample["task"] for sample in samples]),
        "state": np.stack([sample[STATE] for sample in samples]),
        "action": actions,
        "noise": np.stack([draw.normal(size=actions.shape[1:]) for draw in draws]).astype(np.float32),
        "time": np.array([draw.random() for draw in draws], np.float32),
    }


def padding_share(lengths: Sequence[int], *, batch: int, seed: int = 0) -> float:
    """Estimate the fraction of padding in a dataset's batches if each is padded to its longest sequence.

    Args:
        lengths: Lengths of the sequences from which batches are drawn [tokens].
        batch: Sequences per batch.
        seed: Seed of the random batches.
    """
    drawn = generator(seed, "padding").choice(np.asarray(lengths), (1000, batch))
    return float(1 - drawn.sum() / (drawn.max(axis=1) * batch).sum())


def scaling_of(reader: Reader) -> dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Return mean and standard deviation of states and actions over all rows; constant columns get the deviation 1."""
    rows = [reader.frames.signals(number) for number in range(len(reader.frames.lengths))]
    found = {}
    for name in (STATE, ACTION):
        values = np.concatenate([row[name] for row in rows]).astype(np.float64)
        deviation = values.std(axis=0)
        parts = values.mean(axis=0), np.where(deviation > 1e-4, deviation, 1.0)
        found[name] = parts[0].astype(np.float32), parts[1].astype(np.float32)
    return found
