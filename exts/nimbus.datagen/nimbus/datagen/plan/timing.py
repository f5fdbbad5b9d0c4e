"""Timing of paths, which are followed as fast as the limits allow and sampled at the period of the commands."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.plan.blend import BlendedPath, blend_corners
from nimbus.datagen.plan.path import IsFree, path_is_free

MIN_GRID = 8
"""Smallest number of TOPP-RA grid intervals on each line and arc."""

_PLOTS = ("matplotlib", "matplotlib.pyplot")
_IMPORTING = Lock()

RECORD_PERIOD = 1.0 / 15.0
"""Period of records and commands [s]."""


@dataclass(frozen=True, kw_only=True)
class TimedPath:
    """Motion from rest to rest, sampled every period.

    Between samples a controller may follow a straight line or a quadratic B-spline with the samples as control points.
    """

    time: FloatArray
    """(N,) times from 0 [s]."""
    positions: FloatArray
    """(N, J) positions [rad or m]."""
    velocities: FloatArray
    """(N, J) velocities [rad/s or m/s]."""


def time_path(
    waypoints: ArrayLike,
    velocity_limits: ArrayLike,
    acceleration_limits: ArrayLike,
    period: float = RECORD_PERIOD,
    *,
    is_free: IsFree | None = None,
    min_duration: float = 0.0,
    step: float = 0.02,
) -> TimedPath | None:
    """Time a polygon of postures.

    Corners are rounded and the rounded path is timed by TOPP-RA. When its samples are not free, the polygon itself is
    followed, with a stop at every corner. The duration is stretched to a multiple of the period.

    Args:
        waypoints: (P, J) corners of a path whose edges are free.
        velocity_limits: (J,) [rad/s].
        acceleration_limits: (J,) [rad/s^2].
        period: Time between samples [s].
        is_free: Predicate of free postures; by default all are free.
        min_duration: Smallest duration [s].
        step: Distance between checks on the straight lines between samples [rad].

    Returns:
        The motion, or ``None`` when the samples of neither version are free.
    """
    path = np.asarray(waypoints, dtype=float)
    velocity, acceleration = np.asarray(velocity_limits, dtype=float), np.asarray(acceleration_limits, dtype=float)
    free = is_free or (lambda q: True)
    if np.abs(path - path[0]).max() < 1e-6:
        return _rest(path[-1], max(min_duration, period), period)
    for timed in (_time_blended, _time_with_stops):
        motion = timed(path, velocity, acceleration, period, free, min_duration)
        if motion is not None and _commands_are_free(motion.positions, free, step):
            return motion
    return None


def _commands_are_free(commands: FloatArray, is_free: IsFree, step: float) -> bool:
    """Return True if the lines between commands (N, J) and the B-spline that rounds their corners are free."""
    # These are the midpoints of the spans of the quadratic B-spline that has the commands as control points.
    rounded = (commands[:-2] + 6.0 * commands[1:-1] + commands[2:]) / 8.0
    return path_is_free(commands, is_free, step=step) and all(map(is_free, rounded))


class Timed(Protocol):
    """Samples of a motion."""

    @property
    def time(self) -> FloatArray:
        """Return the times (N,) of the samples, from 0 [s]."""
        ...

    @property
    def positions(self) -> FloatArray:
        """Return the joint positions (N, J) [rad or m]."""
        ...

    @property
    def velocities(self) -> FloatArray:
        """Return the joint velocities (N, J) [rad/s or m/s]."""
        ...


def join_motions(motions: Sequence[Timed]) -> TimedPath:
    """Concatenate motions, with a rest where they meet."""
    time, positions, velocities = [motions[0].time], [motions[0].positions], [motions[0].velocities]
    for motion in motions[1:]:
        time.append(time[-1][-1] + motion.time[1:])
        positions.append(motion.positions[1:])
        velocities.append(motion.velocities[1:])
    return TimedPath(time=np.concatenate(time), positions=np.vstack(positions), velocities=np.vstack(velocities))


def _ticks(count: int, period: float) -> FloatArray:
    # Times are multiples of the period, because a running sum would accumulate rounding errors.
    return period * np.arange(count + 1, dtype=float)


def _rest(q: FloatArray, duration: float, period: float) -> TimedPath:
    count = int(np.ceil(duration / period - 1e-9))
    positions = np.tile(q, (count + 1, 1))
    return TimedPath(time=_ticks(count, period), positions=positions, velocities=np.zeros_like(positions))


def _time_blended(
    path: FloatArray, velocity: FloatArray, acceleration: FloatArray, period: float, free: IsFree, min_duration: float
) -> TimedPath | None:
    blended = blend_corners(path, free)
    motion = _parametrize(blended, velocity, acceleration)
    if motion is None:
        return None
    duration = motion.path_interval[1]
    # The last sample must fall on the end. Time is stretched uniformly, which keeps the path and lowers the velocities.
    count = max(1, int(np.ceil(max(duration, min_duration) / period - 1e-9)))
    slowdown = duration / (count * period)
    at = np.linspace(0.0, duration, count + 1)
    positions, velocities = motion(at), motion(at, 1) * slowdown
    # Interpolation leaves rounding errors at the ends; the next plan has to start exactly here, at rest.
    positions[0], positions[-1] = path[0], path[-1]
    velocities[0] = velocities[-1] = 0.0
    return TimedPath(time=_ticks(count, period), positions=positions, velocities=velocities)


class _ToppraPath:
    """Adapter of a path to TOPP-RA's interface."""

    def __init__(self, path: BlendedPath, dof: int) -> None:
        self._path = path
        self.dof = dof
        self.path_interval = np.array([0.0, path.length])
        self.waypoints = None

    def __call__(self, s: ArrayLike, order: int = 0) -> FloatArray:
        s = np.asarray(s, dtype=float)
        value = self._path(np.atleast_1d(s), order)
        return value[0] if s.ndim == 0 else value


@cache
def load_toppra() -> tuple[ModuleType, ModuleType]:
    """Import TOPP-RA's modules ``algorithm`` and ``constraint``.

    TOPP-RA imports matplotlib, for plots that are not drawn here. That takes as long as the rest of the import, and
    reads a file ``matplotlibrc`` of the current folder, which may be a dataset of others. Empty modules replace those
    of matplotlib that are not loaded already.
    """
    with _IMPORTING:
        stand_ins = {name: ModuleType(name) for name in _PLOTS if name not in sys.modules}
        sys.modules |= stand_ins
        try:
            return _import_toppra()
        finally:
            for name in stand_ins:
                del sys.modules[name]


def _import_toppra() -> tuple[ModuleType, ModuleType]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TOPP-RA's own source warns while it is imported.
        from toppra import algorithm, constraint
    logging.getLogger("toppra").setLevel(logging.ERROR)
    return algorithm, constraint


def _parametrize(path: BlendedPath, velocity: FloatArray, acceleration: FloatArray) -> Any:
    """Return the time-optimal motion along a path from rest to rest as a function of time, or ``None``."""
    algorithm, constraint = load_toppra()
    limits = [
        constraint.JointVelocityConstraint(np.column_stack([-velocity, velocity])),
        constraint.JointAccelerationConstraint(
            np.column_stack([-acceleration, acceleration]),
            # The limits hold at both ends of each interval, so samples between grid points keep them as well.
            discretization_scheme=constraint.DiscretizationType.Interpolation,
        ),
    ]
    solver = algorithm.TOPPRA(
        limits,
        _ToppraPath(path, len(velocity)),
        gridpoints=_grid(path),
        solver_wrapper="seidel",
        parametrizer="ParametrizeConstAccel",
    )
    return solver.compute_trajectory(0.0, 0.0)


def _grid(path: BlendedPath, *, count: int = 50) -> FloatArray:
    """Return grid points at all breaks of the path and evenly between them."""
    breaks = path.breaks
    # Breaks closer than 1e-4 are merged: they would give TOPP-RA intervals of almost no length.
    breaks = breaks[np.concatenate([[True], np.diff(breaks) > 1e-4])]
    breaks[-1] = path.length
    pieces = [
        np.linspace(low, high, max(MIN_GRID, int(np.ceil((high - low) / path.length * count))) + 1)[:-1]
        for low, high in zip(breaks[:-1], breaks[1:], strict=True)
    ]
    return np.concatenate([*pieces, [path.length]])


def _time_with_stops(
    path: FloatArray, velocity: FloatArray, acceleration: FloatArray, period: float, free: IsFree, min_duration: float
) -> TimedPath | None:
    """Time every edge separately, from rest to rest. Edges end exactly on samples, so that no corner is cut."""
    moving = np.concatenate([[True], np.abs(np.diff(path, axis=0)).max(axis=1) > 1e-9])
    corners = path[moving]
    share = min_duration / (len(corners) - 1)
    edges = zip(corners[:-1], corners[1:], strict=True)
    return join_motions([_time_edge(a, b, velocity, acceleration, period, share) for a, b in edges])


def _time_edge(
    start: FloatArray,
    end: FloatArray,
    velocity: FloatArray,
    acceleration: FloatArray,
    period: float,
    min_duration: float,
) -> TimedPath:
    """Time an edge with Ruckig in one degree of freedom, the fraction of the edge, so that motion stays on the line."""
    import ruckig

    move = end - start
    reach = np.maximum(np.abs(move), 1e-9)
    query = ruckig.InputParameter(1)
    query.target_position = [1.0]
    # The slowest joint limits the fraction's rate: velocity = rate * move for each joint.
    query.max_velocity = [float((velocity / reach).min())]
    query.max_acceleration = [float((acceleration / reach).min())]
    # Full acceleration is reached in 50 ms, which Ruckig requires as a finite jerk.
    query.max_jerk = [query.max_acceleration[0] / 0.05]
    trajectory = ruckig.Trajectory(1)
    result = ruckig.Ruckig(1).calculate(query, trajectory)
    if result not in (ruckig.Result.Working, ruckig.Result.Finished):
        raise RuntimeError(f"ruckig cannot time an edge: {result}")
    count = max(1, int(np.ceil(max(trajectory.duration, min_duration) / period - 1e-9)))
    slowdown = trajectory.duration / (count * period)
    samples = [trajectory.at_time(t)[:2] for t in np.linspace(0.0, trajectory.duration, count + 1)]
    fraction = np.array([position[0] for position, _ in samples])[:, None]
    speed = np.array([rate[0] for _, rate in samples])[:, None] * slowdown
    return TimedPath(time=_ticks(count, period), positions=start + fraction * move, velocities=speed * move)
