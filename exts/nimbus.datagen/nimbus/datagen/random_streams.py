"""Random streams, addressed and never shared: the same address gives the same numbers on any machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

RUN = "run"
"""Split of the episodes that a run draws."""
EVALUATION = "evaluation"
"""Split of the episodes that a policy is evaluated on: no seed of a run draws one of them."""

Streams: TypeAlias = Callable[..., np.random.Generator]
"""Function that returns the generator of an address below a fixed one: ``streams("pose")``."""


def generator(seed: int, *address: int | str) -> np.random.Generator:
    """Return a counter-based generator for one draw site.

    The address names the draw (episode index, part, randomizer), so adding a draw elsewhere moves no other one.

    Args:
        seed: The run's seed.
        address: What is drawn, for example ``(index, "physical", "pose")``.
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in (seed, *address))
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def episode_generator(seed: int, split: str, index: int, *address: int | str) -> np.random.Generator:
    """Return a generator for one draw site of an episode.

    Args:
        seed: The run's seed.
        split: :data:`RUN`, or another name, whose episodes are drawn from streams of their own.
        index: Number of the episode.
        address: What is drawn in it.
    """
    # A split is a text where a run has an index, so that the two addresses are never the same.
    return generator(seed, *(() if split == RUN else (split,)), index, *address)
