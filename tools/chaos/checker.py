"""Verdict on the remains of a run, from nothing but its ledger, its files and the processes of this machine.

Plain SQLite, plain HDF5 and a hash of its own: a fault in Nimbus's readers must not hide one in its writers. What the
episodes should hold comes from a clean run of the same seed in a single process.
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
"""Index and variant."""
_VARYING = ("provenance", "plan_statistics")
"""Times and versions: never the same twice."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """Dataset that a clean run made."""

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
    """Defects of a run; all is well when :attr:`problems` is empty."""

    lost: list[Address] = field(default_factory=list)
    """Neither stored, rejected nor quarantined."""
    doubled: list[Address] = field(default_factory=list)
    """With more than one winning attempt, or more than one file."""
    wrong: list[Address] = field(default_factory=list)
    """Stored with another content than the clean run's, or with another fate."""
    false_quarantines: list[Address] = field(default_factory=list)
    missed_poison: list[int] = field(default_factory=list)
    half_files: list[str] = field(default_factory=list)
    """In ``stage/`` after the end, or under ``episodes/`` without a row."""
    processes: list[int] = field(default_factory=list)
    shared_memory: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def problems(self) -> dict[str, Any]:
        """By kind, what there is of it."""
        return {name: value for name, value in vars(self).items() if value}

    def add(self, more: Findings) -> None:
        """Take in what was found elsewhere."""
        for name, value in vars(more).items():
            getattr(self, name).extend(value)


def check(
    folder: Path, truth: Truth, *, episodes: int, variants: int = 1, poison: frozenset[int] = frozenset()
) -> Findings:
    """Judge a run that has ended.

    Args:
        folder: Of its dataset.
        truth: Of a clean run, of at least as many episodes and variants.
        episodes: How many were asked for.
        variants: Of each.
        poison: Indices that can never be made.
    """
    found = Findings()
    states = {(idx, v): (state, sha) for idx, v, state, sha in _rows(folder, _STATES)}
    winners = Counter((idx, v) for idx, v in _rows(folder, "SELECT idx, variant FROM attempts WHERE path != ''"))
    for address in ((idx, v) for idx in range(episodes) for v in range(variants)):
        _judge(found, address, states.get(address, ("", ""))[0], winners[address], truth, poison)
    if beyond := sorted(set(states) - {(idx, v) for idx in range(episodes) for v in range(variants)}):
        found.other.append(f"rows of episodes that nobody asked for: {beyond[:5]}")
    found.missed_poison = sorted(index for index in poison if states.get((index, 0), ("", ""))[0] != "QUARANTINED")
    _check_files(found, folder, truth)
    found.processes = [*tagged(folder), *orphans()]
    found.shared_memory = named_memory()
    return found


def named_memory() -> list[str]:
    """Segments of shared memory that have a name, of Nimbus or of Python's."""
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
    """The faults that the ledger tells of, in order of time; none while there is no ledger."""
    names = ("time", "run", "worker", "kind", "phase", "idx", "lease", "detail", "incident")
    if not _rows(folder, "SELECT name FROM sqlite_master WHERE name = 'faults'"):
        return []
    rows = _rows(folder, f"SELECT {', '.join(names)} FROM faults ORDER BY time")
    return [dict(zip(names, row, strict=True)) for row in rows]


def supervisors(folder: Path) -> int:
    """Runs that the ledger tells of: each is a supervisor that got as far as its work."""
    return _rows(folder, "SELECT COUNT(*) FROM runs")[0][0]


def content_hash(path: Path) -> str:
    """Over every array and text of an episode, but for times and versions; of a broken file, what is wrong with it."""
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
