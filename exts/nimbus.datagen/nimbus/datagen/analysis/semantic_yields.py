"""Semantic yields: success at the first attempt and kept episodes, by object, category, scene, relation and length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from nimbus.datagen.episode.meaning import TaskMeaning, length_bin
from nimbus.datagen.store.ledger.attempt import Attempt

Meaning = Literal["object", "category", "scene", "relation", "length"]
MEANINGS: tuple[Meaning, ...] = get_args(Meaning)


@dataclass(frozen=True, kw_only=True)
class SemanticYield:
    """Counts for one value of one meaning, such as the object ``cup``."""

    meaning: Meaning
    value: str
    episodes: int
    """Number of finished episodes with this value."""
    first: int
    """Number of episodes that succeeded at the first attempt."""
    kept: int

    @property
    def share(self) -> float:
        """Fraction of the episodes that succeeded at the first attempt, from 0 to 1."""
        return self.first / self.episodes if self.episodes else 0.0


@dataclass
class _EpisodeCount:
    episodes: int = 0
    first: int = 0
    kept: int = 0


class SemanticCounts:
    """Counter of episodes by their meanings, from any source."""

    def __init__(self) -> None:
        self._counts: dict[tuple[Meaning, str], _EpisodeCount] = {}

    def add(self, values: Mapping[Meaning, Iterable[str]], *, first: bool, kept: bool) -> None:
        """Count one episode.

        Args:
            values: Values of the episode, by meaning.
            first: True if the episode succeeded at its first attempt.
            kept: True if the episode succeeded at any attempt.
        """
        for meaning in MEANINGS:
            for value in dict.fromkeys(values.get(meaning, ())):
                count = self._counts.setdefault((meaning, value), _EpisodeCount())
                count.episodes, count.first, count.kept = count.episodes + 1, count.first + first, count.kept + kept

    def rows(self) -> tuple[SemanticYield, ...]:
        """Return one row per value, by meaning, the lowest success first."""
        found = [
            SemanticYield(meaning=meaning, value=value, episodes=one.episodes, first=one.first, kept=one.kept)
            for (meaning, value), one in self._counts.items()
        ]
        return tuple(sorted(found, key=lambda row: (MEANINGS.index(row.meaning), row.share, -row.episodes, row.value)))


def find_semantic_yields(attempts: Iterable[Attempt], meanings: Mapping[str, TaskMeaning]) -> tuple[SemanticYield, ...]:
    """Count the episodes of a ledger.

    Args:
        attempts: Attempts in the dataset; only the first variant of each plan counts.
        meanings: Meaning of each task, by its name; tasks of older datasets have no meaning.
    """
    episodes: dict[tuple[str, int, int], dict[int, Attempt]] = {}
    for attempt in attempts:
        episodes.setdefault((attempt.task, attempt.seed, attempt.idx), {}).setdefault(attempt.attempt, attempt)
    counts = SemanticCounts()
    for mine in episodes.values():
        kept = any(attempt.success for attempt in mine.values())
        if kept or any(attempt.final for attempt in mine.values()):
            first = mine[min(mine)]
            values = dict(_values(first, meanings.get(first.task, TaskMeaning())))
            counts.add(values, first=first.attempt == 0 and first.success, kept=kept)
    return counts.rows()


def _values(attempt: Attempt, meaning: TaskMeaning) -> Iterator[tuple[Meaning, tuple[str, ...]]]:
    kinds = tuple(dict.fromkeys(placed["kind"] for placed in attempt.objects))
    yield "object", kinds
    yield "category", tuple(meaning.categories[kind] for kind in kinds if kind in meaning.categories)
    drawn = attempt.drawn.get("physical", {})
    room = drawn.get("scene", {}) if isinstance(drawn, Mapping) else {}
    scene = str(room.get("family", "")) if isinstance(room, Mapping) else ""
    yield "scene", tuple(filter(None, (scene or meaning.scene,)))
    yield "relation", meaning.relations
    yield "length", (length_bin(meaning.steps),) if meaning.steps else ()
