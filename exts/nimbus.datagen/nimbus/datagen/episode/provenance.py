"""Provenance of an episode, which is stored with it."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass, field
from functools import cache

from nimbus.datagen.version import nimbus_version

_DECISIVE = (
    *("newton", "mujoco", "warp-lang", "ompl", "mink", "daqp", "toppra", "ruckig", "numpy", "scipy"),
    *("usd-exchange", "urdf-usd-converter"),
)
_FURTHER = ("h5py",)


@cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def installed_versions() -> dict[str, str]:
    """Return the versions of Python, Nimbus and its libraries; empty for those that are not installed."""
    return {"python": platform.python_version()} | decisive_versions() | {name: _version(name) for name in _FURTHER}


def decisive_versions() -> dict[str, str]:
    """Return the versions of the packages that determine an episode's content; empty if not installed."""
    return {"nimbus-datagen": nimbus_version()} | {name: _version(name) for name in _DECISIVE}


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Origin of an episode; it describes how the episode was made, without access to the run."""

    task_text: str
    task_hash: str
    assets: dict[str, str] = field(default_factory=dict)
    """Content hash of each robot, stage and object asset used, by name."""
    settings: dict[str, str] = field(default_factory=dict)
    """Simulator, planner, device and other choices of the command line."""
    versions: dict[str, str] = field(default_factory=installed_versions)
    ancestors: dict[str, str] = field(default_factory=dict)
    """Ancestors by name: ``role``, ``round``, hash of the ``policy``, ``demonstration``, ``proposal``; for a correction
    also ``rollout``, ``rollout_hash`` and ``step``. Empty for a plain demonstration and in old files."""
