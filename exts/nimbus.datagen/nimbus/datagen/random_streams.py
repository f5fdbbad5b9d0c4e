"""Random streams by address; they are never shared, and an address gives the same numbers on any machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

RUN = "run"
"""Split of the episodes that a run draws."""
EVALUATION = "evaluation"
"""Split of the episodes for evaluating policies; no seed of a run draws one of them."""

Streams: TypeAlias = Callable[..., np.random.Generator]
"""Function that returns the generator of an address below a fixed one, such as ``streams("pose")``."""


def generator(seed: int, *address: int | str) -> np.random.Generator:
    """Return a counter-based generator for one draw.

    The address names the draw (episode index, part, randomizer), so an additional draw elsewhere changes no other one.

    Args:
        seed: Seed of the run.
        address: Names of the draw, such as ``(index, "physical", "pose")``.
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in (seed, *address))
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def episode_generator(seed: int, split: str, index: int, *address: int | str) -> np.random.Generator:
    """Return a generator for one draw of an episode.

    Args:
        seed: Seed of the run.
        split: :data:`RUN`, or another name, whose episodes have separate streams.
        index: Number of the episode.
        address: Names of the draw in the episode.
    """
    # A split's address has a text where a run's has the index, so addresses of two splits are never equal.
    return generator(seed, *(() if split == RUN else (split,)), index, *address)
