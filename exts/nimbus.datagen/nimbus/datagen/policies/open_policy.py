"""From the text of ``--policy`` to a policy: a scheme before a colon, or a Python file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.policies.policy import Policy
from nimbus.datagen.policies.python_policy import PythonPolicy
from nimbus.datagen.policies.recorded_policy import RecordedPolicy

WHERE = "--policy"
DEMONSTRATOR = "demonstrator"
"""The task's own skills, as a ceiling: no policy, but the same layouts."""


@dataclass(frozen=True)
class Scheme:
    """One kind of policy."""

    open: Callable[[str, Mapping[str, str]], Policy]
    """Makes the policy from the text behind the scheme and from options."""
    form: str
    """Example for messages."""


_SCHEMES: dict[str, Scheme] = {}


def register_scheme(name: str, form: str) -> Callable[[Callable[[str, Mapping[str, str]], Policy]], None]:
    """Register a function that makes the policies of a scheme; ``form`` is an example for messages."""

    def add(function: Callable[[str, Mapping[str, str]], Policy]) -> None:
        _SCHEMES[name] = Scheme(function, form)

    return add


@register_scheme("replay", "replay:DATASET")
def _replay(text: str, options: Mapping[str, str]) -> Policy:
    return RecordedPolicy(Path(text), actions=options.get("actions", "executed"))


def open_policy(text: str, *, options: Mapping[str, str] | None = None) -> Policy:
    """Open a policy.

    Args:
        text: As ``--policy`` takes it.
        options: Of the policy, by name.

    Raises:
        InputError: There is none.
    """
    options = options or {}
    scheme, colon, rest = text.partition(":")
    if colon and scheme in _SCHEMES:
        return _SCHEMES[scheme].open(rest, options)
    path, colon, function = text.rpartition(":")
    if colon and path.endswith(".py"):
        return PythonPolicy(Path(path), function)
    folder = Path(text)
    if folder.is_dir() and (folder / "policy.py").is_file():
        return PythonPolicy(folder / "policy.py", "make_policy")
    known = (DEMONSTRATOR, "FILE.py:FUNCTION", "FOLDER of a trained policy", *(one.form for one in _SCHEMES.values()))
    if text.endswith(".py"):
        raise InputError(f"'{text}' names no function", where=WHERE, instead=f"write {text}:make_policy")
    hint = suggest(scheme, _SCHEMES) if colon and not Path(text).suffix else ""
    raise InputError(f"'{text}' is no policy", where=WHERE, instead=hint or f"write one of {', '.join(known)}")
