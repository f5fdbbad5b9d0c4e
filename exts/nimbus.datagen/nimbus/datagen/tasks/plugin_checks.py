"""What a file with somebody's own skills and components must be, and what is said of one that is not."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic import PydanticSchemaGenerationError

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.tasks.plugin_origin import find_user_frame
from nimbus.datagen.tasks.statements import Predicate, Skill

_BASES = {"skill": Skill, "predicate": Predicate}
_ANOTHER_NAME = "give yours another name"
_TYPES = (
    "write ObjectReference, Metres, Radians, float, int, bool, Literal[…] or the like, or ClassVar for no parameter"
)


def check_new(components: Collection[tuple[str, str]], *, path: Path) -> None:
    """Check what a file has registered.

    Raises:
        InputError: That is nothing, of no kind that there is, or cannot be used.
    """
    if not components:
        instead = 'put @register("skill", "name") before its class, or begin the file\'s name with _'
        raise InputError("registers nothing", where=str(path), instead=instead)
    words = {word for kind, name in registry.registered() if kind == "composite" for word in _words(name)}
    for kind, name in sorted(components):
        component = registry.lookup(kind, name)
        where = _place(component, path)
        if not set(kind.split("+")) <= set(registry.KINDS):  # several stages may be done as one
            raise InputError(
                f"'{name}' is of unknown kind '{kind}'", where=where, instead=suggest(kind, registry.KINDS)
            )
        if kind in _BASES:
            _check_statement(kind, name, component, where=where)
            if name in words:
                raise InputError(f"'{name}' is a word of the language of steps", where=where, instead=_ANOTHER_NAME)


def _check_statement(kind: str, name: str, component: Any, *, where: str) -> None:
    base = _BASES[kind]
    if not (isinstance(component, type) and issubclass(component, base)):
        raise InputError(
            f"{kind} '{name}' is no {base.__name__}", where=where, instead=f"derive it from {base.__name__}"
        )
    if lacking := sorted(getattr(component, "__abstractmethods__", ())):
        parameters = ", ".join(inspect.signature(getattr(component, lacking[0])).parameters)
        what = f"{kind} '{name}' has no method '{lacking[0]}'"
        raise InputError(what, where=where, instead=f"write def {lacking[0]}({parameters}): …")


def import_error(error: BaseException, path: Path) -> InputError:
    """One line about a file that does not import."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, registry.TakenError):
        what = f"{error.kind} '{error.name}' is there already, in {error.known.__module__}"
        return InputError(what, where=find_user_frame(error) or str(path), instead=_ANOTHER_NAME)
    if isinstance(error, SyntaxError):
        where = f"{error.filename or path}:{error.lineno}"
        return InputError(f"cannot be imported: SyntaxError: {error}", where=where)
    where = find_user_frame(error) or str(path)
    if isinstance(error, PydanticSchemaGenerationError):
        kind = re.search(r"schema for (?:<class '(.+?)'>|(.+?)\.(?:\s|$))", str(error))
        named = f"of type {kind[1] or kind[2]} " if kind else ""
        return InputError(f"a parameter {named}cannot be written in a task file", where=where, instead=_TYPES)
    return InputError(f"cannot be imported: {type(error).__name__}: {error}", where=where)


def _place(component: Any, path: Path) -> str:
    """Where it is defined, as far as Python knows."""
    try:
        return f"{inspect.getsourcefile(component) or path}:{inspect.getsourcelines(component)[1]}"
    except (TypeError, OSError):
        return str(path)


def _words(composite: str) -> tuple[str, ...]:
    return registry.lookup("composite", composite).words[:1]
