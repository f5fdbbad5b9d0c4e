"""Composite ``try:``: steps, and recoveries that run after failures, up to a given number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import suggest
from nimbus.datagen.files.strict_yaml import Keys
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.reasons import known_reasons
from nimbus.datagen.tasks.statements import GivenUp, SkillFailure
from nimbus.datagen.tasks.steps import Composite, Performer, Scope, StepParser, Steps


@dataclass(frozen=True)
class RecoveryBranch:
    """Steps to run after a failure with certain reasons, or with any reason."""

    reasons: tuple[str, ...]
    steps: Steps

    def canonical(self) -> Any:
        """Return plain data."""
        on = {"on": list(self.reasons)} if self.reasons else {}
        return on | {"do": [step.canonical() for step in self.steps]}


@register("composite", "try")
@dataclass(frozen=True)
class Try(Composite):
    """Steps, and recoveries for failures of the skills in them.

    After the first failure, the first recovery for its reason runs; after a further failure the next one, and so on in
    a cycle. When a recovery succeeds, the composite succeeds. ``retry`` in a recovery repeats the tried steps.

    ```yaml
    - try: {pick: cup}
      recover: [home, retry]
    - try: [pick: cup, place: {object: cup, into: tray}]
      recover:
        - {on: [missed_grasp, slipped_at_lift], do: [home, retry]}
        - give_up
      at_most: 3
    ```
    """

    words: ClassVar[tuple[str, ...]] = ("try", "recover", "at_most")
    body: Steps
    recoveries: tuple[RecoveryBranch, ...]
    count: int
    keys: Keys

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Parse an entry."""
        reader.fields(keys, entry, cls.words, needed=["recover"])
        body = reader.block((*keys, "try"), entry["try"])
        inside, data = (*keys, "recover"), entry["recover"]
        recovering = replace(reader, recovering=True)
        if isinstance(data, tuple) and any(isinstance(part, tuple) or _is_selective(part) for part in data):
            recoveries = tuple(_recovery(recovering, (*inside, index), part) for index, part in enumerate(data))
        else:
            recoveries = (_recovery(recovering, inside, data),)
        count = reader.count((*keys, "at_most"), entry["at_most"]) if "at_most" in entry else len(recoveries)
        return cls(body, recoveries, count, (*keys, "try"))

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of an entry with three keys."""
        reason = {"enum": known_reasons()}
        reasons = {"anyOf": [reason, {"type": "array", "minItems": 1, "items": reason}]}
        selective = {
            "type": "object",
            "properties": {"on": reasons, "do": block},
            "required": ["do"],
            "additionalProperties": False,
        }
        several = {"type": "array", "minItems": 1, "items": {"anyOf": [block, selective]}}
        return {
            "type": "object",
            "properties": {
                "try": block,
                "recover": {"anyOf": [block, selective, several], "description": "Steps after a failure."},
                "at_most": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "required": ["try", "recover"],
            "additionalProperties": False,
        }

    def canonical(self) -> Any:
        """Return plain data."""
        return {
            "try": [step.canonical() for step in self.body],
            "recover": [recovery.canonical() for recovery in self.recoveries],
            "at_most": self.count,
        }

    def blocks(self) -> tuple[Steps, ...]:
        """Return body and recoveries."""
        return self.body, *(recovery.steps for recovery in self.recoveries)

    def perform(self, performer: Performer, scope: Scope) -> None:
        """Run the body, and a recovery after each failure."""
        failure, turn = performer.attempt(self.body, scope), 0
        for _ in range(self.count):
            if failure is None:
                return
            circle = (*self.recoveries[turn:], *self.recoveries[:turn])
            fit = [recovery for recovery in circle if not recovery.reasons or failure.reason in recovery.reasons]
            if not fit:
                break
            turn = self.recoveries.index(fit[0]) + 1
            performer.regain()
            failure = performer.attempt(fit[0].steps, replace(scope, tried=self.body, reason=failure))
        if failure is not None:
            raise failure


def _is_selective(part: Any) -> bool:
    return isinstance(part, dict) and "do" in part


def _recovery(reader: StepParser, keys: Keys, data: Any) -> RecoveryBranch:
    if not _is_selective(data):
        return RecoveryBranch((), reader.block(keys, data))
    reader.fields(keys, data, ("on", "do"), needed=())
    reasons = data.get("on", ())
    reasons = reasons if isinstance(reasons, tuple) else (reasons,)
    known = known_reasons()
    for reason in reasons:
        if reason not in known:
            raise reader.error((*keys, "on"), f"unknown reason '{reason}'", instead=suggest(str(reason), known))
    return RecoveryBranch(reasons, reader.block((*keys, "do"), data["do"]))


class _Word(Composite):
    """Composite of a single word."""

    @classmethod
    def claims(cls, entry: Any) -> bool:
        """Return True if an entry is the word."""
        return entry == cls.words[0]

    @classmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the word."""
        return {"const": cls.words[0]}

    def canonical(self) -> Any:
        """Return plain data."""
        return self.words[0]

    def blocks(self) -> tuple[Steps, ...]:
        """Return no blocks."""
        return ()


@register("composite", "retry")
@dataclass(frozen=True)
class Retry(_Word):
    """Repetition of the tried steps, in a recovery."""

    words: ClassVar[tuple[str, ...]] = ("retry",)
    keys: Keys

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Parse an entry."""
        if not reader.recovering:
            raise reader.error(keys, "'retry' is only allowed in 'recover:'")
        return cls(keys)

    def perform(self, performer: Performer, scope: Scope) -> None:
        """Run the tried steps."""
        performer.do(scope.tried, scope)


@register("composite", "give_up")
@dataclass(frozen=True)
class GiveUp(_Word):
    """End of the attempt; in a recovery, the attempt fails with the reason of the failure before it."""

    words: ClassVar[tuple[str, ...]] = ("give_up",)
    keys: Keys

    @classmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Parse an entry."""
        return cls(keys)

    def perform(self, performer: Performer, scope: Scope) -> None:
        """Raise a failure without further recoveries."""
        last: SkillFailure | None = scope.reason
        raise GivenUp(last.reason if last else Reason.GIVEN_UP, last.detail if last else "as the steps say")
