"""Formats of exports, by kind of dataset."""

from __future__ import annotations

from nimbus.datagen.datasets.export.formats import FORMATS

NAVIGATION_FORMATS = ("r2r-ce", "vln-n1")
"""Formats for navigation datasets, which refuse manipulation datasets."""
MANIPULATION_FORMATS = tuple(sorted(FORMATS.keys() - set(NAVIGATION_FORMATS)))
"""All other formats."""
