"""Checks of a finished run, based only on its ledger, its files and the processes of this machine.

It uses plain SQLite, plain HDF5 and its own hash, so that a fault in Nimbus's readers cannot hide one in its writers.
The expected episodes come from a clean run with the same seed in a single process.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tools.chaos.processes import orphans, tagged

Address = tuple[int, int]
"""Index and variant of an episode."""
_VARYING = ("provenance", "plan_statistics")
"""Groups with times and versions, which differ between runs."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """Dataset of a clean run."""

    content: dict[Address, str]
    """Hash of every stored episode."""
    rejected: frozenset[Address]

    @classmethod
    def read(cls, folder: Path) -> Truth:
        """Read the dataset of a clean run."""
        rows = _rows(folder, "SELECT idx, variant, path FROM attempts WHERE path != ''")
        content = {(idx, variant): content_hash(folder / path) for idx, variant, path in rows}
        failed = _rows(folder, "SELECT idx, variant FROM attempts WHERE final AND NOT success")
        return cls(content=content, rejected=frozenset(failed))


@dataclass(kw_only=True)
class Findings:
    """Defects of a run; it has none if :attr:`problems` is empty."""

    lost: list[Address] = field(default_factory=list)
    """Episodes that are neither stored, rejected nor quarantined."""
    doubled: list[Address] = field(default_factory=list)
    """Episodes with more than one winning attempt or more than one file."""
    wrong: list[Address] = field(default_factory=list)
    """Episodes whose content or final state differs from the clean run."""
    false_quarantines: list[Address] = field(default_factory=list)
    missed_poison: list[int] = field(default_factory=list)
    half_files: list[str] = field(default_factory=list)
    """Files left in ``stage/`` after the end, or in ``episodes/`` without a row."""
    processes: list[int] = field(default_factory=list)
    shared_memory: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def problems(self) -> dict[str, Any]:
        """Return the defects by kind, without empty kinds."""
        return {name: value for name, value in vars(self).items() if value}

    def add(self, more: Findings) -> None:
        """Add the findings of another check."""
        for name, value in vars(more).items():
            getattr(self, name).extend(value)


def check(
    folder: Path, truth: Truth, *, episodes: int, variants: int = 1, poison: frozenset[int] = frozenset()
) -> Findings:
    """Check a run that has ended.

    Args:
        folder: Folder of the run's dataset.
        truth: Dataset of a clean run with at least as many episodes and variants.
        episodes: Number of requested episodes.
        variants: Number of requested variants per episode.
        poison: Indices of episodes that always fail.
    """
    found = Findings()
    states = {(idx, v): (state, sha) for idx, v, state, sha in _rows(folder, _STATES)}
    winners = Counter((idx, v) for idx, v in _rows(folder, "SELECT idx, variant FROM attempts WHERE path != ''"))
    for address in ((idx, v) for idx in range(episodes) for v in range(variants)):
        _judge(found, address, states.get(address, ("", ""))[0], winners[address], truth, poison)
    if beyond := sorted(set(states) - {(idx, v) for idx in range(episodes) for v in range(variants)}):
        found.other.append(f"rows of episodes that were not requested: {beyond[:5]}")
    found.missed_poison = sorted(index for index in poison if states.get((index, 0), ("", ""))[0] != "QUARANTINED")
    _check_files(found, folder, truth)
    found.processes = [*tagged(folder), *orphans()]
    found.shared_memory = named_memory()
    return found


def named_memory() -> list[str]:
    """Return the names of shared-memory segments of Nimbus and of Python."""
    return [name for name in os.listdir("/dev/shm") if "nimbus" in name or name.startswith("psm_")]


_STATES = "SELECT idx, variant, state, sha256 FROM episodes"


def _judge(found: Findings, address: Address, state: str, winners: int, truth: Truth, poison: frozenset[int]) -> None:
    if winners > 1:
        found.doubled.append(address)
    if state == "QUARANTINED":
        if address[0] not in poison:
            found.false_quarantines.append(address)
    elif state == "DONE":
        if winners != 1:
            found.other.append(f"{address} is done and has {winners} winning attempts")
        if address not in truth.content:
            found.wrong.append(address)
    elif state == "REJECTED":
        if winners or address not in truth.rejected:
            found.wrong.append(address)
    else:
        found.lost.append(address)


def _check_files(found: Findings, folder: Path, truth: Truth) -> None:
    rows = _rows(folder, "SELECT idx, variant, path, byte_count FROM attempts WHERE path != ''")
    known = {path: ((idx, variant), size) for idx, variant, path, size in rows}
    if len(known) < len(rows):
        found.other.append("two rows have one file")
    for path in sorted((folder / "episodes").iterdir()):
        name = f"episodes/{path.name}"
        if name not in known:
            found.half_files.append(name)
            continue
        address, size = known.pop(name)
        if path.stat().st_nlink != 1:
            found.half_files.append(f"{name} has another name, too")
        if path.stat().st_size != size or content_hash(path) != truth.content.get(address):
            found.wrong.append(address)
    found.lost += [address for address, _ in known.values()]
    found.half_files += sorted(f"stage/{path.name}" for path in (folder / "stage").iterdir())
    if (folder / "orphans").exists():
        found.half_files += sorted(f"orphans/{path.name}" for path in (folder / "orphans").iterdir())


def faults(folder: Path) -> list[dict[str, Any]]:
    """Return the faults in the ledger in order of time; none if there is no ledger."""
    names = ("time", "run", "worker", "kind", "phase", "idx", "lease", "detail", "incident")
    if not _rows(folder, "SELECT name FROM sqlite_master WHERE name = 'faults'"):
        return []
    rows = _rows(folder, f"SELECT {', '.join(names)} FROM faults ORDER BY time")
    return [dict(zip(names, row, strict=True)) for row in rows]


def supervisors(folder: Path) -> int:
    """Return the number of runs in the ledger; each is a supervisor that started work."""
    return _rows(folder, "SELECT COUNT(*) FROM runs")[0][0]


def content_hash(path: Path) -> str:
    """Return a hash of an episode's arrays and texts, except times and versions; for a broken file, the error."""
    total = hashlib.sha256()

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith(_VARYING):
            values = np.asarray(item[()])
            content = values.tobytes() if values.dtype.kind != "O" else repr(values.tolist()).encode()
            total.update(f"{name} {values.dtype} {values.shape} {len(content)} ".encode() + content)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return total.hexdigest()


def _rows(folder: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(f"file:{folder / 'ledger.sqlite'}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()
