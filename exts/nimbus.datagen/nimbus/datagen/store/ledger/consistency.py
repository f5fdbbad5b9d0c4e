"""Whether the ledger agrees with itself: where episodes stand, against the attempts at them."""

from __future__ import annotations

from collections.abc import Iterator

from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import EpisodeState, EpisodeStatus


def check_consistency(states: list[EpisodeState], attempts: list[Attempt]) -> Iterator[str]:
    """What does not fit together, one line each."""
    winners: dict[tuple[int, int], list[Attempt]] = {}
    for attempt in attempts:
        if attempt.path:
            winners.setdefault((attempt.idx, attempt.variant), []).append(attempt)
    for mine in winners.values():
        if len(mine) > 1:
            yield f"ledger.sqlite: {mine[0].episode_id}: {len(mine)} stored attempts, one may be"
    done = {(state.idx, state.variant): state for state in states if state.state is EpisodeStatus.DONE}
    for address in sorted({*winners, *done}):
        yield from _check_done(done.get(address), winners.get(address, []))


def find_unfinished(states: list[EpisodeState]) -> Iterator[str]:
    """Commits that a run which is gone left half done."""
    for state in states:
        if state.state is EpisodeStatus.INTENT:
            yield f"ledger.sqlite: {attempt_name(state)}: its commit was cut short; the next run finishes or undoes it"


def find_intended(states: list[EpisodeState]) -> set[str]:
    """Episodes whose files may be in place already, though the ledger does not call them done."""
    return {state.episode_id for state in states if state.state is EpisodeStatus.INTENT}


def attempt_name(state: EpisodeState) -> str:
    """Its id, or its address while that is not known."""
    return state.episode_id or f"episode {state.idx}, variant {state.variant}"


def _check_done(state: EpisodeState | None, stored: list[Attempt]) -> Iterator[str]:
    if state is None:
        yield f"ledger.sqlite: {stored[0].episode_id}: is stored, but not done"
    elif not stored:
        yield f"ledger.sqlite: {attempt_name(state)}: is done, but no attempt at it is stored"
    elif (state.sha256, state.byte_count) != (stored[0].sha256, stored[0].byte_count):
        yield f"ledger.sqlite: {attempt_name(state)}: its attempt tells of another file than its state"
