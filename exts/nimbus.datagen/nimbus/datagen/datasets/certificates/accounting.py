"""Whether every episode that was planned is accounted for: ledger, states and files against each other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from nimbus.datagen.datasets.certificates.record import ACCOUNTING, Certificate
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus

_UNDER_WAY = (EpisodeStatus.LEASED, EpisodeStatus.INTENT, EpisodeStatus.PENDING)


def account(folder: Path, attempts: list[Attempt], states: list[EpisodeState]) -> Certificate:
    """The certificate.

    Args:
        folder: Of the dataset.
        attempts: Every one.
        states: Of every episode.
    """
    planned = {attempt.idx for attempt in attempts} | {state.idx for state in states}
    stored = [attempt for attempt in attempts if attempt.path]
    missing = [attempt.path for attempt in stored if not attempt.is_in(folder)]
    done = {attempt.idx for attempt in stored}
    quarantined = {state.idx for state in states if state.state is EpisodeStatus.QUARANTINED} - done
    last = {attempt.idx: attempt.reason for attempt in attempts if attempt.final and not attempt.success}
    failed = {index: reason for index, reason in last.items() if index not in done | quarantined}
    waiting = {state.idx for state in states if state.state in _UNDER_WAY} - done - quarantined - failed.keys()
    lost = sorted(planned - done - quarantined - failed.keys() - waiting)
    tried = {(attempt.seed, attempt.idx, attempt.attempt): attempt for attempt in attempts}.values()
    problems = [f"episode {index}: neither stored nor failed" for index in lost]
    problems += [f"{path}: missing, or not as large as the ledger says" for path in missing]
    return Certificate(
        name=ACCOUNTING,
        holds=not problems,
        checked=len(planned),
        of=len(planned),
        figures={
            "planned": len(planned),
            "stored": len(done),
            "failed": dict(Counter(failed.values()).most_common()),
            "quarantined": len(quarantined),
            "under_way": len(waiting),
            "files": len(stored),
            "attempts": len(tried),
            "failed_attempts": dict(Counter(one.reason for one in tried if not one.success).most_common()),
        },
        problems=tuple(problems[:20]),
    )
