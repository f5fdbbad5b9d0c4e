"""Composite ``repeat:``: steps repeated until conditions hold, or a number of times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.datagen.tasks.steps import Composite, Performer, Scope, StepParser, Steps

_AT_MOST = 10


@register("composite", "repeat")
@dataclass(frozen=True)
class Repeat(Composite):
    """Steps that run once, and then again until the conditions hold.

    If the conditions never hold, the attempt fails with their reason.

    ```yaml
    - repeat: [push: cup]
      until: {near: {object: cup, to: plate}}
      at_most: 5
    - repeat: [shake: cup]
      times: 3
    ```
    """

    words: ClassVar[tuple[str, ...]] = ("repeat", "until", "at_most", "times")
    flow: ClassVar[Literal["loop", "branches", "guarded", "unknown"]] = "loop"
    body: Steps
    until: Steps
    count: int
    keys: Keys

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Parse an entry."""
        reader.fields(keys, entry, cls.words, needed=())
        if ("until" in entry) == ("times" in entry) or ("at_most" in entry and "times" in entry):
            instead = "write 'until:' with conditions and perhaps 'at_most:', or 'times:' with a number"
            raise reader.error((*keys, "repeat"), "the number of repetitions is missing", instead=instead, at_key=True)
        body = reader.block((*keys, "repeat"), entry["repeat"])
        if "times" in entry:
            return cls(body, (), reader.count((*keys, "times"), entry["times"]), (*keys, "repeat"))
        until = replace(reader, kind="predicate").block((*keys, "until"), entry["until"])
        count = reader.count((*keys, "at_most"), entry["at_most"]) if "at_most" in entry else _AT_MOST
        return cls(body, until, count, (*keys, "repeat"))

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of an entry with ``until`` or ``times``."""
        count = {"type": "integer", "minimum": 1, "maximum": 100}
        repeat = block | {"description": "Steps to repeat."}
        until = {"repeat": repeat, "until": conditions, "at_most": count | {"default": _AT_MOST}}
        forms = [(until, "until"), ({"repeat": repeat, "times": count}, "times")]
        return {
            "anyOf": [
                {"type": "object", "properties": form, "required": ["repeat", needed], "additionalProperties": False}
                for form, needed in forms
            ]
        }

    def canonical(self) -> Any:
        """Return plain data."""
        body = {"repeat": [step.canonical() for step in self.body]}
        if not self.until:
            return body | {"times": self.count}
        return body | {"until": [step.canonical() for step in self.until], "at_most": self.count}

    def blocks(self) -> tuple[Steps, ...]:
        """Return body and conditions."""
        return self.body, self.until

    def perform(self, performer: Performer, scope: Scope) -> None:
        """Run the body until the conditions hold."""
        failure = None
        for _ in range(self.count):
            performer.do(self.body, scope)
            if self.until and (failure := performer.failure(self.until, scope)) is None:
                return
        if failure is not None:
            raise SkillFailure(failure.reason, f"after {self.count} times: {failure.detail}")
