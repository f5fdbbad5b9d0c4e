"""Failpoints for crash tests: ``NIMBUS_FAILPOINT=name[:count]`` kills the process at that point."""

from __future__ import annotations

import os
import signal

_name, _, _count = os.environ.get("NIMBUS_FAILPOINT", "").partition(":")
_passes_left = int(_count or 1)


def failpoint(name: str) -> None:
    """Kill this process with SIGKILL at the chosen pass of the chosen point; do nothing otherwise."""
    global _passes_left
    if name != _name:
        return
    _passes_left -= 1
    if _passes_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
