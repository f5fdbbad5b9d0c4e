"""Conversion of paths to the discrete actions of Habitat's agents: steps and turns of fixed sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray

STOP, FORWARD, LEFT, RIGHT = 0, 1, 2, 3
"""Numbers of the actions in VLN-CE."""
STEP = 0.25
"""Length of a forward action [m]."""
TURN = np.radians(15.0)
"""Angle of a turn action [rad]."""
_AHEAD = 0.4
"""Distance along the path from the agent to the point that it steers toward [m]."""
_SPACING = 0.02
"""Spacing of the points to which a path is resampled [m]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DiscretePath:
    """Discrete actions with the N poses of the agent."""

    actions: tuple[int, ...]
    """Actions (N); the last one is STOP."""
    positions: FloatArray
    """(N, 2) positions of the agent before each action [m]."""
    yaws: FloatArray
    """(N,) headings of the agent before each action [rad]."""
    off: float
    """Largest distance of the agent from the path [m]."""


def follow_in_steps(path: FloatArray, yaw: float, *, step: float = STEP, turn: float = TURN) -> DiscretePath:
    """Convert a path to steps and turns of fixed sizes.

    Args:
        path: (n, 2) points from the start to the goal [m].
        yaw: Heading at the start [rad].
        step: Length of a forward action [m].
        turn: Angle of a turn [rad].
    """
    points, along = _resampled(path)
    at, reached = points[0].copy(), 0
    actions: list[int] = []
    positions, yaws, off = [at.copy()], [yaw], 0.0
    ahead = max(round(_AHEAD / _SPACING), 1)
    most = 4 * round(float(along[-1]) / step) + 4 * round(2 * np.pi / turn)
    while len(actions) < most:
        near = slice(reached, min(reached + 2 * ahead, len(points)))
        reached += int(np.argmin(np.linalg.norm(points[near] - at, axis=1)))
        off = max(off, float(np.linalg.norm(points[reached] - at)))
        left = float(np.linalg.norm(points[-1] - at))
        if reached + ahead >= len(points) and left <= 0.5 * step:
            break
        goal = points[min(reached + ahead, len(points) - 1)]
        wanted = np.arctan2(*(goal - at)[::-1])
        wrong = float((wanted - yaw + np.pi) % (2 * np.pi) - np.pi)
        if reached == len(points) - 1 and abs(wrong) > 0.5 * np.pi:
            break  # the goal is behind the agent; a further step would lead away from it
        if abs(wrong) > 0.5 * turn:
            actions.append(LEFT if wrong > 0 else RIGHT)
            yaw += turn if wrong > 0 else -turn
        else:
            actions.append(FORWARD)
            at = at + step * np.array([np.cos(yaw), np.sin(yaw)])
        positions.append(at.copy())
        yaws.append(yaw)
    return DiscretePath(actions=(*actions, STOP), positions=np.array(positions), yaws=np.array(yaws), off=off)


def _resampled(path: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return points (m, 2) of a path at equal spacing, and their distances (m,) along the path [m]."""
    path = np.asarray(path, dtype=float)
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    kept = np.append(True, steps > 1e-9)
    path, steps = path[kept], steps[steps > 1e-9]
    reached = np.append(0.0, np.cumsum(steps))
    count = max(int(np.ceil(reached[-1] / _SPACING)), 1)
    along = np.linspace(0.0, reached[-1], count + 1)
    return np.column_stack([np.interp(along, reached, column) for column in path.T]), along
