"""Failure tree of the report: steps, reasons, cost, and an image of each kept failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.analysis.yields import failed_step
from nimbus.datagen.errors import InputError
from nimbus.datagen.media.pages import jpeg_uri
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.media.preview import camera_order

_MOST = 40
"""Leaves that are shown."""


@dataclass(frozen=True, kw_only=True)
class FailureLeaf:
    """Failed attempts of one reason, in one part of a step."""

    reason: str
    phase: str
    count: int
    seconds: float
    """[s] CPU"""
    detail: str
    """Detail of one of the failures."""
    episode_id: str
    """Id of that episode."""
    picture: str
    """Address of its last moment; empty where none was kept."""


@dataclass(frozen=True, kw_only=True)
class FailureStep:
    """Failed attempts of one step."""

    name: str
    count: int
    seconds: float
    """[s] CPU"""
    leaves: list[FailureLeaf]


@dataclass(frozen=True, kw_only=True)
class FailureTree:
    """Failed attempts by step, reason and phase."""

    count: int
    seconds: float
    """[s] CPU of the failed attempts"""
    total_seconds: float
    """[s] CPU of all attempts"""
    kept: int
    """Attempts whose files are in the dataset."""
    steps: list[FailureStep]


def build_failure_tree(folder: Path, plans: Sequence[Attempt]) -> FailureTree | None:
    """Sort failed attempts into a tree; None where no attempt failed.

    Args:
        folder: Of the dataset.
        plans: Attempts, one for each plan.
    """
    failed = [plan for plan in plans if not plan.success]
    if not failed:
        return None
    steps: dict[str, list[Attempt]] = {}
    for attempt in failed:
        steps.setdefault(failed_step(attempt), []).append(attempt)
    room, rows = _MOST, []
    for name, mine in sorted(steps.items(), key=lambda entry: -len(entry[1])):
        leaves = [_leaf(folder, *key, leaf) for key, leaf in _leaves(mine)[:room]]
        room -= len(leaves)
        rows.append(FailureStep(name=name, count=len(mine), seconds=_seconds(mine), leaves=leaves))
    return FailureTree(
        count=len(failed),
        seconds=_seconds(failed),
        total_seconds=_seconds(plans),
        kept=sum(attempt.failure is not None for attempt in failed),
        steps=rows,
    )


def _leaves(attempts: Sequence[Attempt]) -> list[tuple[tuple[str, str], list[Attempt]]]:
    found: dict[tuple[str, str], list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault((attempt.reason, _part(attempt.phase)), []).append(attempt)
    return sorted(found.items(), key=lambda entry: -len(entry[1]))


def _part(phase: str) -> str:
    """Return the phase of a skill, without its name and target."""
    if phase.startswith("success"):
        return phase.removeprefix("success").strip()
    return " ".join(phase.split(" ")[2:])


def _leaf(folder: Path, reason: str, phase: str, attempts: Sequence[Attempt]) -> FailureLeaf:
    sample = next((attempt for attempt in attempts if attempt.failure), attempts[0])
    return FailureLeaf(
        reason=reason,
        phase=phase,
        count=len(attempts),
        seconds=_seconds(attempts),
        detail=sample.detail[:160],
        episode_id=sample.episode_id,
        picture=_picture(folder / sample.failure.path) if sample.failure else "",
    )


def _seconds(attempts: Sequence[Attempt]) -> float:
    """CPU seconds, waits left out."""
    return sum(s for one in attempts for name, s in one.times.items() if not name.endswith("_wait") and name != "load")


def _picture(path: Path) -> str:
    """Show the last moment of a kept failure as its first camera saw it; nothing where it cannot be read."""
    try:
        with EpisodeFile(path) as episode:
            if not episode.cameras:
                return ""
            camera = camera_order(episode)[0]
            pixels = episode.rows(f"observations/images/{camera}", episode.step_count - 1)
    except InputError:
        return ""
    return jpeg_uri(pixels, quality=80)
