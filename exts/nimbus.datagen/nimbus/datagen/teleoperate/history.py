"""History of a teleoperated episode: its commands, and snapshots from which any earlier moment can be restored."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.arrays import FloatArray

if TYPE_CHECKING:
    from nimbus.datagen.policies.environment import Environment, EnvironmentSnapshot

_EVERY = 1.0
"""Time between two snapshots [s]; a snapshot takes 0.1 MB, and replaying one second of physics takes 0.1 s of CPU."""


class CommandHistory:
    """Commands since the start of an episode.

    Going back restores a snapshot and repeats the commands after it. Physics is deterministic, so repeated commands
    give the same state to the last bit.

    Args:
        environment: Environment after a reset.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._spacing = max(1, round(_EVERY * environment.task.rate))
        self.actions: list[FloatArray] = []
        """Commands (A,) executed so far [rad or m]."""
        self._at = [0]
        self._snapshots: list[EnvironmentSnapshot] = [environment.snapshot()]

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(self.actions)

    def append(self, action: FloatArray) -> None:
        """Record a command that was just executed, and take a snapshot if one is due."""
        self.actions.append(np.array(action, dtype=float))
        if len(self.actions) % self._spacing == 0:
            self._at.append(len(self.actions))
            self._snapshots.append(self._environment.snapshot())

    def go_back(self, count: int) -> None:
        """Return to the state after the given number of commands; later commands are removed."""
        count = min(max(count, 0), len(self.actions))
        place = bisect.bisect_right(self._at, count) - 1
        del self._at[place + 1 :], self._snapshots[place + 1 :]
        self._environment.rewind(self._snapshots[place])
        for action in self.actions[self._at[place] : count]:
            self._environment.step(action)
        del self.actions[count:]
