"""Drive model, in which a differential-drive body follows a path within limits on speed, turn rate and acceleration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.navigate.smooth import resample

_FINE = 0.02
"""Spacing of the points of the followed path [m]."""
_ALONG, _ACROSS, _HEADING = 2.0, 18.0, 6.0
"""Gains of the tracking law (Kanayama 1990) for errors along the path [1/s], across it [1/m^2] and in heading [1/m]."""
_SPREAD = 7
"""Number of path points over which the heading is averaged."""
_MOST_STEPS = 6000
"""Largest number of rows of an episode."""
_ARRIVED = 0.02
"""Remaining distance along the path at which the drive ends [m]."""


@dataclass(frozen=True, kw_only=True)
class DriveLimits:
    """Limits of a drive."""

    speed: float
    """Largest speed [m/s]."""
    turn: float
    """Largest turn rate [rad/s]."""
    acceleration: float = 1.0
    """Largest acceleration along the path [m/s^2]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DrivenPath:
    """Drive at a fixed rate. Action t moves the body from pose t to pose t + 1; the last action is 0."""

    poses: FloatArray
    """(T, 3) x, y [m] and unwrapped yaw [rad]."""
    actions: FloatArray
    """(T, 2) forward speed [m/s] and turn rate, counter-clockwise [rad/s]."""
    along: FloatArray
    """(T,) distance along the path [m]."""
    length: float
    """Length of the path [m]."""


def integrate(start: FloatArray, actions: FloatArray, rate: float) -> FloatArray:
    """Integrate actions exactly, as arcs.

    Args:
        start: (3,) x, y [m] and yaw [rad].
        actions: (T, 2) forward speed [m/s] and turn rate [rad/s]; the last action is not used.
        rate: Actions per second [Hz].

    Returns:
        (T, 3) poses; the first one is ``start``.
    """
    poses = np.empty((len(actions), 3))
    poses[0] = start
    for row in range(len(actions) - 1):
        poses[row + 1] = step(poses[row], actions[row, 0], actions[row, 1], 1.0 / rate)
    return poses


def step(pose: FloatArray, forward: float, turn: float, time: float) -> FloatArray:
    """Move a pose along an arc; return the new pose.

    Args:
        pose: (3,) x, y [m] and yaw [rad].
        forward: Forward speed [m/s].
        turn: Turn rate, counter-clockwise [rad/s].
        time: Duration [s].
    """
    x, y, yaw = pose
    half = 0.5 * turn * time
    chord = forward * time * np.sinc(half / np.pi)
    return np.array([x + chord * np.cos(yaw + half), y + chord * np.sin(yaw + half), yaw + turn * time])


def drive_path(
    path: FloatArray, limits: DriveLimits, *, rate: float, yaw: float | None = None, end_yaw: float | None = None
) -> DrivenPath:
    """Simulate a drive along a path.

    Args:
        path: (n, 2 or 3) path from start to goal [m].
        limits: Limits of the drive.
        rate: Rows per second [Hz].
        yaw: Heading at the start [rad]; the body first turns on the spot into the direction of the path. By default,
            the body already has this direction.
        end_yaw: Heading at the end [rad], to which the body turns on the spot; by default the heading of arrival.
    """
    points = resample(np.asarray(path, dtype=float)[:, :2], _FINE)
    along, heading, curvature = _shape(points)
    speed = _speeds(along, curvature, limits)
    first = float(heading[0]) if yaw is None else heading[0] + _wrapped(yaw - heading[0])
    poses, actions, places = [np.array([*points[0], first])], [], [0.0]

    def push(forward: float, turn: float, place: float) -> None:
        actions.append((forward, turn))
        poses.append(step(poses[-1], forward, turn, 1.0 / rate))
        places.append(place)

    def turn_to(goal: float, place: float) -> None:
        angle = goal - poses[-1][2]
        count = int(np.ceil(abs(angle) / limits.turn * rate))
        for _ in range(count):
            push(0.0, angle / count * rate, place)

    turn_to(float(heading[0]), 0.0)
    place = 0.0
    while place < along[-1] - _ARRIVED and len(poses) < _MOST_STEPS:
        wanted = float(np.interp(place, along, speed))
        at = np.array([np.interp(place, along, column) for column in points.T])
        facing, bend = float(np.interp(place, along, heading)), float(np.interp(place, along, curvature))
        x, y, now = poses[-1]
        off = at - (x, y)
        ahead = off[0] * np.cos(now) + off[1] * np.sin(now)
        aside = -off[0] * np.sin(now) + off[1] * np.cos(now)
        wrong = facing - now
        forward = float(np.clip(wanted * np.cos(wrong) + _ALONG * ahead, 0.0, limits.speed))
        turn = wanted * (bend + _ACROSS * aside + _HEADING * np.sin(wrong))
        turn = float(np.clip(turn, -limits.turn, limits.turn))
        place = min(place + wanted / rate, float(along[-1]))
        push(forward, turn, place)
    if end_yaw is not None:
        turn_to(poses[-1][2] + _wrapped(end_yaw - poses[-1][2]), float(along[-1]))
    return DrivenPath(
        poses=np.array(poses), actions=np.array([*actions, (0.0, 0.0)]), along=np.array(places), length=float(along[-1])
    )


def _shape(points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distance along points (n, 2) [m], unwrapped headings [rad] and curvatures [1/m], each (n,)."""
    steps = np.diff(points, axis=0)
    along = np.append(0.0, np.cumsum(np.linalg.norm(steps, axis=1)))
    raw = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    raw = np.append(raw, raw[-1])
    spread = min(_SPREAD, len(raw))
    kernel = np.ones(spread) / spread
    padded = np.pad(raw, (spread // 2, spread - 1 - spread // 2), mode="edge")
    heading = np.convolve(padded, kernel, mode="valid")
    return along, heading, np.gradient(heading, np.maximum(along, np.arange(len(along)) * 1e-9))


def _speeds(along: FloatArray, curvature: FloatArray, limits: DriveLimits) -> FloatArray:
    """Compute the speed (n,) at each point [m/s] in a forward and a backward pass; low at both ends, but never 0."""
    least = 0.1 * limits.speed
    speed = np.minimum(limits.speed, 0.8 * limits.turn / np.maximum(np.abs(curvature), 1e-6))
    speed[[0, -1]] = least
    for order in (range(1, len(speed)), range(len(speed) - 2, -1, -1)):
        for here in order:
            there = here - 1 if order.step > 0 else here + 1
            reach = np.sqrt(speed[there] ** 2 + 2 * limits.acceleration * abs(along[here] - along[there]))
            speed[here] = min(speed[here], reach)
    return np.maximum(speed, least)


def _wrapped(angle: float) -> float:
    """Wrap an angle to -pi to pi [rad]."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)
