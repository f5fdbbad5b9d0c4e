"""Input from a page in a browser: keys, gamepad and six-axis mouse as axes, and dragged frames of tools."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.files.bounded import as_typed, parse_plain
from nimbus.datagen.teleoperate.operator_input import (
    DeviceLost,
    InputDevice,
    OperatorInput,
    PoseTarget,
    ToolCommand,
    ToolMotion,
    ToolTwist,
)

SPEED, TURN = 0.25, 1.2
"""Speed [m/s] and angular speed [rad/s] of a tool at full deflection."""
_DEAD = 0.08
"""Deflection below which a stick counts as released; worn sticks rest at 5 %."""
_STALE = 0.5
"""Age of a report above which its axes count as released, so that the tool stops while the page is busy [s]."""
_SILENCE = 10.0
"""Age of a report above which a page with deflected axes counts as lost [s]; pages report thirty times per second."""

_MOST_OWED = 3
"""Largest number of periods that short presses of a key can request in advance; more would move the tool long after."""

Axis: TypeAlias = Annotated[float, Meta(ge=-1.0, le=1.0)]
Presses: TypeAlias = Annotated[int, Meta(ge=-100, le=100)]


@dataclass(frozen=True, kw_only=True)
class PageReport:
    """Report of the page."""

    number: Annotated[int, Meta(ge=0, le=2**53)]
    """Number of the last change of the input, used to measure the latency."""
    axes: tuple[Axis, Axis, Axis, Axis, Axis, Axis] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """Deflections along and about the axes x, y and z of the world."""
    presses: tuple[Presses, Presses, Presses, Presses, Presses, Presses] = (0, 0, 0, 0, 0, 0)
    """Number of key presses since the last report for each axis: those of its positive key minus the others."""
    closed: bool | None = None
    """Requested state of the gripper; None keeps it."""
    arm: Annotated[int, Meta(ge=0, le=15)] = 0
    """Index of the arm that the axes move."""
    device: Annotated[str, Meta(max_length=40)] = "keyboard"
    lost: Annotated[str, Meta(max_length=80)] = ""
    """Name of a disconnected device; empty if all are connected."""
    latency: Annotated[float, Meta(ge=0.0, le=600.0)] = 0.0
    """Time from the last change of the input until its effect was displayed [s]; 0 if unknown."""


class PageInput(InputDevice):
    """Newest input of a page, passed from the threads of the server to the thread of the loop.

    Args:
        arms: Names of the robot's arms.
    """

    def __init__(self, arms: tuple[str, ...]) -> None:
        self._arms, self._lock = arms, threading.Lock()
        self._report: PageReport | None = None
        self._reported = 0.0
        self._dragged: dict[str, FloatArray] = {}
        self._openings: dict[str, float] = {}
        self._owed = np.zeros(6, dtype=int)
        """Number of periods at full deflection that presses of keys still request for each axis, with sign."""
        self._names: dict[str, None] = {}
        self._lost = ""
        self.number = 0
        """Number of the last input that was polled."""

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Kinds of the devices used so far, joined by ``+``."""
        return "+".join(self._names)

    @property
    def latency(self) -> float:
        """Last latency measured by the page [s]; 0 without a measurement."""
        return self._report.latency if self._report else 0.0

    def report(self, report: PageReport) -> None:
        """Accept a report of the page."""
        with self._lock:
            before, self._report, self._reported = self._report, report, time.monotonic()
            self._owed = np.clip(self._owed + report.presses, -_MOST_OWED, _MOST_OWED)
            if any(report.axes) or any(report.presses) or report.closed is not None:
                self._names[report.device] = None
            if report.closed is not None and report.arm < len(self._arms):
                self._openings[self._arms[report.arm]] = 0.0 if report.closed else 1.0
            if report.lost and (before is None or report.lost != before.lost):
                self._lost = report.lost

    def drag(self, arm: str, world_T_tool: FloatArray) -> None:
        """Accept the pose (4, 4) of a dragged tool frame [m]."""
        with self._lock:
            self._dragged[arm] = world_T_tool
            self._names["mouse"] = None

    def poll(self) -> OperatorInput:
        """Return the input since the last poll; axes stay deflected until they are reported as released.

        A key that was released before a poll deflects its axis in one poll for each press.

        Raises:
            DeviceLost: A device was disconnected, or the page disappeared while axes were deflected.
        """
        with self._lock:
            report, dragged, openings = self._report, self._dragged, self._openings
            self._dragged, self._openings = {}, {}
            if lost := self._lost:
                self._lost = ""
                raise DeviceLost("is disconnected", where=lost, instead="connect it again")
            axes = self._axes(report)
            age = time.monotonic() - self._reported
            if report and axes.any() and age > _SILENCE:
                self._report = None
                raise DeviceLost("no longer reports", where="the page", instead="open it again")
            if age > _STALE:
                axes = np.zeros(6)
            axes = self._with_presses(axes)
            self.number = report.number if report else 0
        motions: dict[str, ToolMotion] = {arm: PoseTarget(world_T_tool=pose) for arm, pose in dragged.items()}
        if report and axes.any() and report.arm < len(self._arms):
            motions[self._arms[report.arm]] = ToolTwist(linear=SPEED * axes[:3], angular=TURN * axes[3:])
        names = dict.fromkeys((*motions, *openings))
        return OperatorInput(
            arms={arm: ToolCommand(motion=motions.get(arm), opening=openings.get(arm)) for arm in names}
        )

    def _with_presses(self, axes: FloatArray) -> FloatArray:
        """Deflect axes (6,) of keys that were released before this poll, and count this poll as one of the presses."""
        given = np.where(axes == 0, np.sign(self._owed), axes)
        self._owed = np.where(np.sign(given) == np.sign(self._owed), self._owed - np.sign(self._owed), self._owed)
        return given

    def _axes(self, report: PageReport | None) -> FloatArray:
        axes = np.array(report.axes if report else (0.0,) * 6)
        # Deflections beyond the dead zone are squared, for fine motions near the center of a stick.
        beyond = np.maximum(np.abs(axes) - _DEAD, 0.0) / (1 - _DEAD)
        return np.sign(axes) * beyond**2


def read_report(text: str) -> PageReport:
    """Parse a report of the page.

    Raises:
        InputError: The text is not a report.
    """
    where = "the page's input"
    return as_typed(PageReport, parse_plain(text, where=where), where=where)
