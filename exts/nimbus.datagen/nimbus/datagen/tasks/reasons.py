"""Reasons of failures that skills and conditions may have: those of Nimbus, and those that plug-ins declare."""

from __future__ import annotations

import inspect

from nimbus.datagen import registry
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError, suggest


def known_reasons() -> list[str]:
    """Return the reasons of Nimbus, then those that registered skills and conditions declare as ``fails_with``."""
    own = (
        reason
        for kind in ("skill", "predicate")
        for name in registry.names(kind)
        for reason in registry.lookup(kind, name).fails_with
    )
    return list(dict.fromkeys((*(str(reason) for reason in Reason if reason is not Reason.NONE), *own)))


def check_reason(reason: Reason, *, kind: str, name: str, where: str = "") -> None:
    """Check the reason of a failure of a skill or a condition.

    Args:
        reason: The reason.
        kind: ``skill`` or ``predicate``.
        name: Registered name.
        where: File and line at which it failed; by default the file of the class.

    Raises:
        InputError: The reason is not known.
    """
    if reason in (known := known_reasons()) or reason is Reason.NONE:
        return
    model = registry.lookup(kind, name)
    what = f"{kind} '{name}' fails with the undeclared reason '{reason}'"
    instead = f'write fails_with = ("{reason}",) in class {model.__name__}; {suggest(str(reason), known)}'
    raise InputError(what, where=where or inspect.getsourcefile(model) or model.__module__, instead=instead)
