"""How sharp the scene is drawn: less where the processor draws it, for the sake of smooth motion."""

from __future__ import annotations

import sys
from pathlib import Path

SHARP, QUICK = 100, 40
"""[%] of the screen's pixels along each side: all of them, and what a processor draws quickly enough to scrub."""
_GPUS = ("dri", "nvidia0", "dxg")
"""Devices of which a Linux with a GPU has one; dxg is that of WSL."""


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Whether a browser on this computer draws with a GPU, as far as the devices tell."""
    return sys.platform != "linux" or any((devices / name).exists() for name in _GPUS)


def page_url(address: str, sharpness: int) -> str:
    """The address of the page, drawn with a share [%] of the screen's pixels along each side."""
    return address if sharpness == SHARP else f"{address}/?fixedDpr={sharpness / 100:g}"
