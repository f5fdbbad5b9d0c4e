"""Difficulty of tasks, from the number of steps and the measured failures of skills, and the resulting curriculum."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nimbus.datagen.propose.catalogue import KindEntry

if TYPE_CHECKING:
    from nimbus.datagen.propose.proposals import Proposal, Trial

CURRICULUM = "curriculum.json"
_PRIOR = 4.0
"""Number of prior attempts at the overall rate that are added to a success rate, so that two failures change little."""
_STEP = 0.1
"""Difficulty of one additional step; a skill that never succeeds counts as much as ten steps."""
_PARAMETERS = ("object", "objects")

Act = tuple[str, str]
"""Skill and category of its object, which is empty for a skill without an object."""


@dataclass
class _ActCount:
    tried: int = 0
    passed: int = 0


@dataclass
class SkillRecord:
    """Counts of started and passed skills, by category of their objects."""

    counts: dict[Act, _ActCount] = field(default_factory=dict)

    def learn(self, trial: Trial, catalogue: Mapping[str, KindEntry]) -> None:
        """Count the attempts of a trial; all acts before a failed one have passed."""
        acts = list(task_acts(trial, catalogue))
        for attempt in trial.attempts:
            done = acts if attempt.success else acts[: _failed_at(acts, attempt.phase, trial) + 1]
            for place, (act, _) in enumerate(done):
                count = self.counts.setdefault(act, _ActCount())
                count.tried += 1
                count.passed += attempt.success or place < len(done) - 1

    @property
    def share(self) -> float:
        """Fraction of all acts that passed; 1 without acts."""
        tried = sum(count.tried for count in self.counts.values())
        return sum(count.passed for count in self.counts.values()) / tried if tried else 1.0

    def share_of(self, act: Act) -> float:
        """Return the passed fraction of an act, mixed with the overall fraction if the act was rarely tried."""
        count = self.counts.get(act, _ActCount())
        return (count.passed + _PRIOR * self.share) / (count.tried + _PRIOR)

    def hardest(self, trial: Trial, catalogue: Mapping[str, KindEntry]) -> Act:
        """Return the act with the lowest passed fraction in a trial."""
        return min((act for act, _ in task_acts(trial, catalogue)), key=self.share_of, default=("", ""))

    def difficulty(self, trial: Trial, catalogue: Mapping[str, KindEntry]) -> float:
        """Return the weighted number of steps plus the failed fraction of the hardest act."""
        return _STEP * trial.steps + 1.0 - self.share_of(self.hardest(trial, catalogue))


def task_acts(trial: Trial, catalogue: Mapping[str, KindEntry]) -> Iterator[tuple[Act, str]]:
    """Yield the acts of a trial's plan in order, each with the name of its object."""
    kinds = {one.name: one.kind for one in trial.graph.things}
    for skill, thing in _flat(trial.plan):
        name = thing.removeprefix("each_")
        kind = kinds.get(name, "")
        yield (skill, catalogue[kind].category if kind else ""), name


def _flat(steps: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for step in steps:
        if isinstance(step, str):
            yield step, ""
            continue
        ((skill, value),) = step.items()
        if isinstance(value, list):
            yield from _flat(value)
        else:
            named = value if isinstance(value, str) else next((value[key] for key in _PARAMETERS if key in value), "")
            yield skill, named if isinstance(named, str) else ""


def _failed_at(acts: Sequence[tuple[Act, str]], phase: str, trial: Trial) -> int:
    """Return the index of the failed act: the skill that the phase names, or else the last act on the named object."""
    words = phase.split()
    named = [thing for word in words for thing in (one.name for one in trial.graph.things) if _is_of(word, thing)]
    for place, ((skill, _), thing) in enumerate(acts):
        if words and skill == words[0] and (thing in named or not named):
            return place
    return max((place for place, (_, thing) in enumerate(acts) if thing in named), default=len(acts) - 1)


def _is_of(word: str, thing: str) -> bool:
    """Return True if a word of a phase names an instance of a thing, such as ``cup_0`` of ``cup``."""
    return word == thing or (word.startswith(f"{thing}_") and word.removeprefix(f"{thing}_").isdigit())


def curriculum(proposals: Iterable[Proposal], catalogue: Mapping[str, KindEntry]) -> list[dict[str, Any]]:
    """Return entries of accepted tasks, the easiest first.

    Args:
        proposals: Proposals of a run; the failures of refused ones count as well.
        catalogue: Catalogue entries of kinds.
    """
    proposals = list(proposals)
    record = SkillRecord()
    for proposal in proposals:
        for trial in proposal.trials:
            record.learn(trial, catalogue)
    entries = []
    for proposal in proposals:
        if trial := proposal.accepted:
            skill, category = act = record.hardest(trial, catalogue)
            count = record.counts.get(act, _ActCount())
            hardest = {"skill": skill, "category": category, "passed": count.passed, "of": count.tried}
            difficulty = round(record.difficulty(trial, catalogue), 3)
            entries.append(
                {"task": proposal.name, "difficulty": difficulty, "steps": trial.steps, "hardest": hardest}
                | {"relations": sorted(set(trial.graph.skeleton))}
            )
    return sorted(entries, key=lambda entry: (entry["difficulty"], entry["task"]))


def curriculum_text(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of ``curriculum.json``, one task per line."""
    return "[\n" + ",\n".join(f"  {json.dumps(entry)}" for entry in entries) + "\n]\n"
