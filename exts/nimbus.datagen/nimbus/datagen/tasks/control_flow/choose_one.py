"""``choose item in items:`` does steps for one object of a group, drawn for the episode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from nimbus.datagen.registry import register
from nimbus.datagen.tasks.control_flow.members import OverMembers
from nimbus.datagen.tasks.scope import Scope
from nimbus.datagen.tasks.steps import Step, Steps


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
