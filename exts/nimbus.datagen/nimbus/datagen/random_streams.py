"""Random streams, addressed and never shared: the same address gives the same numbers on any machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

Streams: TypeAlias = Callable[..., np.random.Generator]
"""Generators by address, below one that is given: ``streams("pose")``."""


def generator(seed: int, *address: int | str) -> np.random.Generator:
    """A counter-based generator for one draw site.

    The address names the draw (episode index, part, randomizer), so adding a draw elsewhere moves no other one.

    Args:
        seed: The run's seed.
        address: What is drawn, for example ``(index, "physical", "pose")``.
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in (seed, *address))
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
