"""Checks of signals: finite numbers, jumps, limits, constant columns, stored statistics, delay of actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.datasets.quality.finding import fail, warn
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.datasets.quality.view import EpisodeView
from nimbus.datagen.errors import Diagnostic, InputError

STATE, ACTION = "observation.state", "action"
COUNTERS = ("timestamp", "frame_index", "episode_index", "index", "task_index")
_BACK = 0.5
"""Largest fraction of a jump that may remain after the next row for the value to count as having jumped back."""
_MOST_STEPS = 200_000
"""Number of steps that are kept to determine the usual motion of joints."""
_MOST_LAG = 8
_CLEARLY = 0.9
"""Largest ratio of the error with a lead to the error without one; above it, the lead counts as 0."""
_FOLLOWS = 0.3
"""Largest error between actions and states, as a fraction of their spread, for actions to count as positions."""


@dataclass(frozen=True, kw_only=True)
class JointLimits:
    """Limits of J joints; infinite for a joint without limits."""

    names: tuple[str, ...]
    low: NDArray[np.float64]
    """(J,) lower limits [rad or m]."""
    high: NDArray[np.float64]
    """(J,) upper limits [rad or m]."""
    speed: NDArray[np.float64]
    """(J,) velocity limits [rad/s or m/s]."""

    def check(
        self, where: str, state: NDArray[np.float64], *, fps: float, thresholds: Thresholds
    ) -> Iterator[Diagnostic]:
        """Yield findings on the joint farthest beyond its limits, and on the joint that exceeds its speed limit most.

        Args:
            where: Name of the episode in findings.
            state: (T, J) joint positions [rad or m].
            fps: Rows per second [Hz].
            thresholds: Limits of the checks.
        """
        if state.shape[1] != len(self.names):
            return
        beyond = np.maximum(self.low - state, state - self.high)
        row, column = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
        if beyond[row, column] > thresholds.limit:
            what = f"{self.names[column]} is {beyond[row, column]:.3g} beyond its limit in row {row}"
            yield fail("limits", where, what)
        fast = np.abs(np.diff(state, axis=0)) * fps / self.speed
        row, column = np.unravel_index(int(np.argmax(fast)), fast.shape)
        if fast[row, column] > thresholds.speed:
            what = f"{self.names[column]} moves at {fast[row, column]:.1f} times its speed limit after row {row}"
            yield fail("limits", where, what)


def find_joint_limits(robot: str, joint_names: tuple[str, ...]) -> JointLimits | None:
    """Return the limits of a robot's joints.

    Args:
        robot: Name of the robot, or the path of its file.
        joint_names: Joint names of the columns of the state.

    Returns:
        Limits of the joints; None if the robot is unknown or has none of them.
    """
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.robots.urdf import assemble

    if not robot or not joint_names:
        return None
    try:
        known = load_robot(robot)
        model = assemble(known.pieces, robot=known.name)
    except InputError:
        return None
    names = [str(joint.get("name")) for joint in model.findall("joint")]
    limits = dict(zip(names, (joint.find("limit") for joint in model.findall("joint")), strict=True))
    if not set(joint_names) & set(limits):
        return None

    def column(key: str, missing: float) -> NDArray[np.float64]:
        """Return one limit of all joints (J,) [rad or m, or per second]."""
        found = (limits.get(name) for name in joint_names)
        return np.array([missing if one is None else float(one.get(key, missing)) for one in found])

    speed = column("velocity", np.inf)
    return JointLimits(
        names=joint_names,
        low=column("lower", -np.inf),
        high=column("upper", np.inf),
        speed=np.where(speed > 0, speed, np.inf),
    )


class SignalChecks:
    """Checks the signals of each episode, and collects them for checks across episodes.

    Args:
        stats: Stored statistics of the dataset, by feature.
        thresholds: Limits of the checks.
        limits: Limits of the joints; None if unknown.
        frame_count: Number of rows of all episodes.
        fps: Rows per second [Hz].
    """

    def __init__(
        self,
        stats: Mapping[str, Mapping[str, Any]],
        thresholds: Thresholds,
        *,
        limits: JointLimits | None = None,
        frame_count: int = 0,
        fps: float = 1.0,
    ) -> None:
        self._stats, self._thresholds, self._limits, self._fps = stats, thresholds, limits, fps
        self._every = max(1, frame_count // _MOST_STEPS)
        self._steps: list[FloatArray] = []
        self._jumps: list[tuple[str, int, int, float, float]] = []
        self._lags: dict[str, int] = {}
        self.totals: dict[str, dict[str, Any]] = {}
        """Count, sum, minimum and maximum over all rows, by feature."""

    def add(self, clip: EpisodeView) -> Iterator[Diagnostic]:
        """Yield the findings on a single episode."""
        good: dict[str, FloatArray] = {}
        for name, values in clip.columns.items():
            if values.dtype.kind not in "fiu" or name in COUNTERS or not len(values):
                continue
            rows = values.reshape(len(values), -1).astype(np.float64)
            bad = ~np.isfinite(rows).all(axis=1)
            if bad.any():
                yield fail("finite", clip.name, f"{name}: row {int(np.argmax(bad))} has a number that is not finite")
                continue
            known = self.totals.setdefault(name, {"count": 0, "sum": 0.0, "low": np.inf, "high": -np.inf})
            if known["count"] and rows.shape[1] != len(known["sum"]):
                what = f"{name} has {rows.shape[1]} values per row, {len(known['sum'])} in earlier episodes"
                yield fail("files", clip.name, what)
                continue
            good[name] = rows
            yield from self._compare(rows, clip.stats.get(name, {}), f"{clip.name}, {name}")
            known["count"] += len(rows)
            known["sum"] = known["sum"] + rows.sum(axis=0)
            known["low"] = np.minimum(known["low"], rows.min(axis=0))
            known["high"] = np.maximum(known["high"], rows.max(axis=0))
        state, action = good.get(STATE), good.get(ACTION)
        if state is not None and len(state) > 2:
            self._note_jumps(clip, state)
            yield from self._still(clip, state)
            if self._limits:
                yield from self._limits.check(clip.name, state, fps=self._fps, thresholds=self._thresholds)
        if state is not None and action is not None and (lag := lag_of(state, action)) is not None:
            self._lags[clip.name] = lag

    def end(self) -> list[Diagnostic]:
        """Return the findings across all episodes."""
        return [*self._find_jumps(), *self._constants(), *self._statistics(), *self._find_lags()]

    def _note_jumps(self, clip: EpisodeView, rows: FloatArray) -> None:
        """Record candidates for jumps; they are judged when the usual step of all episodes is known."""
        step = np.diff(rows, axis=0)
        there, back = step[:-1], step[1:]
        # A gripper may close within one step, but a real motion does not return in the next one.
        size = np.minimum(np.abs(there), np.abs(back))
        size[np.abs(there + back) >= _BACK * np.abs(there)] = 0.0
        for column in np.flatnonzero(size.max(axis=0) > 0):
            row = int(np.argmax(size[:, column]))
            moved = float(there[row, column])
            self._jumps.append((clip.name, row + 1, int(column), float(size[row, column]), moved))
        self._steps.append(np.abs(step[clip.number % self._every :: self._every]))

    def _find_jumps(self) -> Iterator[Diagnostic]:
        if not self._jumps:
            return
        known = self.totals[STATE]
        share = self._thresholds.jump_share * (known["high"] - known["low"])
        usual = np.quantile(np.concatenate(self._steps), 0.95, axis=0)
        far = np.maximum(self._thresholds.jump * usual, share)
        for name, row, column, size, moved in self._jumps:
            if size > far[column]:
                yield fail("jumps", name, f"{STATE}[{column}] jumps by {abs(moved):.3g} in row {row} and back")

    def _still(self, clip: EpisodeView, rows: FloatArray) -> Iterator[Diagnostic]:
        share = float((np.abs(np.diff(rows, axis=0)).max(axis=1) < self._thresholds.still_step).mean())
        if share > self._thresholds.still_share:
            yield warn("still", clip.name, f"nothing moves in {share:.0%} of the rows")

    def _constants(self) -> Iterator[Diagnostic]:
        for name, known in self.totals.items():
            still = np.flatnonzero(known["high"] == known["low"])
            if len(still):
                yield warn("constant", name, f"column {still[0]} is constant, so normalization would divide by zero")

    def _statistics(self) -> Iterator[Diagnostic]:
        for name, known in self.totals.items():
            right = {"min": known["low"], "max": known["high"], "mean": known["sum"] / known["count"]}
            yield from self._wrong(right, self._stats.get(name, {}), name)

    def _compare(self, rows: FloatArray, stored: Mapping[str, Any], where: str) -> Iterator[Diagnostic]:
        if stored:
            right = {"min": rows.min(axis=0), "max": rows.max(axis=0), "mean": rows.mean(axis=0)}
            yield from self._wrong(right, stored, where)

    def _wrong(self, right: Mapping[str, FloatArray], stored: Mapping[str, Any], where: str) -> Iterator[Diagnostic]:
        scale = np.maximum(right["max"] - right["min"], 1e-9)
        for key, value in right.items():
            found = stored.get(key)
            if found is None:
                continue
            try:
                numbers = np.asarray(found, np.float64)
            except (TypeError, ValueError, OverflowError):
                numbers = np.zeros(0)
            # The second term allows rounding to single precision, which matters for small ranges.
            near = self._thresholds.stats * scale + 1e-6 * np.abs(value)
            if numbers.shape != value.shape or not np.all(np.abs(numbers - value) <= near):
                yield fail("stats", where, f"the stored {key} differs from that of the rows")
                return

    def _find_lags(self) -> Iterator[Diagnostic]:
        if len(self._lags) < 3:
            return
        usual = int(np.median([*self._lags.values()]))
        if usual < 0:
            what = f"actions lag behind states by {-usual} rows, but they should lead"
            yield fail("action_lag", "all episodes", what)
        for name, lag in self._lags.items():
            if abs(lag - usual) >= self._thresholds.lag:
                yield fail("action_lag", name, f"actions lead states by {lag} rows, in other episodes by {usual}")


def lag_of(state: FloatArray, action: FloatArray) -> int | None:
    """Estimate the number of rows by which actions lead the commanded states.

    Args:
        state: (T, D) states of an episode [rad or m].
        action: (T, A) actions in the same rows [rad or m].

    Returns:
        Number of rows, negative for a lag; None if actions are not positions, nothing moves, or the episode is too
        short.
    """
    columns = min(state.shape[1], action.shape[1])
    count = min(len(state), len(action))
    state, action = state[:count, :columns], action[:count, :columns]
    spread = state.std(axis=0)
    moving = spread > 1e-3
    if not moving.any() or count <= 4 * _MOST_LAG:
        return None
    state, action, spread = state[:, moving], action[:, moving], spread[moving]
    errors = {}
    inner = slice(_MOST_LAG, count - _MOST_LAG)
    for lag in range(-_MOST_LAG, _MOST_LAG + 1):
        shifted = state[_MOST_LAG + lag : count - _MOST_LAG + lag]
        # The median over columns is robust to grippers, which open in steps.
        errors[lag] = float(np.median(np.sqrt(((action[inner] - shifted) ** 2).mean(axis=0)) / spread))
    best = min(errors, key=lambda lag: (errors[lag], abs(lag)))
    if errors[best] >= _FOLLOWS:
        return None
    return best if errors[best] < _CLEARLY * errors[0] else 0
