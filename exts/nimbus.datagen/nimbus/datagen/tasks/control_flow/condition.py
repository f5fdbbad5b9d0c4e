"""``if:`` does some steps when conditions hold, others when they do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.scope import Scope
from nimbus.datagen.tasks.steps import Composite, Performer, StepParser, Steps


@register("composite", "if")
@dataclass(frozen=True)
class If(Composite):
    """Steps that depend on the state of physics when their turn comes.

    ```yaml
    - if: {upright: cup}
      then: {push: cup}
      else: [pick: cup, place: {object: cup, on: table}]
    ```
    """

    words: ClassVar[tuple[str, ...]] = ("if", "then", "else")
    flow: ClassVar[Literal["loop", "branches", "guarded", "unknown"]] = "guarded"
    conditions: Steps
    then: Steps
    otherwise: Steps
    keys: Keys

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Read it."""
        reader.fields(keys, entry, cls.words, needed=["then"])
        conditions = replace(reader, kind="predicate").block((*keys, "if"), entry["if"])
        then = reader.block((*keys, "then"), entry["then"])
        otherwise = reader.block((*keys, "else"), entry["else"]) if "else" in entry else ()
        return cls(conditions, then, otherwise, (*keys, "if"))

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Three keys."""
        return {
            "type": "object",
            "properties": {
                "if": conditions | {"description": "Conditions, all of which must hold."},
                "then": block,
                "else": block,
            },
            "required": ["if", "then"],
            "additionalProperties": False,
        }

    def canonical(self) -> Any:
        """Plain data."""
        data = {"if": self.conditions, "then": self.then} | ({"else": self.otherwise} if self.otherwise else {})
        return {key: [step.canonical() for step in steps] for key, steps in data.items()}

    def blocks(self) -> tuple[Steps, ...]:
        """Conditions and branches."""
        return self.conditions, self.then, self.otherwise

    def perform(self, performer: Performer, scope: Scope) -> None:
        """The branch that physics chooses."""
        holds = performer.failure(self.conditions, scope) is None
        performer.do(self.then if holds else self.otherwise, scope)
