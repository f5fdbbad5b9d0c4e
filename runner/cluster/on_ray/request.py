"""Order of a run for a Ray cluster, and lines that its program writes: the seam between the command and Ray."""

from __future__ import annotations

from dataclasses import dataclass

from nimbus.datagen.errors import Diagnostic
from nimbus.runner.cluster.job import HeadEnd

NAMESPACE = "nimbus"
"""Namespace of the actors."""


@dataclass(frozen=True, kw_only=True)
class RayOrder:
    """Standard input of the program."""

    address: str
    """``auto`` or ``ray://HOST:PORT``."""
    name: str
    """Name of the run: one place of a dataset has one."""
    job: str
    """:class:`ClusterJob` as JSON."""
    slots: int = 0
    """Workers of each node; 0 for the CPUs that Ray knows there."""
    version: str
    platform: str


@dataclass(frozen=True, kw_only=True)
class RayLine:
    """One line of the program's standard output; one field is set."""

    status: str = ""
    """``status.json`` of the run."""
    note: str = ""
    """Text for the user."""
    error: Diagnostic | None = None
    end: HeadEnd | None = None
