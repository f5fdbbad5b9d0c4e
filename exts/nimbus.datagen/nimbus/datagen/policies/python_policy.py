"""A policy in a Python file: ``mine.py:make_policy``."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.root_imports import import_in_root
from nimbus.datagen.policies.policy import Needs, Policy, PolicyEpisode, PolicyFault, PolicyObservation, PolicyTask
from nimbus.datagen.tasks.plugin_origin import user_frame_line

_WEIGHTS = (".npz", ".safetensors", ".json", ".pt", ".pth")
"""Suffixes of files beside a policy that affect its behavior."""


class GuardedPolicy(Policy):
    """Object with the methods of a policy; its errors are faults of the policy, which an evaluation counts separately.

    Args:
        made: A :class:`Policy`, or an object with its methods.
        identity: Identity of a policy that states none.
    """

    def __init__(self, made: Any, *, identity: str = "") -> None:
        self._policy = made
        self.needs, self.view = getattr(made, "needs", Needs()), getattr(made, "view", None)
        self.identity = getattr(made, "identity", "") or identity
        self.limit, self.horizon = int(getattr(made, "limit", 0)), int(getattr(made, "horizon", 0))
        self.trained_layouts = getattr(made, "trained_layouts", {})

    def begin_task(self, task: PolicyTask) -> None:
        """Pass the conventions to the policy, if it requests them."""
        if begin := getattr(self._policy, "begin_task", None):
            begin(task)

    def reset(self, episode: PolicyEpisode) -> None:
        """Begin an episode.

        Raises:
            PolicyFault: The policy raised an error.
        """
        if (reset := getattr(self._policy, "reset", None)) is not None:
            self._guarded(reset, episode)

    def act(self, observation: PolicyObservation) -> NDArray[np.floating]:
        """Choose the next actions.

        Raises:
            PolicyFault: The policy raised an error.
        """
        return self._guarded(self._policy.act, observation)

    def close(self) -> None:
        """Release the policy's resources."""
        if close := getattr(self._policy, "close", None):
            close()

    def _guarded(self, method: Any, argument: object) -> Any:
        try:
            return method(argument)
        except (PolicyFault, InputError):
            raise
        except Exception as error:  # any error of a user's policy is a counted fault; its location is in the ledger
            line = user_frame_line(error) or f"{type(error).__name__}: {error}"
            raise PolicyFault(Reason.POLICY_ERROR, line) from error


class PythonPolicy(GuardedPolicy):
    """Object returned by a function of a file.

    Args:
        path: The file; it is imported.
        function: Name of a function without arguments, or with an argument ``checkpoint``.
        checkpoint: Weights, a file or folder, whose content enters the identity; None for none.

    Raises:
        InputError: There is no such file, function or checkpoint, or the returned object has no method ``act``.
    """

    def __init__(self, path: Path, function: str, *, checkpoint: Path | None = None) -> None:
        where = f"--policy {path}:{function}"
        if checkpoint is not None and not checkpoint.exists():
            what = f"no such file or folder: {checkpoint}"
            raise InputError(what, where="--checkpoint", instead="give the path of the policy's weights")
        made: Any = _made(path, function, checkpoint, where=where)
        if not callable(getattr(made, "act", None)):
            what = f"{function}() returned {type(made).__name__}, which has no method act"
            raise InputError(what, where=where, instead="return an object with reset(episode) and act(observation)")
        stated = getattr(made, "identity", "")
        super().__init__(made, identity=stated or file_identity(path))
        declared = [*_stated_files(made, path.parent, where=where), *([checkpoint] if checkpoint else [])]
        if declared:
            digest = _contents_hash(declared)
            own = hashlib.sha256(f"{self.identity} {digest}".encode()).hexdigest()[:16]
            self.identity = f"{stated} {digest[:8]}" if stated else own


def file_identity(path: Path) -> str:
    """Hash a policy's file, and the weights in its folder if the folder belongs to it."""
    digest = hashlib.sha256(path.read_bytes())
    if path.name == "policy.py":
        for weights in sorted(one for one in path.parent.iterdir() if one.suffix in _WEIGHTS):
            digest.update(weights.name.encode() + hashlib.sha256(weights.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _stated_files(made: object, folder: Path, *, where: str) -> list[Path]:
    """Return the files and folders that a policy states; relative paths begin in the folder of its Python file."""
    stated: Any = getattr(made, "files", ())
    stated = [stated] if isinstance(stated, str | Path) else stated
    if not isinstance(stated, list | tuple) or not all(isinstance(one, str | Path) for one in stated):
        raise InputError("its files are not a list of paths", where=where, instead='write files = ["weights.npz"]')
    found = [folder / one for one in stated]
    if missing := next((one for one in found if not one.exists()), None):
        raise InputError(f"its files name {missing}, which does not exist", where=where, instead="correct the path")
    return found


def _contents_hash(paths: Iterable[Path]) -> str:
    """Hash the contents of files and folders, and the names inside the folders."""
    digest = hashlib.sha256()
    for path in paths:
        held = list(_files_of(path))
        if not held:
            raise InputError("the folder holds no file", where=str(path), instead="give the policy's weights")
        for name, file in held:
            try:
                with file.open("rb") as opened:
                    content = hashlib.file_digest(opened, "sha256").digest()
            except OSError as error:
                what = f"cannot be read: {error.strerror or error}"
                raise InputError(what, where=str(file), instead="give a file that can be read") from None
            digest.update(hashlib.sha256(name.encode()).digest() + content)
    return digest.hexdigest()


def _files_of(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the regular files of a folder with their names in it, or a single file, whose name does not matter."""
    if not path.is_dir():
        yield "", path
        return
    for one in sorted(path.rglob("*")):
        if one.is_file():
            yield one.relative_to(path).as_posix(), one


def _made(path: Path, function: str, checkpoint: Path | None, *, where: str) -> object:
    if not path.is_file():
        raise InputError("no such file", where=where, instead="give the path of a Python file")
    name = f"nimbus_policy_{hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("not a Python file", where=where, instead="give the path of a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    import_in_root()
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = user_frame_line(error) or f"{type(error).__name__}: {error}"
        raise InputError(f"cannot be imported: {line}", where=where, instead="correct the file") from error
    finally:
        sys.path.pop(0)
    if not callable(make := getattr(module, function, None)):
        raise InputError(f"it has no function '{function}'", where=where, instead="name one that returns a policy")
    try:
        if "checkpoint" not in (parameters := inspect.signature(make).parameters):
            return make()
        if checkpoint is None and parameters["checkpoint"].default is inspect.Parameter.empty:
            what = f"{function}() takes a checkpoint, and none is given"
            raise InputError(what, where=where, instead="add --checkpoint PATH")
        return make() if checkpoint is None else make(checkpoint=checkpoint)
    except InputError:
        raise
    except Exception as error:
        line = user_frame_line(error) or f"{type(error).__name__}: {error}"
        raise InputError(f"{function}() failed: {line}", where=where, instead="correct the file") from error
