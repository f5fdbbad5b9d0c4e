"""Resolution of ``--policy``: a scheme with an address, a folder, or a Python file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.installation import add_extra
from nimbus.datagen.policies.policy import Policy
from nimbus.datagen.policies.python_policy import GuardedPolicy, PythonPolicy
from nimbus.datagen.policies.recorded_policy import RecordedPolicy

WHERE = "--policy"
DEMONSTRATOR = "demonstrator"
"""Name that selects the task's own skills instead of a policy; their success is an upper bound for the same layouts."""

WEIGHTS_ONLY = "state"
"""Scheme of trained state policies that are read as weights only, so that no code of their folders runs."""

_OF_FOLDERS = ("replay", WEIGHTS_ONLY)
"""Schemes with the path of a folder; the others have addresses."""


@dataclass(frozen=True)
class Scheme:
    """Kind of policy."""

    open: Callable[[str, Mapping[str, str]], Policy]
    """Function that makes the policy from the text after the scheme and from options."""
    form: str
    """Example for messages."""
    options: tuple[str, ...]
    """Names of the options that the scheme accepts."""


_SCHEMES: dict[str, Scheme] = {}
_ALWAYS = ("opening",)
"""Options that every policy accepts and may ignore."""
WORKER = "NIMBUS_WORKER"
"""Environment variable with the number of this worker."""


def register_scheme(
    name: str, form: str, *options: str
) -> Callable[[Callable[[str, Mapping[str, str]], Policy]], None]:
    """Register a function that makes the policies of a scheme; ``form`` is an example for messages."""

    def add(function: Callable[[str, Mapping[str, str]], Policy]) -> None:
        _SCHEMES[name] = Scheme(function, form, options)

    return add


@register_scheme("replay", "replay:DATASET", "actions")
def _replay(text: str, options: Mapping[str, str]) -> Policy:
    return RecordedPolicy(Path(text), actions=options.get("actions", "executed"))


@register_scheme(WEIGHTS_ONLY, f"{WEIGHTS_ONLY}:FOLDER")
def _weights(text: str, options: Mapping[str, str]) -> Policy:
    """Open a trained state policy from its weights; the ``policy.py`` of the folder is not imported."""
    from nimbus.datagen.policies.state_policy import StatePolicy

    return GuardedPolicy(StatePolicy(Path(text)))


def _register_wire(scheme: str, address: str, module: str, name: str) -> None:
    """Register a wire that needs the packages of an extra.

    Args:
        scheme: Text before the colon in ``--policy``.
        address: Scheme of the server's own address.
        module: Module with the wire.
        name: Class of the wire in it.
    """

    @register_scheme(scheme, f"{scheme}://HOST:PORT", "map", "checkpoint", "timeout")
    def _open(text: str, options: Mapping[str, str]) -> Policy:
        given = f"{scheme}:{text}".split(",")
        for one in given:
            form = re.fullmatch(rf"{scheme}://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+):([0-9]{{1,5}})/?", one)
            if form is None or not 0 < int(form[2]) < 1 << 16:
                raise InputError(f"'{one}' is not an address", where=WHERE, instead=f"write {scheme}://HOST:PORT")
        if twice := next((one for one in given if given.count(one) > 1), ""):
            raise InputError(f"'{twice}' is given twice", where=WHERE, instead="give each server once")
        try:
            from nimbus.datagen.policies.wires.remote_policy import RemotePolicy, RemoteServer

            wire = getattr(import_module(f"nimbus.datagen.policies.wires.{module}"), name)
        except ImportError as error:
            raise InputError(f"needs the package {error.name}", where=WHERE, instead=add_extra("policy")) from None
        # Workers are spread over the servers, because a server may answer one request at a time.
        own = int(os.environ.get(WORKER, "0")) % len(given)
        servers = [
            RemoteServer(wire(address + one.removeprefix(scheme).rstrip("/")), WHERE, one)
            for one in (*given[own:], *given[:own])
        ]
        return RemotePolicy(servers, options)


_register_wire("ws", "ws", "openpi", "OpenpiWire")
_register_wire("groot", "tcp", "groot", "GrootWire")
_register_wire("vla-eval", "ws", "vla_eval", "VlaEvalWire")


def function_of(text: str) -> tuple[Path, str] | None:
    """Return the file and the function of a policy ``FILE.py:FUNCTION``; None for the other forms."""
    scheme, colon, _ = text.partition(":")
    path, _, function = text.rpartition(":")
    return None if colon and scheme in _SCHEMES or not path.endswith(".py") else (Path(path), function)


def absolute_policy(text: str) -> str:
    """Return the value of ``--policy`` with absolute paths, for processes in other folders.

    The demonstrator and addresses are never paths: a folder of the current folder may have such a name, also one of
    others with a ``policy.py``.
    """
    scheme, colon, rest = text.partition(":")
    if text == DEMONSTRATOR or colon and scheme in _SCHEMES:
        is_path = colon and scheme == "replay" and Path(rest).exists()
        return f"{scheme}:{Path(rest).absolute()}" if is_path else text
    if form := function_of(text):
        return f"{form[0].absolute()}:{form[1]}"
    return str(Path(text).absolute()) if Path(text).exists() else text


def policy_from(folder: Path, text: str) -> str:
    """Return a policy that a file names with an absolute path, which begins in the folder of that file."""
    scheme, colon, rest = text.partition(":")
    if text == DEMONSTRATOR or colon and scheme in _SCHEMES:
        return f"{scheme}:{(folder / rest).absolute()}" if colon and scheme in _OF_FOLDERS else text
    if form := function_of(text):
        return f"{(folder / form[0]).absolute()}:{form[1]}"
    return str((folder / text).absolute())


def options_from(folder: Path, text: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a policy with absolute paths, which begin in a folder; a server's checkpoint is a name."""
    paths = ("map", "checkpoint") if function_of(text) else ("map",)
    return {
        name: str((folder / value).absolute()) if name in paths and value else value for name, value in options.items()
    }


def open_policy(text: str, *, options: Mapping[str, str] | None = None) -> Policy:
    """Open a policy.

    Args:
        text: Value of ``--policy``.
        options: Options of the policy by name.

    Raises:
        InputError: There is no such policy, or the policy does not accept an option.
    """
    options = options or {}
    scheme, colon, rest = text.partition(":")
    form = function_of(text)
    known_options = _SCHEMES[scheme].options if colon and scheme in _SCHEMES else ("checkpoint",) if form else ()
    if wrong := next((name for name in options if name not in (*known_options, *_ALWAYS)), ""):
        raise InputError(f"{text} does not accept this option", where=f"--{wrong}", instead="leave it out")
    if colon and scheme in _SCHEMES:
        return _SCHEMES[scheme].open(rest, options)
    if form:
        checkpoint = options.get("checkpoint")
        if checkpoint == "":  # such as an unset variable of the shell; without it, the weights would not count
            raise InputError("names no file", where="--checkpoint", instead="give the path of the policy's weights")
        return PythonPolicy(*form, checkpoint=None if checkpoint is None else Path(checkpoint))
    folder = Path(text)
    if folder.is_dir() and (folder / "policy.py").is_file():
        from nimbus.datagen.policies.trained_policy import generated_policy

        if (known := generated_policy(folder)) is not None:
            return GuardedPolicy(known(folder))
        return PythonPolicy(folder / "policy.py", "make_policy")
    forms = (DEMONSTRATOR, "FILE.py:FUNCTION", "FOLDER of a trained policy", *(one.form for one in _SCHEMES.values()))
    if text.endswith(".py"):
        raise InputError(f"'{text}' names no function", where=WHERE, instead=f"write {text}:make_policy")
    hint = suggest(scheme, _SCHEMES) if colon and not Path(text).suffix else ""
    raise InputError(f"'{text}' is not a policy", where=WHERE, instead=hint or f"write one of {', '.join(forms)}")
