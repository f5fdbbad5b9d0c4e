"""Formats of exports, by the sort of dataset that they hold."""

from __future__ import annotations

from nimbus.datagen.datasets.export.formats import FORMATS

NAVIGATION_FORMATS = ("r2r-ce", "vln-n1")
"""Formats of paths of a base, which refuse manipulation datasets."""
MANIPULATION_FORMATS = tuple(sorted(FORMATS.keys() - set(NAVIGATION_FORMATS)))
"""All others."""
