"""Discovery of Isaac Sim on this machine, with one-line errors."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.search_paths import clean_search_paths, script_environment
from nimbus.datagen.simulate.isaac_location import CONTAINER, VARIABLE, locate_isaac_python
from nimbus.datagen.simulate.kit_app import VERSION
from nimbus.runner.cell.transport.spec import Instances
from nimbus.runner.system.gpus import Gpu, list_gpus, select_gpus

_PATIENCE = 120.0
"""Time limit of the probe [s]; it is long because a container's first start reads from a cold disk."""
_PROBE = """
import sys
sys.path[:] = filter(None, sys.path)  # without the current folder; an older Python has no option -P
import importlib.metadata, importlib.util, json, os
try:
    version, by_pip = importlib.metadata.version("isaacsim"), True
except importlib.metadata.PackageNotFoundError:
    by_pip = False
    try:
        version = open(os.path.join(os.environ.get("ISAAC_PATH", ""), "VERSION")).read().strip()
    except OSError:
        version = ""
found = importlib.util.find_spec("isaacsim") is not None
told = {"version": version, "by_pip": by_pip, "found": found}
told |= {"executable": sys.executable, "python": list(sys.version_info[:2])}
print("nimbus-probe " + json.dumps(told | {"environment": dict(os.environ)}))
"""
"""Script that describes a Python installation. It does not import Isaac Sim, which would prompt for the license."""
_WHERE = "--sim isaacsim"
_YES = ("1", "y", "yes", "true")


def find_instances(*, environ: Mapping[str, str] = os.environ, gpus: Sequence[Gpu] | None = None) -> Instances:
    """Find the installation from which instances are started.

    Args:
        environ: Environment of this process.
        gpus: GPUs of the machine; detected by default.

    Raises:
        InputError: Isaac Sim is missing or has another version, its license is not accepted, the driver is too
            old, or no GPU is suitable.
    """
    command = _command(environ)
    clean = {name: value for name, value in environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    told = _ask(command, script_environment(clean))
    _check(command, told, environ)
    fit = _fit(list_gpus() if gpus is None else gpus)
    theirs = clean_search_paths(told["environment"])
    changed = {name: value for name, value in theirs.items() if clean.get(name) != value}
    return Instances(
        executable=told["executable"],
        environment={name: value for name, value in changed.items() if name not in ("_", "SHLVL", "PWD", "OLDPWD")},
        libraries=tuple(dict.fromkeys(path for path in (*site.getsitepackages(), *sys.path) if "-packages" in path)),
        gpus=tuple(gpu.uuid for gpu in fit),
        gpu_numbers=tuple(gpu.number for gpu in fit),
        gpu_free_bytes=tuple(gpu.free_bytes for gpu in fit),
        folder=str(cache_folder("isaacsim")),
    )


def _command(environ: Mapping[str, str]) -> Path:
    if path := locate_isaac_python(environ, where=_WHERE):
        return path
    instead = (
        f"install Isaac Sim {VERSION}.0 and name its folder in {VARIABLE}, see docs/isaacsim.md; or use --sim newton"
    )
    raise InputError("Isaac Sim was not found", where=_WHERE, instead=instead)


def _ask(command: Path, environ: Mapping[str, str]) -> dict:
    words = [str(command.absolute()), "-c", _PROBE]
    try:
        done = subprocess.run(
            words,
            env=dict(environ),
            cwd="/",  # the current folder may be a dataset of others
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"{command} did not answer within {_PATIENCE:g} s",
            where=_WHERE,
            instead="start it once manually; its first start takes minutes",
        ) from None
    except OSError as error:
        raise InputError(
            f"{command} cannot be started: {error.strerror}",
            where=_WHERE,
            instead=f"name a working installation in {VARIABLE}",
        ) from None
    for line in done.stdout.splitlines():
        if line.startswith("nimbus-probe "):
            return json.loads(line.removeprefix("nimbus-probe "))
    words = (done.stderr or done.stdout).strip().splitlines()
    ending = f": {words[-1]}" if words else ""
    raise InputError(
        f"{command} ended with exit code {done.returncode}{ending}",
        where=_WHERE,
        instead="start it manually and fix the error",
    )


def _check(command: Path, told: dict, environ: Mapping[str, str]) -> None:
    version, python = told["version"], tuple(told["python"])
    if not told["found"] and not version:
        instead = f"install Isaac Sim {VERSION}.0 into it, see docs/isaacsim.md; or use --sim newton"
        raise InputError(f"Isaac Sim is not in {command}", where=_WHERE, instead=instead)
    if not version.startswith(f"{VERSION}."):
        what = f"Isaac Sim has {'version ' + version if version else 'an unknown version'}, but {VERSION}.0 is required"
        raise InputError(what, where=f"{_WHERE} ({command})", instead="see docs/isaacsim.md, or use --sim newton")
    if python != sys.version_info[:2]:
        theirs, ours = (".".join(map(str, pair)) for pair in (python, sys.version_info[:2]))
        instead = f"create Nimbus's environment with python{theirs}"
        raise InputError(f"Isaac Sim uses Python {theirs}, Nimbus runs in {ours}", where=_WHERE, instead=instead)
    if not told["by_pip"] and not command.is_relative_to(CONTAINER):
        return  # the license of a workstation build was accepted at its download
    accepted = [environ.get(name, "") for name in ("OMNI_KIT_ACCEPT_EULA", "ACCEPT_EULA")]
    if not any(value.lower() in _YES for value in accepted):
        instead = "read it, then set OMNI_KIT_ACCEPT_EULA=YES (in a container ACCEPT_EULA=Y)"
        raise InputError("the license of Isaac Sim is not accepted", where=_WHERE, instead=instead)


def _fit(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return the GPUs with RT cores and free memory."""
    if not gpus:
        instead = "fix the driver until 'nvidia-smi' runs, or use --sim newton"
        raise InputError("no NVIDIA GPU was found", where=_WHERE, instead=instead)
    fit = [gpu for gpu in gpus if gpu.has_rt_cores]
    if not fit:
        names = ", ".join(dict.fromkeys(gpu.name for gpu in gpus))
        instead = "Isaac Sim needs an RTX GPU; use --sim newton --device cuda on this one"
        raise InputError(f"none of the GPUs has RT cores: {names}", where=_WHERE, instead=instead)
    return select_gpus("all", fit, where=_WHERE, otherwise="--sim newton")
