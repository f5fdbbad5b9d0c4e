"""Plan stage of navigation: the drive from an episode's start to its goal, filtered before anything is rendered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Layout, PhysicalLayout
from nimbus.datagen.episode.trajectory import Outcome, Reason, SkillSegment, StartState, Trajectory
from nimbus.datagen.navigate.drive import integrate
from nimbus.datagen.navigate.goals import NavigationGoal
from nimbus.datagen.navigate.instruct.compose import instruct, is_instructed, landmark_count
from nimbus.datagen.navigate.keep import Rejection, check_arrival, check_clearance, refusal, swept_clearance
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.route import Route, find_route
from nimbus.datagen.pipeline import NoSettings, RunContext, register_component
from nimbus.datagen.stages import Planned, Planner, Randomized
from nimbus.datagen.tasks.navigation_assets import NavigationAssets
from nimbus.datagen.tasks.navigation_file import BASE
from nimbus.datagen.tasks.task import NavigationTask

JOINTS = ("x", "y", "yaw")
"""Joints of a driving body [m, m, rad]."""
ACTIONS = ("forward", "turn")
"""Actions of a driving body [m/s, rad/s]."""


class PathPlanner(Planner["NavigationAssets"]):
    """Finds a path, smooths it, and simulates the drive along it.

    A path that a filter rejects is a failed attempt; its outcome contains the measured value and the limit.

    Args:
        task: The task.
    """

    version: ClassVar[int] = 4

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        """Create the planner of a run."""
        return cls(context.need_navigation())

    def __init__(self, task: NavigationTask) -> None:
        self._task = task

    def process(self, item: Randomized[NavigationAssets]) -> Iterator[Planned[NavigationAssets]]:
        """Yield the only attempt at a layout: a new plan, or the plan that is already stored."""
        if (stored := item.scene.request.plan) is not None:
            trajectory, attempt = stored.trajectory, stored.attempt
        else:
            trajectory, attempt = plan_drive(self._task, item.scene.assets, item.layouts[0].physical), 0
        layouts = tuple(instruct(item.scene.assets.place, layout, trajectory) for layout in item.layouts)
        if item.scene.request.plan is None:
            trajectory = check_landmarks(layouts, trajectory, self._task.keep.landmarks or 0)
        yield Planned(scene=item.scene, layouts=layouts, trajectory=trajectory, attempt=attempt)


register_component("plan", "path", PathPlanner, NoSettings)


def plan_drive(task: NavigationTask, assets: NavigationAssets, physical: PhysicalLayout) -> Trajectory:
    """Plan the drive of a layout, and evaluate it."""
    goal: dict[str, Any] = physical.drawn["goal"]
    start = np.array([goal["start"][0], goal["start"][1], goal["start"][3]])
    if goal["refused"]:
        # The randomizer found no valid goal; its reason becomes the outcome of the attempt.
        return _failed(task, start, goal, refusal(goal["refused"]))
    route = find_route(
        assets.place,
        tuple(goal["start"]),
        tuple(goal["goal"]),
        limits=task.body.limits,
        rate=task.rate,
        facing=tuple(goal["facing"]) if goal["facing"] else None,
    )
    if route is None:
        return _failed(task, start, goal, Rejection(reason=Reason.UNREACHABLE, detail="no path"))
    signals = {
        "clearance": route.clearance,
        "distance_to_goal": route.distance_to_goal,
        "progress": route.progress,
    }
    rejected = _judge(task, route.clearance, route.feet[-1], np.array(goal["goal"]))
    return make_trajectory(
        route.driven.poses,
        route.driven.actions,
        route.feet[:, 2],
        rate=task.rate,
        segments=_segments(assets.scene, route),
        outcome=_outcome(rejected),
        signals=signals,
    )


def check_landmarks(layouts: Sequence[Layout], trajectory: Trajectory, least: int) -> Trajectory:
    """Return the trajectory, marked as failed if the instruction of a layout names fewer than ``least`` landmarks."""
    if not trajectory.outcome.success or not least or not is_instructed(layouts[0].physical.drawn):
        return trajectory
    named = min(landmark_count(layout) for layout in layouts)
    if named >= least:
        return trajectory
    rejected = Rejection(reason=Reason.UNGROUNDED, detail=f"the instruction names {named} landmarks, expected {least}")
    return replace(trajectory, outcome=_outcome(rejected))


def drive_again(
    task: NavigationTask, assets: NavigationAssets, physical: PhysicalLayout, stored: Trajectory
) -> Trajectory:
    """Integrate stored actions from the stored start, and evaluate the drive against the scene's triangles.

    Raises:
        InputError: The stored layout has no goal.
    """
    poses = integrate(stored.start.joint_positions, stored.actions, stored.rate)
    # Actions are planar; the height of the floor is that of the stored drive.
    heights = stored.body_positions[:, 0, 2]
    feet = np.column_stack([poses[:, :2], heights])
    # The clearance is measured in the scene, so the result does not depend on the stored measure.
    body, goal = task.body, np.array(NavigationGoal.from_drawn(physical.drawn).goal)
    clearance = swept_clearance(assets.place.mesh, feet, step=body.step, height=body.height)
    rejected = _judge(task, clearance, feet[-1], goal)
    return make_trajectory(
        poses,
        stored.actions,
        heights,
        rate=stored.rate,
        segments=stored.segments,
        outcome=_outcome(rejected),
        signals=stored.signals | {"clearance": clearance},
    )


def _judge(task: NavigationTask, clearance: FloatArray, end: FloatArray, goal: FloatArray) -> Rejection | None:
    least = task.body.radius if task.keep.clearance is None else task.keep.clearance
    return check_clearance(clearance, least=least) or check_arrival(end, goal)


def _outcome(rejected: Rejection | None) -> Outcome:
    if rejected is None:
        return Outcome(success=True)
    return Outcome(success=False, phase="path", reason=rejected.reason, detail=rejected.detail)


def _failed(task: NavigationTask, start: FloatArray, goal: dict[str, Any], rejected: Rejection) -> Trajectory:
    height = np.array([float(goal["start"][2])])
    zero = np.zeros((1, 2))
    return make_trajectory(
        start[None], zero, height, rate=task.rate, segments=(), outcome=_outcome(rejected), signals={}
    )


def make_trajectory(
    poses: FloatArray,
    actions: FloatArray,
    heights: FloatArray,
    *,
    rate: float,
    segments: tuple[SkillSegment, ...],
    outcome: Outcome,
    signals: dict[str, FloatArray],
) -> Trajectory:
    """Make the trajectory of a drive.

    Args:
        poses: (T, 3) x, y [m] and yaw [rad].
        actions: (T, 2) forward [m/s] and turn [rad/s].
        heights: (T,) height of the floor [m].
        rate: Rate of rows [Hz].
        segments: Rooms crossed.
        outcome: Success, or the filter that rejected the drive.
        signals: Measures (T,) by name.
    """
    half = 0.5 * poses[:, 2]
    none = np.zeros_like(half)
    # Actions are in the frame of the body; joint velocities are in the world, like the joints themselves.
    world = np.column_stack([actions[:, 0] * np.cos(poses[:, 2]), actions[:, 0] * np.sin(poses[:, 2]), actions[:, 1]])
    return Trajectory(
        rate=rate,
        time=np.arange(len(poses)) / rate,
        joint_names=JOINTS,
        joint_positions=poses,
        joint_velocities=world,
        action_names=ACTIONS,
        actions=actions,
        body_names=(BASE,),
        body_positions=np.column_stack([poses[:, :2], heights])[:, None],
        body_wxyz=np.column_stack([np.cos(half), none, none, np.sin(half)])[:, None],
        segments=segments,
        outcome=outcome,
        start=StartState(joint_positions=poses[0].copy(), joint_velocities=np.zeros(3)),
        signals=signals,
    )


def _segments(scene: NavigationScene, route: Route) -> tuple[SkillSegment, ...]:
    """Return one segment for each room crossed; doorways belong to the previous room."""
    # The lookup is slightly above the floor, because rounding may put a point of the floor below its room.
    rooms = scene.room_of(route.feet + (0.0, 0.0, 0.05))
    for row in range(1, len(rooms)):
        rooms[row] = rooms[row] or rooms[row - 1]
    found: list[SkillSegment] = []
    begin = 0
    for row in range(1, len(rooms) + 1):
        if row == len(rooms) or rooms[row] != rooms[begin]:
            found.append(SkillSegment(start=begin, stop=row, skill="go", target=rooms[begin], phase="drive"))
            begin = row
    return tuple(found)
