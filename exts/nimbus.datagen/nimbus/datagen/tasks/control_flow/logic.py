"""Composite ``if:`` of steps, and composites ``any:``, ``all:`` and ``not:`` of conditions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.steps import Composite, Judge, Performer, Scope, Step, StepParser, Steps


@dataclass(frozen=True)
class _Logic(Composite):
    """Conditions under one keyword."""

    kinds: ClassVar[tuple[str, ...]] = ("predicate",)
    inside: Steps
    keys: Keys

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Parse an entry."""
        (word,) = cls.words
        reader.fields(keys, entry, cls.words, needed=())
        return cls(reader.block((*keys, word), entry[word]), (*keys, word))

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of an entry with one key."""
        (word,) = cls.words
        described = conditions | {"description": (cls.__doc__ or "").strip()}
        return {"type": "object", "properties": {word: described}, "required": [word], "additionalProperties": False}

    def canonical(self) -> Any:
        """Return plain data."""
        return {self.words[0]: [step.canonical() for step in self.inside]}

    def blocks(self) -> tuple[Steps, ...]:
        """Return the conditions."""
        return (self.inside,)


@register("composite", "any")
class AnyOf(_Logic):
    """At least one of the conditions holds."""

    words: ClassVar[tuple[str, ...]] = ("any",)

    def failure(self, judge: Judge, scope: Scope) -> Outcome | None:
        """Return the first condition's reason with all details, if all conditions fail."""
        failures = []
        for condition in self.inside:
            failure = judge.failure((condition,), scope)
            if failure is None:
                return None
            failures.append(failure)
        return replace(failures[0], detail="; ".join(failure.detail for failure in failures))


@register("composite", "all")
class AllOf(_Logic):
    """All of the conditions hold."""

    words: ClassVar[tuple[str, ...]] = ("all",)

    def failure(self, judge: Judge, scope: Scope) -> Outcome | None:
        """Return the first failure."""
        return judge.failure(self.inside, scope)


@register("composite", "not")
class Not(_Logic):
    """The conditions do not all hold."""

    words: ClassVar[tuple[str, ...]] = ("not",)

    def failure(self, judge: Judge, scope: Scope) -> Outcome | None:
        """Return a failure if all conditions hold."""
        if judge.failure(self.inside, scope) is not None:
            return None
        said = " and ".join(" ".join(_said(part)) for part in self.inside)
        return Outcome(success=False, phase=f"not {said}", reason=Reason.UNWANTED, detail=f"{said}: it must not be so")


def _said(part: Step | Composite) -> list[str]:
    return [part.name, part.target] if isinstance(part, Step) else [part.words[0] if part.words else "for"]


@register("composite", "if")
@dataclass(frozen=True)
class If(Composite):
    """Steps that depend on the state of physics when they are reached.

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
        """Parse an entry."""
        reader.fields(keys, entry, cls.words, needed=["then"])
        conditions = replace(reader, kind="predicate").block((*keys, "if"), entry["if"])
        then = reader.block((*keys, "then"), entry["then"])
        otherwise = reader.block((*keys, "else"), entry["else"]) if "else" in entry else ()
        return cls(conditions, then, otherwise, (*keys, "if"))

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of an entry with three keys."""
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
        """Return plain data."""
        data = {"if": self.conditions, "then": self.then} | ({"else": self.otherwise} if self.otherwise else {})
        return {key: [step.canonical() for step in steps] for key, steps in data.items()}

    def blocks(self) -> tuple[Steps, ...]:
        """Return conditions and branches."""
        return self.conditions, self.then, self.otherwise

    def perform(self, performer: Performer, scope: Scope) -> None:
        """Run the branch selected by the conditions."""
        holds = performer.failure(self.conditions, scope) is None
        performer.do(self.then if holds else self.otherwise, scope)
