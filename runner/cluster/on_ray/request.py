"""Messages between ``nimbus run`` and its child program for Ray: the order it reads, and the lines it writes."""

from __future__ import annotations

from dataclasses import dataclass

from nimbus.datagen.errors import Diagnostic
from nimbus.runner.cluster.job import HeadEnd

NAMESPACE = "nimbus"
"""Namespace of the actors."""
ANSWER_SECONDS = 10.0
"""Time limit for an answer of an actor [s]; callers then repeat the request."""


@dataclass(frozen=True, kw_only=True)
class RayOrder:
    """Description of a run, on the standard input of the child program."""

    address: str
    """``auto`` or ``ray://HOST:PORT``."""
    name: str
    """Name of the run, derived from the folder of the dataset."""
    job: str
    """:class:`ClusterJob` as JSON."""
    slots: int = 0
    """Number of workers of each node; 0 for its number of CPUs in Ray."""
    version: str
    platform: str


@dataclass(frozen=True, kw_only=True)
class RayLine:
    """Line of the child program's standard output; exactly one field is set."""

    status: str = ""
    """Content of the run's ``status.json``."""
    note: str = ""
    """Text for the user."""
    error: Diagnostic | None = None
    end: HeadEnd | None = None
