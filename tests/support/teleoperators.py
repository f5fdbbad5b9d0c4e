"""A class with the interface of LeRobot's teleoperators and no hardware; imported by the process of a device."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass


@dataclass
class ScriptedLeaderConfig:
    """Configuration of the stand-in."""

    id: str = ""
    steps: int = 1_000_000
    """Number of readings until its cable is pulled."""


class ScriptedLeader:
    """Leader arm of two joints whose first one rotates by a degree in each reading after the tenth."""

    config_class = ScriptedLeaderConfig
    name = "scripted_leader"

    def __init__(self, config: ScriptedLeaderConfig) -> None:
        self._config, self._count, self.is_connected = config, 0, False

    def connect(self, calibrate: bool = True) -> None:
        """Connect, and print a line, as drivers do."""
        sys.stdout.write("connected\n")
        self.is_connected = True

    def get_action(self) -> dict[str, float]:
        """Return the reading."""
        assert self.is_connected
        self._count += 1
        if self._count > self._config.steps:
            raise ConnectionError(f"no answer on the port of '{self._config.id}'")
        turned = float(max(0, self._count - 10))
        return {"one.pos": 30.0 + turned, "two.pos": -5.0, "gripper.pos": 100.0 if turned < 5 else 0.0}

    def disconnect(self) -> None:
        """Disconnect, after a while, as drivers do."""
        time.sleep(0.2)
        self.is_connected = False
