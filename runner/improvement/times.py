"""Times of the roles: how long each was at work and how long it waited, over all of its processes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace

from nimbus.datagen.files.bounded import Seconds, read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.publish import replace_text
from nimbus.runner.improvement.loop import Improvement

ROLLOUT, PREPARATION, LEARNER = "rollout", "preparation", "learner"
ROLE_NAMES = (ROLLOUT, PREPARATION, LEARNER)


@dataclass(frozen=True, kw_only=True)
class RoleTimes:
    """Times of a role since the first version was published, over all of its processes [s of wall time]."""

    pid: int = 0
    """Id of the process that currently has the role."""
    working: Seconds = 0.0
    evaluating: Seconds = 0.0
    """Time for evaluations, which a role does while it has no other work."""
    waiting: Seconds = 0.0
    preparing: Seconds = 0.0
    """Time before the first version is published."""
    pieces: int = 0
    """Number of completed pieces of work."""


class RoleClock:
    """Measures a role's times and keeps them in its file, over restarts.

    Args:
        loop: The improvement.
        name: Name of the role.
    """

    def __init__(self, loop: Improvement, name: str) -> None:
        self._loop, self._path = loop, loop.folder / "roles" / f"{name}.json"
        self._path.parent.mkdir(exist_ok=True)
        self.times = replace(read_times(loop, name), pid=os.getpid())
        self._last, self._began = time.monotonic(), loop.is_published(0)
        self._write()

    def add(self, kind: str, *, pieces: int = 0) -> None:
        """Count the time since the last call as ``working``, ``evaluating`` or ``waiting``."""
        now = time.monotonic()
        kind = kind if self._began else "preparing"
        self._began = self._loop.is_published(0)
        known = {kind: getattr(self.times, kind) + now - self._last}
        self.times, self._last = replace(self.times, **known, pieces=self.times.pieces + pieces), now
        self._write()

    def _write(self) -> None:
        replace_text(self._path, to_json(self.times) + "\n", durable=False)


def read_times(loop: Improvement, name: str) -> RoleTimes:
    """Read the times of a role so far."""
    path = loop.folder / "roles" / f"{name}.json"
    return read_typed(RoleTimes, path) if path.is_file() else RoleTimes()
