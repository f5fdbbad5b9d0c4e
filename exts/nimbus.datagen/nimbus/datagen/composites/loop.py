"""``for item in items:`` does steps once for each object of a group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from nimbus.datagen.execute.perform import Performer
from nimbus.datagen.references import LOOP, parse_loop
from nimbus.datagen.registry import register
from nimbus.datagen.scope import Scope
from nimbus.datagen.steps import Composite, Reader, Steps
from nimbus.datagen.strict_yaml import Keys
from nimbus.datagen.trajectory import Outcome


@register("composite", "for")
@dataclass(frozen=True)
class Loop(Composite):
    """Steps done, or conditions that hold, for each member of a group in turn."""

    kinds: ClassVar[tuple[str, ...]] = ("skill", "predicate")
    flow: ClassVar[Literal["loop", "branches", "guarded", "unknown"]] = "loop"
    variable: str = field()
    group: str = field()
    body: Steps
    keys: Keys

    @classmethod
    def claims(cls, entry: Any) -> bool:
        """Whether its only key is ``for … in …``."""
        return isinstance(entry, dict) and len(entry) == 1 and parse_loop(next(iter(entry))) is not None

    @classmethod
    def parse(cls, reader: Reader, keys: Keys, entry: Any) -> Self:
        """Read it."""
        ((key, value),) = entry.items()
        inside = (*keys, key)
        match = re.fullmatch(LOOP, key.strip())
        assert match
        return cls(match[1], match[2], reader.steps(inside, value), inside)

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """One key of that form."""
        return {
            "type": "object",
            "patternProperties": {f"^{LOOP}$": block},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }

    def canonical(self) -> Any:
        """Plain data."""
        return {f"for {self.variable} in {self.group}": [step.canonical() for step in self.body]}

    def blocks(self) -> tuple[Steps, ...]:
        """The body."""
        return (self.body,)

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """One a member."""
        return (scope.bind(self.variable, member) for member in scope.members(self.group))

    def perform(self, performer: Performer, scope: Scope) -> None:
        """The body for each member."""
        for inner in self.scopes(scope):
            performer.do(self.body, inner)

    def failure(self, performer: Performer, scope: Scope) -> Outcome | None:
        """The first member for which a condition does not hold."""
        return next(filter(None, (performer.failure(self.body, inner) for inner in self.scopes(scope))), None)
