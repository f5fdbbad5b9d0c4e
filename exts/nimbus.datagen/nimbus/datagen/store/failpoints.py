"""Places where a test lets this process die: ``NIMBUS_FAILPOINT=name[:count]`` kills it when it gets there."""

from __future__ import annotations

import os
import signal

_name, _, _count = os.environ.get("NIMBUS_FAILPOINT", "").partition(":")
_passes_left = int(_count or 1)


def failpoint(name: str) -> None:
    """Die here by SIGKILL, at the chosen pass of the chosen place; anywhere else do nothing."""
    global _passes_left
    if name != _name:
        return
    _passes_left -= 1
    if _passes_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
