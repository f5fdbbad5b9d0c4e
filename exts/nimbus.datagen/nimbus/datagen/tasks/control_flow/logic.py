"""``any:``, ``all:`` and ``not:`` put conditions together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.scope import Scope
from nimbus.datagen.tasks.steps import Composite, Performer, Step, StepParser, Steps


@dataclass(frozen=True)
class _Logic(Composite):
    """Conditions under one word."""

    kinds: ClassVar[tuple[str, ...]] = ("predicate",)
    inside: Steps
    keys: Keys

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Read it."""
        (word,) = cls.words
        reader.fields(keys, entry, cls.words, needed=())
        return cls(reader.block((*keys, word), entry[word]), (*keys, word))

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """One key."""
        (word,) = cls.words
        described = conditions | {"description": (cls.__doc__ or "").strip()}
        return {"type": "object", "properties": {word: described}, "required": [word], "additionalProperties": False}

    def canonical(self) -> Any:
        """Plain data."""
        return {self.words[0]: [step.canonical() for step in self.inside]}

    def blocks(self) -> tuple[Steps, ...]:
        """The conditions."""
        return (self.inside,)


@register("composite", "any")
class AnyOf(_Logic):
    """At least one of the conditions holds."""

    words: ClassVar[tuple[str, ...]] = ("any",)

    def failure(self, performer: Performer, scope: Scope) -> Outcome | None:
        """All of them fail: the reason of the first, the details of all."""
        failures = []
        for condition in self.inside:
            failure = performer.failure((condition,), scope)
            if failure is None:
                return None
            failures.append(failure)
        return replace(failures[0], detail="; ".join(failure.detail for failure in failures))


@register("composite", "all")
class AllOf(_Logic):
    """All of the conditions hold."""

    words: ClassVar[tuple[str, ...]] = ("all",)

    def failure(self, performer: Performer, scope: Scope) -> Outcome | None:
        """The first that fails."""
        return performer.failure(self.inside, scope)


@register("composite", "not")
class Not(_Logic):
    """The conditions do not all hold."""

    words: ClassVar[tuple[str, ...]] = ("not",)

    def failure(self, performer: Performer, scope: Scope) -> Outcome | None:
        """All of them hold."""
        if performer.failure(self.inside, scope) is not None:
            return None
        said = " and ".join(" ".join(_said(part)) for part in self.inside)
        return Outcome(success=False, phase=f"not {said}", reason=Reason.UNWANTED, detail=f"{said}: it must not be so")


def _said(part: Step | Composite) -> list[str]:
    return [part.name, part.target] if isinstance(part, Step) else [part.words[0] if part.words else "for"]
