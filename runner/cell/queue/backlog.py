"""What earlier runs have made of what a run is asked for, and what is left to be made: all from the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.runner.cell.queue.lease import Missing
from nimbus.runner.cell.transport.spec import CellSpec

_PAGE = 512
"""Indices that are looked up in the ledger at once."""


@dataclass(frozen=True, kw_only=True)
class CompletedWork:
    """What earlier runs have done of this one."""

    settled: int
    """Episodes that need no more work, variants counted."""
    stored: int
    """Those of them that are stored."""
    missing: int
    """Indices of which something is to be made."""


def completed_before(ledger: Ledger, spec: CellSpec) -> CompletedWork:
    """Count what is there; takes as long as the ledger is, however many episodes are asked for."""
    variants = tuple(range(spec.variants))
    finished = [len(ledger.finished(index, variants)) for index in ledger.touched(episodes=spec.episodes)]
    return CompletedWork(
        settled=sum(finished),
        stored=ledger.stored_count(episodes=spec.episodes, variants=spec.variants),
        missing=spec.episodes - finished.count(spec.variants),
    )


def missing(ledger: Ledger, spec: CellSpec) -> Iterator[Missing]:
    """What is still to be made, by index, looked up as it is asked for."""
    variants = tuple(range(spec.variants))
    for index, is_known in _indices(ledger, spec.episodes):
        if not is_known:
            yield Missing(index=index, variants=variants)
            continue
        finished = ledger.finished(index, variants)
        if left := tuple(variant for variant in variants if variant not in finished):
            shown = next(iter(ledger.stored(index)), None) if finished else None
            yield Missing(
                index=index,
                variants=left,
                stored_plan=shown.path if shown else "",
                stored_attempt=shown.attempt if shown else 0,
                leases=max((state.lease for item in variants if (state := ledger.episode(index, item))), default=0),
            )


def _indices(ledger: Ledger, episodes: int) -> Iterator[tuple[int, bool]]:
    """Every index, and whether the ledger has anything about it; looked up a page at a time."""
    for begin in range(0, episodes, _PAGE):
        end = min(begin + _PAGE, episodes)
        known = ledger.known(begin, end)
        for index in range(begin, end):
            yield index, index in known
