"""A scripted operator: poses of the tool over time with the jitter of a hand, at the rate of the loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.teleoperate.operator_input import OperatorInput, PoseTarget, ToolCommand
from nimbus.datagen.teleoperate.session import SessionState, TeleoperationSession

_JITTER = 0.002
"""Standard deviation of the hand's position in one period [m]."""


def pointing(pose: FloatArray, place: FloatArray) -> FloatArray:
    """Return a pose with the same orientation at another position."""
    moved = pose.copy()
    moved[:3, 3] = place
    return moved


def throw_away(session: TeleoperationSession, thing: str, bin_name: str, *, seed: int = 0) -> Iterator[OperatorInput]:
    """Yield inputs that carry an object into a bin, with the tool pointing down."""
    rng, scene = np.random.default_rng(seed), session.environment.scene
    at, into = scene.pose(thing)[:3, 3].copy(), np.mean(scene.bounds(bin_name), axis=0)
    over = np.array([*into[:2], scene.bounds(bin_name)[1][2] + 0.2])
    tool = session.tool_poses()["arm"]
    tool[:3, :3] = np.diag([1.0, -1.0, -1.0])
    ways = [(at + [0, 0, 0.15], 1.0, 24), (at, 1.0, 14), (at, 0.0, 10), (at + [0, 0, 0.3], 0.0, 14)]
    ways += [(over, 0.0, 28), (over, 1.0, 12), (over, 1.0, 12)]
    for place, opening, count in ways:
        for _ in range(count):
            goal = pointing(tool, place + rng.normal(scale=_JITTER, size=3))
            yield OperatorInput(arms={"arm": ToolCommand(motion=PoseTarget(world_T_tool=goal), opening=opening)})


def show(session: TeleoperationSession, inputs: Iterator[OperatorInput]) -> SessionState:
    """Record inputs until success, or to their end."""
    session.record()
    state = session.state()
    for given in inputs:
        state = session.step(given)
        if state.is_success:
            break
    return state
