"""Randomizers of the robot: base pose, start posture, controller gains and delay."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

from nimbus.datagen.plugin import Field, Metres, Radians, Range, Ratio, Seconds, Streams, register
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization

_Factor = Annotated[Ratio, Field(ge=0.2, le=5)]


@register("randomizer", "robot_base")
class RobotBaseRandomization(LayoutRandomization):
    """Shifts, raises and rotates the robot's base slightly relative to the table."""

    part = "physical"
    position: Metres = Field(0.01, ge=0, le=0.3, description="largest shift along x and y, either way")
    height: Metres = Field(
        0.01, ge=0, le=0.3, description="largest rise, or lowering of the table; never sinks into it"
    )
    yaw: Radians = Field(math.radians(1), ge=0, le=math.pi, description="largest turn about the vertical, either way")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a shift, a rise and a rotation."""
        x, y = (float(value) for value in self.position * streams("position").uniform(-1, 1, 2))
        z, yaw = float(streams("height").uniform(0, self.height)), float(streams("yaw").uniform(-self.yaw, self.yaw))
        draft.robot = dataclasses.replace(draft.robot, offset=(x, y, z), yaw=yaw)
        return {"x": x, "y": y, "height": z, "yaw": yaw}


@register("randomizer", "start_posture")
class StartPostureRandomization(LayoutRandomization):
    """Starts every arm slightly away from its home posture."""

    part = "physical"
    joints: Radians = Field(math.radians(5), ge=0, le=1, description="largest distance of each joint, either way")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a distance for each joint of the arms."""
        start = {name: float(streams(name).uniform(-self.joints, self.joints)) for name in draft.joints}
        draft.robot = dataclasses.replace(draft.robot, start=start)
        return dict(start)


@register("randomizer", "gains")
class GainRandomization(LayoutRandomization):
    """Multiplies the arms' position and velocity gains, unknown to the controller."""

    part = "physical"
    stiffness: Range[_Factor] = Field((0.9, 1.1), description="range of the factor of the position gains")
    damping: Range[_Factor] = Field((0.9, 1.1), description="range of the factor of the velocity gains")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw both factors."""
        drawn = {name: float(streams(name).uniform(*getattr(self, name))) for name in ("stiffness", "damping")}
        draft.robot = dataclasses.replace(draft.robot, **drawn)
        return drawn


@register("randomizer", "delay")
class DelayRandomization(LayoutRandomization):
    """Delays the effect of commands."""

    part = "physical"
    action: Range[Annotated[Seconds, Field(ge=0, le=0.5)]] = Field((0.0, 0.02), description="from command to motor")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw the delay of the episode."""
        delay = float(streams("action").uniform(*self.action))
        draft.robot = dataclasses.replace(draft.robot, delay=delay)
        return {"action": delay}
