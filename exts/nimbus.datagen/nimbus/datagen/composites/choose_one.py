"""``choose item in items:`` does steps for one object of a group, drawn for the episode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from nimbus.datagen.execute.perform import Performer
from nimbus.datagen.registry import register
from nimbus.datagen.scope import Scope
from nimbus.datagen.steps import Composite, Reader, Step, Steps
from nimbus.datagen.strict_yaml import Keys
from nimbus.datagen.trajectory import Outcome

_FORM = r"choose\s+([A-Za-z_]\w*)\s+in\s+([A-Za-z_]\w*)"


@register("composite", "choose_one")
@dataclass(frozen=True)
class ChooseOne(Composite):
    """One member of a group gets a name. The same words lead to the same member, in the steps and in the conditions."""

    kinds: ClassVar[tuple[str, ...]] = ("skill", "predicate")
    flow: ClassVar[Literal["loop", "branches", "guarded", "unknown"]] = "loop"
    variable: str = field()
    group: str = field()
    body: Steps
    keys: Keys

    @classmethod
    def claims(cls, entry: Any) -> bool:
        """Whether its only key is ``choose … in …``."""
        return isinstance(entry, dict) and len(entry) == 1 and bool(re.fullmatch(_FORM, next(iter(entry)).strip()))

    @classmethod
    def parse(cls, reader: Reader, keys: Keys, entry: Any) -> Self:
        """Read it."""
        ((key, value),) = entry.items()
        match = re.fullmatch(_FORM, key.strip())
        assert match
        return cls(match[1], match[2], reader.steps((*keys, key), value), (*keys, key))

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """One key of that form."""
        return {
            "type": "object",
            "patternProperties": {f"^{_FORM}$": block},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }

    def canonical(self) -> Any:
        """Plain data."""
        return {f"choose {self.variable} in {self.group}": [step.canonical() for step in self.body]}

    def blocks(self) -> tuple[Steps, ...]:
        """The body."""
        return (self.body,)

    def _address(self, scope: Scope) -> str:
        return scope.address(f"{self.variable} in {self.group}")

    def draws(self, scope: Scope) -> tuple[str, list[float]] | None:
        """Which member; each is as likely."""
        count = len(scope.members(self.group))
        return (self._address(scope), [1.0] * count) if count else None

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """The one that was drawn."""
        if members := scope.members(self.group):
            yield scope.bind(self.variable, members[scope.choices[self._address(scope)]])

    def perform(self, performer: Performer, scope: Scope) -> None:
        """The body for that member."""
        for inner in self.scopes(scope):
            performer.do(self.body, inner)

    def failure(self, performer: Performer, scope: Scope) -> Outcome | None:
        """A condition that does not hold for that member."""
        return next(filter(None, (performer.failure(self.body, inner) for inner in self.scopes(scope))), None)


def chosen_names(steps: Steps) -> dict[str, str]:
    """Names that are given once in an episode, outside every loop, and the groups that they are chosen from."""
    names: dict[str, str] = {}
    for step in steps:
        if isinstance(step, Step) or (step.variable and not isinstance(step, ChooseOne)):
            continue
        if isinstance(step, ChooseOne):
            names[step.variable] = step.group
            continue  # what is chosen inside has an address of its own for each member
        for block in step.blocks():
            names |= chosen_names(block)
    return names
