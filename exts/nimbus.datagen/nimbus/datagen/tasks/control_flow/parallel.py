"""Composite ``parallel:``: steps of several arms at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.steps import Composite, Performer, Scope, StepParser, Steps


@register("composite", "parallel")
@dataclass(frozen=True)
class Parallel(Composite):
    """Steps of each arm; the composite ends when all arms have finished.

    ```yaml
    - parallel: {left: {pick: tray}, right: [wait: 5, home]}
    ```
    """

    words: ClassVar[tuple[str, ...]] = ("parallel",)
    arms: tuple[str, ...] = field()
    bodies: tuple[Steps, ...]
    keys: Keys

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Parse an entry."""
        reader.fields(keys, entry, cls.words, needed=())
        inside, data = (*keys, "parallel"), entry["parallel"]
        if not isinstance(data, dict) or not data:
            raise reader.error(
                inside, "expected steps by the name of an arm", instead="write left: [...], right: [...]"
            )
        return cls(tuple(data), tuple(reader.block((*inside, arm), steps) for arm, steps in data.items()), inside)

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of steps by arm."""
        arms = {"type": "object", "minProperties": 1, "additionalProperties": block}
        return {
            "type": "object",
            "properties": {"parallel": arms | {"description": "Steps of several arms at the same time."}},
            "required": ["parallel"],
            "additionalProperties": False,
        }

    def canonical(self) -> Any:
        """Return plain data."""
        bodies = zip(self.arms, self.bodies, strict=True)
        return {"parallel": {arm: [step.canonical() for step in body] for arm, body in bodies}}

    def blocks(self) -> tuple[Steps, ...]:
        """Return one block per arm."""
        return self.bodies

    def perform(self, performer: Performer, scope: Scope) -> None:
        """Run the steps of all arms at the same time."""
        performer.together(dict(zip(self.arms, self.bodies, strict=True)), scope)
