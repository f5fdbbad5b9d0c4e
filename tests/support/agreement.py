"""Datasets whose ledger agrees with a changed episode file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from nimbus.datagen.store.episode_file.content_check import content_hash
from nimbus.datagen.store.episode_file.read import EpisodeFile


def agree(folder: Path, path: Path) -> None:
    """Update the ledger to a changed file."""
    with EpisodeFile(path) as episode:
        digest = content_hash(episode).hexdigest()
    size = path.stat().st_size
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        for table in ("attempts", "episodes"):
            line = f"UPDATE {table} SET sha256 = ?, byte_count = ? WHERE episode_id = ?"
            assert connection.execute(line, (digest, size, path.stem)).rowcount == 1
    connection.close()
