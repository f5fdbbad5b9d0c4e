"""What a check found: a field of the task file, what is wrong with it, and a value that would work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import Keys, dotted

if TYPE_CHECKING:
    from nimbus.datagen.tasks.task import Task

_PLACE = re.compile(r"^(?P<place>.*?:\d+:\d+)(?:: (?P<field>.*))?$")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, or likely to go wrong."""

    check: str
    certain: bool
    """No episode can succeed: a run would be refused. Otherwise some will fail, or the data will be of less use."""
    field: str
    """``objects.items.kinds``; empty where it is about the file as a whole."""
    where: str
    """``file:line:column: field``"""
    what: str
    instead: str
    """What to write."""

    @property
    def line(self) -> str:
        """All of it, for people."""
        return str(self.error())

    def error(self) -> InputError:
        """The same as an error."""
        return InputError(self.what, where=self.where, instead=self.instead)


def make_finding(check: str, task: Task, keys: Keys, what: str, *, instead: str, certain: bool = False) -> Finding:
    """A finding about a field of a task file."""
    where = task.where(*keys)
    return Finding(check=check, certain=certain, field=dotted(keys), where=where, what=what, instead=instead)


def finding_from_error(check: str, error: InputError) -> Finding:
    """What an error says, as a finding that is certain."""
    match = _PLACE.match(error.where)
    field = (match["field"] or "") if match else ""
    return Finding(check=check, certain=True, field=field, where=error.where, what=error.what, instead=error.instead)
