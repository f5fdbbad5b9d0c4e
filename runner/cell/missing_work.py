"""Work that earlier runs have completed or left, from the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.runner.cell.queue.lease import Missing

if TYPE_CHECKING:
    from nimbus.runner.cell.transport.spec import CellSpec

_PAGE = 512
"""Number of indices looked up in the ledger by one query."""


@dataclass(frozen=True, kw_only=True)
class CompletedWork:
    """Part of a run's work that earlier runs have completed."""

    settled: int
    """Number of settled episodes, variants included."""
    stored: int
    """Number of stored episodes among them."""
    missing: int
    """Number of indices with a missing variant."""


def completed_before(ledger: Ledger, spec: CellSpec) -> CompletedWork:
    """Count completed work; the time grows with the ledger, not with the number of requested episodes.

    Raises:
        InputError: The folder holds episodes of other parts.
    """
    if spec.feed:
        return CompletedWork(settled=0, stored=0, missing=0)
    variants, (number, parts) = tuple(range(spec.variants)), spec.part
    touched = ledger.touched(episodes=spec.episodes)
    if others := [index for index in touched if index % parts != number - 1]:
        what, instead = (
            f"holds episode {others[0]}, which is not in part {number} of {parts}",
            "give each part its own --out",
        )
        raise InputError(what, where=spec.folder, instead=instead)
    # Only touched indices are read: a dataset of millions of requested episodes starts with few rows.
    finished = [len(ledger.finished(index, variants)) for index in touched]
    return CompletedWork(
        settled=sum(finished),
        stored=ledger.stored_count(episodes=spec.episodes, variants=spec.variants),
        missing=spec.target // spec.variants - finished.count(spec.variants),
    )


def missing_work(ledger: Ledger, spec: CellSpec) -> Iterator[Missing]:
    """Yield missing work by index, looked up lazily."""
    variants, wanted, (number, parts) = tuple(range(spec.variants)), frozenset(spec.indices), spec.part
    for index, is_known in _indices(ledger, spec.episodes):
        if (wanted and index not in wanted) or index % parts != number - 1:
            continue
        if not is_known:
            yield Missing(index=index, variants=variants)
        elif missing := missing_of(ledger, spec, index):
            yield missing


def missing_of(ledger: Ledger, spec: CellSpec, index: int) -> Missing | None:
    """Return the missing work of an index; None when all of its variants are settled."""
    variants = tuple(range(spec.variants))
    finished = ledger.finished(index, variants)
    if not (left := tuple(variant for variant in variants if variant not in finished)):
        return None
    # A stored variant holds the plan of all variants: the missing ones only need rendering.
    shown = next(iter(ledger.stored(index)), None) if finished else None
    return Missing(
        index=index,
        variants=left,
        stored_plan=shown.path if shown else "",
        stored_attempt=shown.attempt if shown else 0,
        leases=max((state.lease for item in variants if (state := ledger.episode(index, item))), default=0),
    )


def _indices(ledger: Ledger, episodes: int) -> Iterator[tuple[int, bool]]:
    """Yield every index, with True where the ledger has a row of it; the ledger is read in pages."""
    for begin in range(0, episodes, _PAGE):
        end = min(begin + _PAGE, episodes)
        known = ledger.known(begin, end)
        for index in range(begin, end):
            yield index, index in known
