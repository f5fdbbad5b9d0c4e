"""Composite ``choose:``: one of several branches, drawn for each episode with weights."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.steps import Composite, Performer, Scope, StepParser, Steps

_ROUNDED = 1e-7
_WEIGHT = r"(\d+(?:\.\d+)?)\s*(%?)"


@register("composite", "choose")
@dataclass(frozen=True)
class Choose(Composite):
    """One of several branches, the same in every attempt at an episode.

    ```yaml
    - choose: [home, wait: 5]               # equally likely
    - choose:
        - 70 %: {place: {object: cup, into: tray}}
        - 30 %: [place: {object: cup, into: bin}, home]
    ```
    """

    words: ClassVar[tuple[str, ...]] = ("choose",)
    flow: ClassVar[Literal["loop", "branches", "guarded", "unknown"]] = "branches"
    branches: tuple[Steps, ...]
    weights: tuple[float, ...] | None
    keys: Keys

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Parse an entry."""
        reader.fields(keys, entry, cls.words, needed=())
        inside, entries = (*keys, "choose"), entry["choose"]
        if not isinstance(entries, tuple) or len(entries) < 2:
            raise reader.error(inside, "expected a list of two branches or more", instead="write [home, wait: 5]")
        weighed = [_weight(branch) for branch in entries]
        if any(weighed) and not all(weighed):
            raise reader.error(
                inside, "some branches have a weight and some have none", instead="give all branches a weight, or none"
            )
        branches = []
        for index, (branch, weight) in enumerate(zip(entries, weighed, strict=True)):
            place = (*inside, index)
            if weight:
                ((key, branch),) = branch.items()
                place = (*place, key)
            branches.append(reader.block(place, branch))
        return cls(tuple(branches), cls._weights(reader, inside, entries, weighed), inside)

    @classmethod
    def _weights(cls, reader: StepParser, keys: Keys, entries: Any, weighed: list[Any]) -> tuple[float, ...] | None:
        if not all(weighed):
            return None
        values = [float(match[1]) for match in weighed]
        if not all(values):
            raise reader.error(keys, "a branch of weight 0 is never taken", instead="leave it out")
        shares = [bool(match[2]) for match in weighed]
        if any(shares) and (not all(shares) or not math.isclose(sum(values), 100)):
            what = (
                f"the weights add up to {sum(values):g} %" if all(shares) else "some weights are in % and some are not"
            )
            raise reader.error(keys, what, instead="make them add up to 100 %, or write numbers such as 2 and 1")
        total = sum(values)
        # Weights that already add up to 1, apart from rounding, are kept, so a task that is written and read back does
        # not change.
        return tuple(values) if abs(total - 1.0) < _ROUNDED else tuple(value / total for value in values)

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of branches, all or none of them weighted."""
        weighed = {
            "type": "object",
            "patternProperties": {f"^{_WEIGHT}$": block},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }
        lists = [{"type": "array", "minItems": 2, "items": items} for items in (block, weighed)]
        return {
            "type": "object",
            "properties": {"choose": {"anyOf": lists, "description": "One of these branches, drawn for the episode."}},
            "required": ["choose"],
            "additionalProperties": False,
        }

    def canonical(self) -> Any:
        """Return plain data."""
        branches: list[Any] = [[step.canonical() for step in branch] for branch in self.branches]
        if self.weights is None:
            return {"choose": branches}
        weights = [f"{weight:.9f}" for weight in self.weights]
        return {"choose": [{weight: branch} for weight, branch in zip(weights, branches, strict=True)]}

    def blocks(self) -> tuple[Steps, ...]:
        """Return the branches."""
        return self.branches

    def draws(self, scope: Scope) -> tuple[str, list[float]]:
        """Return the address of the choice and its weights."""
        weights = self.weights or [1.0] * len(self.branches)
        return scope.address(self.keys), [weight / sum(weights) for weight in weights] if self.weights else list(
            weights
        )

    def perform(self, performer: Performer, scope: Scope) -> None:
        """Run the drawn branch."""
        performer.do(self.branches[scope.choice(scope.address(self.keys), len(self.branches))], scope)


def _weight(branch: Any) -> re.Match[str] | None:
    """Match the weight at the beginning of a branch."""
    return re.fullmatch(_WEIGHT, next(iter(branch)).strip()) if isinstance(branch, dict) and len(branch) == 1 else None
