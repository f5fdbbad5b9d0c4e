"""Formats of exports. A format has a line in ``FORMATS`` and a module in this folder that writes it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:  # the command line imports this module when it starts
    from nimbus.datagen.datasets.export.parts import EpisodeParts
    from nimbus.datagen.datasets.export.shards import Options
    from nimbus.datagen.datasets.export.source import Source

FORMATS = {
    "lerobot": "lerobot",
    "lerobot-v2.1": "lerobot_v21",
    "robomimic": "robomimic",
    "aloha": "aloha",
    "shards": "tar_shards",
    "vln-n1": "vln_n1",
    "r2r-ce": "r2r_ce",
}
"""Module of each format; the first one is the default."""


class FormatWriter(Protocol):
    """Interface of the modules that write a format."""

    NEEDS_PARTS: bool
    """True if the export first converts episodes to tables and videos, in several processes."""

    def write(self, source: Source, parts: EpisodeParts, tree: Path, options: Options) -> None:
        """Write a dataset into an empty folder.

        Args:
            source: Dataset to export.
            parts: Tables and videos of the episodes; available if ``NEEDS_PARTS`` is True.
            tree: Folder of the export.
            options: Limits of file sizes.

        Raises:
            InputError: The format does not support the dataset.
        """
        ...


def load_writer(name: str) -> FormatWriter:
    """Import the module that writes a format.

    Raises:
        InputError: A required library is not installed.
    """
    return cast(FormatWriter, importlib.import_module(f"nimbus.datagen.datasets.export.{FORMATS[name]}"))
