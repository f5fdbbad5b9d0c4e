"""Results of an evaluation: ``evaluation.json``.

The file contains no times, so it is the same however the work was distributed. Repeated faults differ from run to
run, because a server may or may not be killed; they are in a separate file, ``faults.json``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from nimbus.datagen.analysis.significance import wilson
from nimbus.datagen.episode.trajectory import ACTIVITIES, FAULTS, Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.bounded import Count, as_typed, read_plain
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.policies.policy import ANSWER_SPREAD, ASKED_AGAIN, STILL
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.evaluation.measures import EpisodeMeasures

NAME, FAULTS_NAME = "evaluation.json", "faults.json"
_SAME_ANSWER = 1e-3
"""Largest difference [rad or m] between two answers that count as equal; a GPU's rounding is not always the same."""
MOST_FAULTS = 0.01
"""Largest fraction of layouts lost to faults of the policy for a valid result."""


@dataclass(frozen=True, kw_only=True)
class LayoutResult:
    """Outcome of one layout."""

    index: int
    success: bool
    reason: str = "none"
    phase: str = ""
    """Last activity of the robot: still, reach, touch, hold, after."""
    detail: str = ""
    steps: int = 0
    faults: int = 0
    """Number of earlier attempts that ended with a fault of the policy."""
    kinds: tuple[str, ...] = ()
    """Kinds of the layout's objects."""
    measures: EpisodeMeasures = EpisodeMeasures()

    @property
    def is_lost(self) -> bool:
        """True if no attempt completed: all of them ended with a fault of the policy."""
        return self.reason in FAULTS


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Outcomes of a policy on the layouts of a task."""

    task: str
    task_hash: str
    policy: str
    """Identity of the policy, which is never a path."""
    split: str
    seed: int
    execute: int
    limit: int
    randomize: str = ""
    """Level of randomization; empty for the task's own."""
    trained_layouts: int = 0
    """Number of these layouts on which the policy was trained, as far as it states them."""
    is_repeatable: bool = True
    """True if the policy gives equal answers to equal observations with the same seed."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Further inputs that determine the outcome: assets, versions and settings by name."""
    layouts: tuple[LayoutResult, ...] = ()

    @property
    def judged(self) -> tuple[LayoutResult, ...]:
        """Return the layouts with an outcome."""
        return tuple(one for one in self.layouts if not one.is_lost)

    @property
    def success_count(self) -> int:
        """Return the number of layouts at which the policy succeeded."""
        return sum(one.success for one in self.judged)

    @property
    def fault_count(self) -> int:
        """Return the number of attempts that ended with a fault of the policy or its server."""
        return sum(one.faults + one.is_lost for one in self.layouts)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % confidence interval of the success rate (Wilson)."""
        return wilson(self.success_count, len(self.judged))

    @property
    def is_valid(self) -> bool:
        """True if enough layouts have an outcome, and the policy was neither wild nor still in all of them."""
        lost = len(self.layouts) - len(self.judged)
        enough = bool(self.judged) and lost <= MOST_FAULTS * len(self.layouts)
        return enough and not self.is_wild and not self.is_still

    @property
    def is_wild(self) -> bool:
        """True if every outcome is a wild action, a sign that the policy's conventions differ from the task's."""
        return all(one.reason == Reason.WILD_ACTION for one in self.judged)

    @property
    def is_still(self) -> bool:
        """True if no action moved an arm; the success rate is then meaningless."""
        return bool(self.judged) and all(one.phase == STILL for one in self.judged)

    @property
    def why_invalid(self) -> str:
        """Return the reason why the result is invalid; empty if it is valid."""
        if self.is_valid:
            return ""
        if self.judged and self.is_wild:
            return "every layout ended with a wild action; the policy must answer absolute positions in rad and m"
        if self.is_still:
            return "no action moved an arm; the policy must answer absolute target positions, not the current positions"
        return f"more than {MOST_FAULTS:.0%} of the layouts have no outcome"

    @property
    def measures(self) -> EpisodeMeasures:
        """Return the largest value of each measure over all outcomes, and the sum of the clipped actions."""
        return EpisodeMeasures.over(one.measures for one in self.judged)

    @property
    def median_steps(self) -> float:
        """Return the median length of the successful episodes [steps]; 0 without any."""
        return float(median([one.steps for one in self.judged if one.success] or [0]))

    def reasons(self) -> dict[str, int]:
        """Count failures by reason and by the robot's last activity, the most frequent first."""
        found = Counter(
            f"{one.reason} ({one.phase})" if one.phase else one.reason for one in self.judged if not one.success
        )
        return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))

    def reason_lines(self) -> dict[str, int]:
        """Count failures as :meth:`reasons` does, with the activities in words for readers."""
        found = self.reasons()
        return {
            re.sub(r"\((\w+)\)$", lambda word: f"({ACTIVITIES.get(word[1], word[1])})", key).replace("_", " "): number
            for key, number in found.items()
        }

    def wild_example(self) -> tuple[int, str]:
        """Return the commonest form of wild actions, which differ by more than numbers: count and first detail."""
        details = [one.detail for one in self.judged if one.reason == Reason.WILD_ACTION]
        forms = [re.sub(r"-?\d+\.\d+", "", detail) for detail in details]
        form, count = max(Counter(forms).items(), key=lambda entry: entry[1], default=("", 0))
        return count, details[forms.index(form)] if count else ""

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of successes and of layouts by kind of object."""
        found: dict[str, tuple[int, int]] = {}
        for one in self.judged:
            for kind in one.kinds:
                kept, tried = found.get(kind, (0, 0))
                found[kind] = kept + one.success, tried + 1
        return dict(sorted(found.items()))

    def to_text(self) -> str:
        """Encode as JSON: key figures first, without the faults that were retried."""
        low, high = self.interval
        figures = {
            "success": self.success_count,
            "of": len(self.judged),
            "rate": round(self.success_count / max(1, len(self.judged)), 4),
            "interval_95": [round(low, 4), round(high, 4)],
            "is_valid": self.is_valid,
            "reasons": self.reasons(),
            "median_steps": self.median_steps,
            "measures": self.measures,
        }
        plain = replace(self, layouts=tuple(replace(one, faults=0) for one in self.layouts))
        return to_json({"figures": figures, "evaluation": plain}, indent=1) + "\n"


def rate_text(count: int, of: int, interval: tuple[float, float]) -> str:
    """Return a success rate with its interval, such as ``7 of 10 = 70% [40%, 89%]``."""
    rate = f"{count / of:.0%}" if of else "-"
    return f"{count} of {of} = {rate} [{interval[0]:.0%}, {interval[1]:.0%}]"


def collect(folder: Path, base: Evaluation, *, indices: Iterable[int]) -> Evaluation:
    """Collect an evaluation's results from its ledger.

    Args:
        folder: Folder of the evaluation.
        base: Evaluation without layouts.
        indices: Requested layouts.
    """
    by_index: dict[int, list[Attempt]] = {}
    with closing(Ledger(folder, read_only=True)) as ledger:
        for attempt in ledger.attempts():
            by_index.setdefault(attempt.idx, []).append(attempt)
    results, spreads = [], [0.0]
    for index in (one for one in indices if one in by_index):
        attempts = by_index[index]
        last = max(attempts, key=lambda attempt: (attempt.final, attempt.attempt))
        measures = EpisodeMeasures()
        for attempt in attempts if index % ASKED_AGAIN == 0 else [last]:
            if (path := folder / (attempt.failure.path if attempt.failure else attempt.path)).is_file():
                with EpisodeFile(path) as episode:
                    measures = EpisodeMeasures.of(episode) if attempt is last else measures
                    spreads.append(_answer_spread(episode))
        results.append(_result(index, attempts, last, measures))
    return replace(base, layouts=tuple(results), is_repeatable=max(spreads) <= _SAME_ANSWER)


def _answer_spread(episode: EpisodeFile) -> float:
    """Return the difference between two answers to one observation; 0 if it was not measured."""
    if ANSWER_SPREAD not in episode.members("plan_statistics"):
        return 0.0
    return float(episode.array(f"plan_statistics/{ANSWER_SPREAD}").max())


def _result(index: int, attempts: list[Attempt], last: Attempt, measures: EpisodeMeasures) -> LayoutResult:
    return LayoutResult(
        index=index,
        success=last.success,
        reason=last.reason,
        phase=last.phase,
        detail=last.detail,
        steps=last.step_count,
        faults=sum(one.reason in FAULTS for one in attempts if one is not last),
        kinds=tuple(sorted({placed["kind"] for placed in last.objects})),
        measures=measures,
    )


def write_evaluation(folder: Path, evaluation: Evaluation) -> Path:
    """Write the results, and the faults if there are any; return the path of the results."""
    faults = {str(one.index): one.faults for one in evaluation.layouts if one.faults}
    if faults or (folder / FAULTS_NAME).exists():
        replace_text(folder / FAULTS_NAME, to_json(faults) + "\n")
    replace_text(folder / NAME, evaluation.to_text())
    return folder / NAME


def read_evaluation(folder: Path) -> Evaluation:
    """Read the results of an evaluation.

    Args:
        folder: Folder of the evaluation, or its file of results.

    Raises:
        InputError: There is no file of results, it is damaged, or it is a link out of the folder.
    """
    path = file_in(folder, NAME) if folder.is_dir() else folder
    if not path.is_file():
        raise InputError(
            "there is no evaluation", where=str(path), instead="give the folder of a 'nimbus evaluate' run"
        )
    held = read_plain(path)
    found = held.get("evaluation") if isinstance(held, dict) else None
    evaluation, beside = as_typed(Evaluation, found, where=str(path)), file_in(path.parent, FAULTS_NAME)
    if not beside.is_file():
        return evaluation
    faults = as_typed(dict[str, Count], read_plain(beside), where=str(beside))
    layouts = tuple(replace(one, faults=faults.get(str(one.index), 0)) for one in evaluation.layouts)
    return replace(evaluation, layouts=layouts)
