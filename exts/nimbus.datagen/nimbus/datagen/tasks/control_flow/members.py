"""Composites over members of a group: ``<word> item in items:`` and its body."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from nimbus.datagen.episode.trajectory import Outcome
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.steps import Composite, Judge, Performer, Scope, Step, StepParser, Steps


@dataclass(frozen=True)
class OverMembers(Composite):
    """Composite that runs its body for members of a group, each bound to a name; ``scopes`` selects the members."""

    word: ClassVar[str]
    """First word of its key."""
    kinds: ClassVar[tuple[str, ...]] = ("skill", "predicate")
    flow: ClassVar[Literal["loop", "branches", "guarded", "unknown"]] = "loop"
    variable: str = ""
    group: str = ""
    body: Steps = ()
    keys: Keys = ()

    @classmethod
    def _form(cls) -> str:
        return rf"{cls.word}\s+([A-Za-z_]\w*)\s+in\s+([A-Za-z_]\w*)"

    @classmethod
    def claims(cls, entry: Any) -> bool:
        """Return True if an entry has a single key of this form."""
        return (
            isinstance(entry, dict) and len(entry) == 1 and bool(re.fullmatch(cls._form(), next(iter(entry)).strip()))
        )

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Parse an entry."""
        ((key, value),) = entry.items()
        match = re.fullmatch(cls._form(), key.strip())
        assert match
        return cls(match[1], match[2], reader.steps((*keys, key), value), (*keys, key))

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of an entry with one key of this form."""
        return {
            "type": "object",
            "patternProperties": {f"^{cls._form()}$": block},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }

    def canonical(self) -> Any:
        """Return plain data."""
        return {f"{self.word} {self.variable} in {self.group}": [step.canonical() for step in self.body]}

    def blocks(self) -> tuple[Steps, ...]:
        """Return the body."""
        return (self.body,)

    @abstractmethod
    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """Yield a scope for each member that the body runs for."""

    def perform(self, performer: Performer, scope: Scope) -> None:
        """Run the body for each member."""
        for inner in self.scopes(scope):
            performer.do(self.body, inner)

    def failure(self, judge: Judge, scope: Scope) -> Outcome | None:
        """Return the first failure of a condition for one of the members."""
        return next(filter(None, (judge.failure(self.body, inner) for inner in self.scopes(scope))), None)


@register("composite", "choose_one")
@dataclass(frozen=True)
class ChooseOne(OverMembers):
    """One drawn member of a group, bound to a name. The same text selects the same member in steps and conditions."""

    word: ClassVar[str] = "choose"

    def _address(self, scope: Scope) -> str:
        return scope.address(f"{self.variable} in {self.group}")

    def draws(self, scope: Scope) -> tuple[str, list[float]] | None:
        """Return the address and equal weights of the members."""
        count = len(scope.members(self.group))
        return (self._address(scope), [1.0] * count) if count else None

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """Yield the scope of the drawn member."""
        if members := scope.members(self.group):
            yield scope.bind(self.variable, members[scope.choice(self._address(scope), len(members))])


def chosen_names(steps: Steps) -> dict[str, str]:
    """Return the names that are chosen once per episode, outside every loop, with the groups of their members."""
    names: dict[str, str] = {}
    for step in steps:
        if isinstance(step, Step) or (step.variable and not isinstance(step, ChooseOne)):
            continue
        if isinstance(step, ChooseOne):
            names[step.variable] = step.group
            continue  # a choice inside a loop is drawn for each member
        for block in step.blocks():
            names |= chosen_names(block)
    return names


@register("composite", "for")
@dataclass(frozen=True)
class Loop(OverMembers):
    """Steps, or conditions, for each member of a group in turn."""

    word: ClassVar[str] = "for"

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """Yield one scope per member."""
        return (scope.bind(self.variable, member) for member in scope.members(self.group))
