"""Capabilities of this machine that Nimbus can use."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.access_limits import landlock_version
from nimbus.datagen.files.cache import cache_folder
from nimbus.datagen.files.system_calls import has_filters
from nimbus.datagen.plan.curobo.process import PYTHON, check_curobo
from nimbus.datagen.simulate.isaac_location import VARIABLE, locate_isaac_python

_PACKAGES = ("mujoco", "newton", "warp-lang", "usd-exchange", "ompl", "mink", "toppra", "h5py", "av", "pyarrow")
_LITTLE_DISK, _LITTLE_MEMORY = 10e9, 4e9
"""Free disk space and memory below which the doctor warns [bytes]."""


@dataclass(frozen=True, kw_only=True)
class MachineItem:
    """One capability that the machine has or lacks."""

    name: str
    state: Literal["ok", "missing", "bad"]
    """``missing`` is not an error, because the capability is optional."""
    detail: str
    instead: str = ""
    """Fix for a missing capability."""


def examine_machine(folder: Path) -> tuple[MachineItem, ...]:
    """Check Python, packages, processors, GPU, simulators, planners and the disk, without loading large libraries.

    Args:
        folder: Folder for datasets.
    """
    parts = [_python(), *_packages(), *_processor(), _gpu(), *_optional(), _disk(folder), _cache(), *_kernel_limits()]
    return tuple(parts)


def _python() -> MachineItem:
    version = platform.python_version()
    good = (3, 11) <= sys.version_info[:2] <= (3, 12)
    instead = "" if good else "use Python 3.11 or 3.12"
    return MachineItem(name="Python", state="ok" if good else "bad", detail=version, instead=instead)


def _packages() -> Iterator[MachineItem]:
    for name in _PACKAGES:
        try:
            yield MachineItem(name=name, state="ok", detail=importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield MachineItem(
                name=name, state="bad", detail="not installed", instead=quote_words("pip", "install", name)
            )
    if all(map(_is_installed, ("usd-core", "usd-exchange"))):
        detail = "usd-core and usd-exchange both contain the module pxr"
        yield MachineItem(
            name="USD", state="bad", detail=detail, instead="pip uninstall usd-core, then reinstall usd-exchange"
        )


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _processor() -> Iterator[MachineItem]:
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    detail = f"{cores} cores, {platform.machine()}"
    linux = sys.platform.startswith("linux")
    instead = "" if linux else "on this system, a run has one process: give --serial; use Linux for runs with workers"
    yield MachineItem(name="processor", state="ok" if linux else "missing", detail=detail, instead=instead)
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        little = memory < _LITTLE_MEMORY
        instead = "use --workers 1x1" if little else ""
        yield MachineItem(
            name="memory", state="bad" if little else "ok", detail=f"{memory / 1e9:.0f} GB", instead=instead
        )


def _kernel_limits() -> Iterator[MachineItem]:
    """Yield the limits that the kernel can set for processes that read files of others."""
    version = landlock_version()
    file_lack = "" if version else "this kernel lacks Landlock"
    # Processes without file limits set no filter.
    call_lack = file_lack if has_filters() else "this kernel lacks filters of system calls (seccomp)"
    for name, by, lack in (("file", f"Landlock {version}", file_lack), ("call", "seccomp", call_lack)):
        yield MachineItem(
            name=f"{name} limits",
            state="missing" if lack else "ok",
            detail=f"not enforced: {lack}" if lack else f"enforced by the kernel ({by})",
            instead="process files of others on Linux 5.19 or later, see SECURITY.md" if lack else "",
        )


def _gpu() -> MachineItem:
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        lines = (line.partition(":") for line in path.read_text(errors="replace").splitlines())
        model = next((value.strip() for name, _, value in lines if name == "Model"), "NVIDIA")
        return MachineItem(name="GPU", state="ok", detail=model)
    detail = "none found; images are rendered on the CPU"
    return MachineItem(
        name="GPU", state="missing", detail=detail, instead="--device cuda and Isaac Sim need an NVIDIA driver"
    )


def _optional() -> Iterator[MachineItem]:
    yield MachineItem(name="simulator newton", state="ok" if _has("newton") else "bad", detail="physics by MuJoCo C")
    yield _isaacsim()
    yield MachineItem(name="planner ompl", state="ok" if _has("ompl") else "bad", detail="RRT-Connect")
    yield _curobo()


def _isaacsim() -> MachineItem:
    name = "simulator isaacsim"
    try:
        python = locate_isaac_python(os.environ)
    except InputError as error:
        return MachineItem(name=name, state="bad", detail=error.what, instead=error.instead)
    if python is None:
        instead = f"install it as in docs/isaacsim.md, and name its folder in {VARIABLE}"
        return MachineItem(name=name, state="missing", detail="not found", instead=instead)
    return MachineItem(name=name, state="ok", detail=f"Isaac Sim by {python}")


def _curobo() -> MachineItem:
    name, named = "planner curobo", os.environ.get(PYTHON, "")
    if not named and not _has("curobo"):
        instead = f"install it as in docs/planners.md, and name its interpreter in {PYTHON}"
        return MachineItem(name=name, state="missing", detail="not installed in this Python", instead=instead)
    try:
        check_curobo()  # in a process of that interpreter
    except InputError as error:
        return MachineItem(name=name, state="bad" if named else "missing", detail=error.what, instead=error.instead)
    return MachineItem(name=name, state="ok", detail=f"cuRobo in {named or 'this Python'}")


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _disk(folder: Path) -> MachineItem:
    folder = folder.absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if not os.access(there, os.W_OK):
        return MachineItem(
            name="disk", state="bad", detail=f"{there} cannot be written", instead="choose another --out"
        )
    little = free < _LITTLE_DISK
    instead = "free disk space, or use --images video" if little else ""
    return MachineItem(
        name="disk", state="bad" if little else "ok", detail=f"{free / 1e9:.0f} GB free in {there}", instead=instead
    )


def _cache() -> MachineItem:
    try:
        folder = cache_folder("objects").parent
    except InputError as error:
        return MachineItem(name="cache", state="bad", detail=f"{error.where}: {error.what}", instead=error.instead)
    return MachineItem(name="cache", state="ok", detail=str(folder))
