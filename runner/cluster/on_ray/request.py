"""Interface between the command and its program for Ray: the order that it reads, and the lines that it writes."""

from __future__ import annotations

from dataclasses import dataclass

from nimbus.datagen.errors import Diagnostic
from nimbus.runner.cluster.job import HeadEnd

NAMESPACE = "nimbus"
"""Namespace of the actors."""
ANSWER_SECONDS = 10.0
"""Time limit for an answer of an actor, after which the request is repeated [s]."""


@dataclass(frozen=True, kw_only=True)
class RayOrder:
    """Order on the standard input of the program."""

    address: str
    """``auto`` or ``ray://HOST:PORT``."""
    name: str
    """Name of the run, unique for each destination of a dataset."""
    job: str
    """:class:`ClusterJob` as JSON."""
    slots: int = 0
    """Number of workers of each node; 0 for the number of CPUs known to Ray."""
    version: str
    platform: str


@dataclass(frozen=True, kw_only=True)
class RayLine:
    """Line of the program's standard output; exactly one field is set."""

    status: str = ""
    """``status.json`` of the run."""
    note: str = ""
    """Text for the user."""
    error: Diagnostic | None = None
    end: HeadEnd | None = None
