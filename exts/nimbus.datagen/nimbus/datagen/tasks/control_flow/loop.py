"""``for item in items:`` does steps once for each object of a group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from nimbus.datagen.registry import register
from nimbus.datagen.tasks.control_flow.members import OverMembers
from nimbus.datagen.tasks.scope import Scope


@register("composite", "for")
@dataclass(frozen=True)
class Loop(OverMembers):
    """Steps done, or conditions that hold, for each member of a group in turn."""

    word: ClassVar[str] = "for"

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """One a member."""
        return (scope.bind(self.variable, member) for member in scope.members(self.group))
