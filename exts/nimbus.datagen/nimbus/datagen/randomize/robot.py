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
    """Small shift, rise and rotation of the robot's base relative to the table."""

    part = "physical"
    position: Metres = Field(0.01, ge=0, le=0.3, description="largest shift along x and y, in both directions")
    height: Metres = Field(
        0.01, ge=0, le=0.3, description="largest rise of the base; it is never lowered into the table"
    )
    yaw: Radians = Field(math.radians(1), ge=0, le=math.pi, description="largest rotation about the vertical")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a shift, a rise and a rotation."""
        x, y = (float(value) for value in self.position * streams("position").uniform(-1, 1, 2))
        z, yaw = float(streams("height").uniform(0, self.height)), float(streams("yaw").uniform(-self.yaw, self.yaw))
        draft.robot = dataclasses.replace(draft.robot, offset=(x, y, z), yaw=yaw)
        return {"x": x, "y": y, "height": z, "yaw": yaw}


@register("randomizer", "start_posture")
class StartPostureRandomization(LayoutRandomization):
    """Small deviation of every arm's start from its home posture."""

    part = "physical"
    joints: Radians = Field(math.radians(5), ge=0, le=1, description="largest deviation of each joint, both ways")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a deviation for each joint of the arms."""
        start = {name: float(streams(name).uniform(-self.joints, self.joints)) for name in draft.joints}
        draft.robot = dataclasses.replace(draft.robot, start=start)
        return dict(start)


@register("randomizer", "gains")
class GainRandomization(LayoutRandomization):
    """Factors on the position and velocity gains of the arms; the controller does not know them."""

    part = "physical"
    stiffness: Range[_Factor] = Field((0.9, 1.1), description="factor on the position gains")
    damping: Range[_Factor] = Field((0.9, 1.1), description="factor on the velocity gains")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw both factors."""
        drawn = {name: float(streams(name).uniform(*getattr(self, name))) for name in ("stiffness", "damping")}
        draft.robot = dataclasses.replace(draft.robot, **drawn)
        return drawn


@register("randomizer", "delay")
class DelayRandomization(LayoutRandomization):
    """Delay from commands to their effect."""

    part = "physical"
    action: Range[Annotated[Seconds, Field(ge=0, le=0.5)]] = Field(
        (0.0, 0.02), description="delay from a command to the motor"
    )

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw the delay of the episode."""
        delay = float(streams("action").uniform(*self.action))
        draft.robot = dataclasses.replace(draft.robot, delay=delay)
        return {"action": delay}
