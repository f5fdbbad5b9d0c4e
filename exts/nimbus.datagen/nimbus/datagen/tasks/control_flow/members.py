"""Steps and conditions about members of a group: ``<word> item in items:`` and what is to be done with them."""

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
    """Gives members of a group a name, one after the other, and does its body for each; ``scopes`` says for which."""

    word: ClassVar[str]
    """What its key begins with."""
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
        """Whether its only key is of that form."""
        return (
            isinstance(entry, dict) and len(entry) == 1 and bool(re.fullmatch(cls._form(), next(iter(entry)).strip()))
        )

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Read it."""
        ((key, value),) = entry.items()
        match = re.fullmatch(cls._form(), key.strip())
        assert match
        return cls(match[1], match[2], reader.steps((*keys, key), value), (*keys, key))

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """One key of that form."""
        return {
            "type": "object",
            "patternProperties": {f"^{cls._form()}$": block},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }

    def canonical(self) -> Any:
        """Plain data."""
        return {f"{self.word} {self.variable} in {self.group}": [step.canonical() for step in self.body]}

    def blocks(self) -> tuple[Steps, ...]:
        """The body."""
        return (self.body,)

    @abstractmethod
    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """The names inside it, once for each member that its body is done for."""

    def perform(self, performer: Performer, scope: Scope) -> None:
        """The body for each."""
        for inner in self.scopes(scope):
            performer.do(self.body, inner)

    def failure(self, judge: Judge, scope: Scope) -> Outcome | None:
        """The first condition that does not hold for one of them."""
        return next(filter(None, (judge.failure(self.body, inner) for inner in self.scopes(scope))), None)


@register("composite", "choose_one")
@dataclass(frozen=True)
class ChooseOne(OverMembers):
    """One member of a group gets a name. The same words lead to the same member, in the steps and in the conditions."""

    word: ClassVar[str] = "choose"

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


@register("composite", "for")
@dataclass(frozen=True)
class Loop(OverMembers):
    """Steps done, or conditions that hold, for each member of a group in turn."""

    word: ClassVar[str] = "for"

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """One a member."""
        return (scope.bind(self.variable, member) for member in scope.members(self.group))
