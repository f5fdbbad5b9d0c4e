"""Steps and conditions about members of a group: ``<word> item in items:`` and what is to be done with them."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from nimbus.datagen.episode.trajectory import Outcome
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.tasks.scope import Scope
from nimbus.datagen.tasks.steps import Composite, Performer, StepParser, Steps


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

    def failure(self, performer: Performer, scope: Scope) -> Outcome | None:
        """The first condition that does not hold for one of them."""
        return next(filter(None, (performer.failure(self.body, inner) for inner in self.scopes(scope))), None)
