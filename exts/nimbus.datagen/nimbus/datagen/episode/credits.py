"""Credits of imported objects, which a dataset carries in its card and in its exports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AssetCredit:
    """Origin of an imported object."""

    source: str
    """Imported file or folder, and the path in it."""
    license: str = ""
    """License; empty if none is stated."""
    is_restricted: bool = False
    """True if the license restricts redistribution; exports omit such objects unless requested."""
