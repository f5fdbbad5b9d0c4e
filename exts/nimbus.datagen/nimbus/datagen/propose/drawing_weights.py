"""Weights of the grammar from measured yields: values that succeed at the first attempt are drawn more often.

Yields are read from datasets and from earlier proposals. Without yields all weights are 1, and graphs depend only on
the seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nimbus.datagen.analysis.semantic_yields import Meaning, SemanticYield, find_semantic_yields
from nimbus.datagen.episode.meaning import length_bin
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.bounded import check_regular
from nimbus.datagen.files.codec import parse_json
from nimbus.datagen.propose.goal_graph import GoalGraph
from nimbus.datagen.store.dataset import INFO_NAME, read_info
from nimbus.datagen.store.ledger.ledger import Ledger

LOG = "proposals.jsonl"
_PRIOR = 4.0
"""Number of prior episodes at the overall rate that are added to a success rate, so that two failures change little."""
_LEAST, _MOST = 0.2, 1.5
"""Bounds of a weight, so that no value disappears and none dominates."""
_LONGEST_LINE = 1 << 20
"""Largest line of a log [bytes]."""
_LENGTH_OF = {1: "1-3", 2: "4-5", 3: "6-8", 4: "6-8"}
"""Usual length of tasks by number of goals; tasks with more goals count as ``9+``."""


@dataclass
class _DrawCount:
    tried: int = 0
    first: int = 0


@dataclass
class DrawingWeights:
    """Counts of first attempts by property and value, and the resulting weights."""

    counts: dict[tuple[Meaning, str], _DrawCount] = field(default_factory=dict)

    def add(self, meaning: Meaning, value: str, *, tried: int = 1, first: int) -> None:
        """Count tasks or episodes with a value, and how many of them succeeded at the first attempt."""
        count = self.counts.setdefault((meaning, value), _DrawCount())
        count.tried, count.first = count.tried + tried, count.first + first

    def of(self, meaning: Meaning, value: str) -> float:
        """Return the weight of a value; it is 1 if the value succeeds as often as the average of its property."""
        mine = [count for (other, _), count in self.counts.items() if other == meaning]
        tried = sum(count.tried for count in mine)
        if not tried or not (share := sum(count.first for count in mine) / tried):
            return 1.0
        count = self.counts.get((meaning, value), _DrawCount())
        return min(_MOST, max(_LEAST, (count.first / share + _PRIOR) / (count.tried + _PRIOR)))

    def of_kind(self, name: str) -> float:
        """Return the weight of a kind such as ``kitchen.cup``."""
        return self.of("object", name.rpartition(".")[2])

    def of_goals(self, count: int) -> float:
        """Return the weight of a number of goals, from the usual length of tasks with so many goals."""
        return self.of("length", _LENGTH_OF.get(count, "9+"))

    def of_relations(self, relations: Sequence[str]) -> float:
        """Return the mean weight of the relations of a family of goals."""
        return sum(self.of("relation", relation) for relation in relations) / len(relations) if relations else 1.0


def read_weights(folders: Iterable[Path]) -> DrawingWeights:
    """Read the yields of datasets, or of folders with earlier proposals.

    Raises:
        InputError: A folder is neither a dataset nor a folder of proposals, or its log is damaged.
    """
    weights = DrawingWeights()
    for folder in folders:
        if (log := file_in(folder, LOG)).is_file():
            _read_log(log, weights)
        elif (folder / INFO_NAME).exists():
            for row in _dataset_rows(folder):
                weights.add(row.meaning, row.value, tried=row.episodes, first=row.first)
        else:
            instead = "give the folder of a dataset, or a folder that nimbus propose wrote"
            raise InputError(f"there is no {LOG} and no dataset", where=f"--yields {folder}", instead=instead)
    return weights


def _dataset_rows(folder: Path) -> tuple[SemanticYield, ...]:
    info = read_info(folder)
    ledger = Ledger(folder, read_only=True)
    try:
        return find_semantic_yields(ledger.attempts(), info.meanings)
    finally:
        ledger.close()


def _read_log(path: Path, weights: DrawingWeights) -> None:
    check_regular(path)
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
            try:
                entry = parse_json(line.decode())
                if attempts := entry.get("attempts"):
                    graph, steps = GoalGraph.from_plain(entry["graph"]), int(entry["steps"])
                    learn(weights, graph, steps, success=bool(attempts[0]["success"]), phase=str(attempts[0]["phase"]))
            except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError):
                instead = "remove the line, or propose again"
                raise InputError(
                    "is not a step of a proposal", where=f"{path}: line {number}", instead=instead
                ) from None


def learn(weights: DrawingWeights, graph: GoalGraph, steps: int, *, success: bool, phase: str) -> None:
    """Count a first attempt at a graph.

    If a failure names an object, only that object and its goals are counted: the others may not have been reached.
    """
    concerned = [one for one in graph.things if one.name in graph.concerned]
    blamed = set(_blamed(graph, phase)) or {one.name for one in concerned}
    for one in concerned:
        if success or one.name in blamed:
            weights.add("object", one.kind.rpartition(".")[2], first=success)
    for relation in dict.fromkeys(_relations(graph, set() if success else blamed)):
        weights.add("relation", relation, first=success)
    weights.add("length", length_bin(steps), first=success)


def _relations(graph: GoalGraph, blamed: set[str]) -> Iterator[str]:
    for goal in graph.goals:
        if not blamed or {goal.object, goal.target} & blamed:
            yield goal.relation


def _blamed(graph: GoalGraph, phase: str) -> Iterator[str]:
    """Yield the names of the failed object, and of the targets of its goals."""
    words = {word.rstrip("0123456789").rstrip("_") for word in phase.split()} | set(phase.split())
    for one in graph.things:
        if one.name in words:
            yield one.name
            yield from (goal.target for goal in graph.goals if goal.object == one.name)
