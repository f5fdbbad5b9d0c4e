"""Credits of imported objects: they travel with a dataset into its card and its exports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AssetCredit:
    """Origin of an imported object."""

    source: str
    """File or folder that it was imported from, and its path there."""
    license: str = ""
    """Empty where none is stated."""
    is_restricted: bool = False
    """The license restricts passing it on: exports leave it out unless asked."""
