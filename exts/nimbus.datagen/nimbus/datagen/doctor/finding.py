"""Diagnostics about fields of a task file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nimbus.datagen.errors import Diagnostic, InputError, Severity

if TYPE_CHECKING:
    from nimbus.datagen.files.strict_yaml import Keys
    from nimbus.datagen.tasks.task import Task


def make_finding(check: str, task: Task, keys: Keys, what: str, *, instead: str, certain: bool = False) -> Diagnostic:
    """Make a diagnostic about a field of a task file; ``certain`` where no episode can succeed."""
    severity = Severity.FAIL if certain else Severity.WARN
    return Diagnostic(check=check, severity=severity, where=task.where(*keys), what=what, instead=instead)


def finding_from_error(check: str, error: InputError) -> Diagnostic:
    """Make a diagnostic of an error, for a check that it ended."""
    return replace(error.diagnostic, check=check)
