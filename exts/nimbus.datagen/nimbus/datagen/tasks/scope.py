"""What names stand for while steps are done, and what was drawn for the episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nimbus.datagen.files.strict_yaml import Keys, dotted
from nimbus.datagen.tasks.references import GroupRef


@dataclass(frozen=True)
class Scope:
    """Names at one place of the steps."""

    names: Mapping[str, Any]
    """What they stand for, from ``references.environment`` and the loops around."""
    choices: Mapping[str, int] = field(default_factory=dict)
    """What was drawn for the episode, by address."""
    inside: tuple[str, ...] = ()
    """Names of what the loops around are at, outermost first."""
    tried: Any = ()
    """In a recovery: the steps that failed."""
    reason: Any = None
    """In a recovery: their failure."""

    def bind(self, variable: str, member: Any) -> Scope:
        """With a further name."""
        return replace(self, names={**self.names, variable: member}, inside=(*self.inside, member.name))

    def members(self, group: str) -> tuple[Any, ...]:
        """Members of a group; a group that has none in this episode is empty."""
        found = self.names.get(group, GroupRef(group, ()))
        return found.members if isinstance(found, GroupRef) else (found,)

    def address(self, keys: Keys | str) -> str:
        """Of a draw: its place in the file or its words, and what the loops around are at."""
        return " ".join((keys if isinstance(keys, str) else dotted(keys), *self.inside))
