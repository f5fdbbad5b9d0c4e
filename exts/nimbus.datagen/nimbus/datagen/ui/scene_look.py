"""Drawable content of a preview: the parts of a layout, its cameras, and the motion of its bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import Camera, Layout, PhysicalLayout, Vector
from nimbus.datagen.episode.trajectory import Outcome, SkillSegment, Trajectory
from nimbus.datagen.render.render_inputs import RenderPart
from nimbus.datagen.render.render_parts import build_object_parts, build_scene_parts
from nimbus.datagen.usd.stage import layout_stage


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Values over the steps of a motion."""

    title: str
    names: tuple[str, ...]
    rows: NDArray[np.float64]
    """(T, N)"""


@dataclass(frozen=True, kw_only=True)
class PreviewMotion:
    """Poses of all bodies by step; one step for a static layout."""

    rate: float
    """Rate of the motion [Hz]."""
    names: tuple[str, ...]
    positions: NDArray[np.float64]
    """(T, B, 3) [m], world frame"""
    wxyz: NDArray[np.float64]
    """(T, B, 4)"""
    segments: tuple[SkillSegment, ...] = ()
    outcome: Outcome | None = None
    plots: tuple[Plot, ...] = ()

    @property
    def step_count(self) -> int:
        """Number T of steps."""
        return len(self.positions)

    def at(self, moment: float) -> PreviewMotion:
        """Interpolate the motion at a fractional step; return a motion of one step."""
        low = int(moment)
        share, high = moment - low, min(low + 1, self.step_count - 1)
        one, other = self.wxyz[low], self.wxyz[high]
        other = np.where((one * other).sum(axis=1, keepdims=True) < 0, -other, other)
        wxyz = (1 - share) * one + share * other
        return PreviewMotion(
            rate=self.rate,
            names=self.names,
            positions=((1 - share) * self.positions[low] + share * self.positions[high])[None],
            wxyz=(wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True))[None],
        )

    def phase(self, step: int) -> str:
        """Return the robot's activity in a step, for display."""
        found = [one for one in self.segments if one.start <= step < one.stop]
        return " ".join(part for part in (found[0].skill, found[0].target, found[0].phase) if part) if found else ""


@dataclass(frozen=True, kw_only=True)
class SceneLook:
    """Drawable content of a layout."""

    parts: tuple[RenderPart, ...]
    layout: Layout | None
    motion: PreviewMotion
    view: tuple[Vector, Vector] | None = None
    """Initial eye and target for a scene that is larger than a table [m]."""

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """Cameras of the layout."""
        return self.layout.visual.cameras if self.layout else ()


def look_parts(stage: Any, robot: Any, physical: PhysicalLayout) -> tuple[RenderPart, ...]:
    """Return all visible parts of a layout."""
    stage = layout_stage(stage, physical)
    return (*build_scene_parts(stage, robot), *(part for item in physical.objects for part in build_object_parts(item)))


def motion_of(trajectory: Trajectory) -> PreviewMotion:
    """Return the motion of a trajectory."""
    return PreviewMotion(
        rate=trajectory.rate,
        names=trajectory.body_names,
        positions=trajectory.body_positions,
        wxyz=trajectory.body_wxyz,
        segments=trajectory.segments,
        outcome=trajectory.outcome,
        plots=tuple(_plots(trajectory)),
    )


def _plots(trajectory: Trajectory) -> Iterator[Plot]:
    yield Plot(title="joints [rad, m]", names=trajectory.joint_names, rows=trajectory.joint_positions)
    yield Plot(title="joint velocities [rad/s, m/s]", names=trajectory.joint_names, rows=trajectory.joint_velocities)
    yield Plot(title="actions [rad, m]", names=trajectory.action_names, rows=trajectory.actions)
    yield Plot(title="heights [m]", names=trajectory.body_names, rows=trajectory.body_positions[:, :, 2])
    for unit, ends in (("[m]", ("penetration", "slip")), ("[N]", ("force",))):
        names = tuple(name for name in trajectory.contacts if name.endswith(ends))
        if names:
            rows = np.stack([trajectory.contacts[name] for name in names], axis=1)
            yield Plot(title=f"contacts {unit}", names=names, rows=rows)
