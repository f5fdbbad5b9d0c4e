"""How an export is cut into files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Options:
    """Bounds of a file, or of a folder of files."""

    episode_size: int = 1000
    """Episodes in a file at most."""
    shard_bytes: int = 10**9
    """Bytes of a file at most, unless one episode alone has more."""
