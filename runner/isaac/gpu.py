"""The GPUs of this machine, as the driver names them, and which of them Isaac Sim can render on."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

_FIELDS = "index,uuid,name,compute_cap,memory.free"
_PATIENCE = 30.0
"""[s]"""
_WITHOUT = {(8, 0), (9, 0), (10, 0), (10, 3), (11, 0)}
"""Compute capabilities of 7.5 or more whose GPUs have no RT cores: A100, H100, B200, B300 and their kin."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU."""

    number: int
    """In the order of the bus."""
    uuid: str
    name: str
    capability: tuple[int, int]
    free_bytes: int

    @property
    def traces_rays(self) -> bool:
        """Whether it has RT cores."""
        if self.capability < (7, 5) or self.capability in _WITHOUT:
            return False
        return re.search(r"\bGTX 16|\bMX ?\d|\bT\d{3}\b|\bT1000\b|\bT1200\b", self.name) is None


def list_gpus() -> list[Gpu]:
    """All of them; none where there is no driver."""
    words = ["nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return parse_gpus(done.stdout)


def parse_gpus(text: str) -> list[Gpu]:
    """What the driver's table says; lines that are none of it are passed over."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"(\d+), (GPU-[-0-9a-f]+), (.+), (\d+)\.(\d+), (\d+)", line.strip())
        if match:
            number, uuid, name, major, minor, free = match.groups()
            found.append(
                Gpu(
                    number=int(number),
                    uuid=uuid,
                    name=name,
                    capability=(int(major), int(minor)),
                    free_bytes=int(free) << 20,
                )
            )
    return found
