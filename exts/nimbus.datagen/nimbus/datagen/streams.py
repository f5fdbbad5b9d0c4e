"""Random streams, addressed and never shared: the same address gives the same numbers on any machine."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *address: int | str) -> np.random.Generator:
    """A counter-based generator for one draw site.

    The address names the draw (episode index, part, randomizer), so adding a draw elsewhere moves no other one.

    Args:
        seed: The run's seed.
        address: What is drawn, for example ``(index, "physical", "pose")``.
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in (seed, *address))
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def integer_seed(seed: int, *address: int | str) -> int:
    """A 31-bit seed for a library that keeps its own generator."""
    return int(stream(seed, *address).integers(1, 2**31 - 1))
