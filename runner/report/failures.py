"""Failure tree of the report: steps, reasons, cost, and an image of each kept failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.analysis.yields import failed_step
from nimbus.datagen.errors import InputError
from nimbus.datagen.media.pages import jpeg_uri
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.runner.media.preview import camera_order
from nimbus.runner.report.row_sums import cpu_seconds

_MOST = 40
"""Largest number of leaves that are shown."""


@dataclass(frozen=True, kw_only=True)
class FailureLeaf:
    """Failed attempts of one reason, in one part of a step."""

    reason: str
    phase: str
    count: int
    seconds: float
    """CPU time [s]."""
    detail: str
    """Detail of one of the failures."""
    episode_id: str
    """Id of that episode."""
    picture: str
    """Address of the image of its last moment; empty if none was kept."""


@dataclass(frozen=True, kw_only=True)
class FailureStep:
    """Failed attempts of one step."""

    name: str
    count: int
    seconds: float
    """CPU time [s]."""
    leaves: list[FailureLeaf]


@dataclass(frozen=True, kw_only=True)
class FailureTree:
    """Failed attempts by step, reason and phase."""

    count: int
    seconds: float
    """CPU time of the failed attempts [s]."""
    total_seconds: float
    """CPU time of all attempts [s]."""
    kept: int
    """Attempts whose files are in the dataset."""
    steps: list[FailureStep]


@dataclass(kw_only=True)
class _Leaf:
    """Failed attempts that are counted together."""

    count: int = 0
    seconds: float = 0.0
    """CPU time [s]."""
    kept: int = 0
    sample: Attempt | None = None
    """The first of them, or the first that was kept."""

    def add(self, attempt: Attempt) -> None:
        """Count an attempt."""
        self.count += 1
        self.seconds += cpu_seconds(attempt)
        self.kept += attempt.failure is not None
        if self.sample is None or (attempt.failure and not self.sample.failure):
            self.sample = attempt


def build_failure_tree(folder: Path, failed: Iterable[Attempt], *, total_seconds: float) -> FailureTree | None:
    """Sort failed attempts into a tree; None where no attempt failed.

    Args:
        folder: Folder of the dataset.
        failed: Failed attempts, one for each plan.
        total_seconds: CPU time of all attempts [s].
    """
    steps: dict[str, dict[tuple[str, str], _Leaf]] = {}
    for attempt in failed:
        leaves = steps.setdefault(failed_step(attempt), {})
        leaves.setdefault((attempt.reason, _part(attempt.phase)), _Leaf()).add(attempt)
    if not steps:
        return None
    room, rows = _MOST, []
    for name, leaves in sorted(steps.items(), key=lambda entry: -_count(entry[1])):
        ordered = sorted(leaves.items(), key=lambda entry: -entry[1].count)
        shown = [_leaf(folder, *key, leaf) for key, leaf in ordered[:room]]
        room -= len(shown)
        seconds = sum(leaf.seconds for leaf in leaves.values())
        rows.append(FailureStep(name=name, count=_count(leaves), seconds=seconds, leaves=shown))
    everything = [leaf for leaves in steps.values() for leaf in leaves.values()]
    return FailureTree(
        count=sum(leaf.count for leaf in everything),
        seconds=sum(leaf.seconds for leaf in everything),
        total_seconds=total_seconds,
        kept=sum(leaf.kept for leaf in everything),
        steps=rows,
    )


def _count(leaves: Mapping[tuple[str, str], _Leaf]) -> int:
    return sum(leaf.count for leaf in leaves.values())


def _part(phase: str) -> str:
    """Return the phase of a skill, without its name and target."""
    if phase.startswith("success"):
        return phase.removeprefix("success").strip()
    return " ".join(phase.split(" ")[2:])


def _leaf(folder: Path, reason: str, phase: str, leaf: _Leaf) -> FailureLeaf:
    sample = leaf.sample
    assert sample
    return FailureLeaf(
        reason=reason,
        phase=phase,
        count=leaf.count,
        seconds=leaf.seconds,
        detail=sample.detail[:160],
        episode_id=sample.episode_id,
        picture=_picture(folder / sample.failure.path) if sample.failure else "",
    )


def _picture(path: Path) -> str:
    """Return the last image of a kept failure's first camera as an address; empty if it cannot be read."""
    try:
        with EpisodeFile(path) as episode:
            if not episode.cameras:
                return ""
            camera = camera_order(episode)[0]
            pixels = episode.rows(f"observations/images/{camera}", episode.step_count - 1)
    except InputError:
        return ""
    return jpeg_uri(pixels, quality=80)
