"""Environment of a task: physics, images and success conditions, advanced by one action at a time, without planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Layout, PhysicalLayout
from nimbus.datagen.episode.trajectory import Outcome, Reason, Trajectory
from nimbus.datagen.execute.interpreter import TaskJudge, task_scope
from nimbus.datagen.execute.observed_scene import ObservedScene, SceneSnapshot
from nimbus.datagen.execute.planner import settle
from nimbus.datagen.policies.features import SceneFeatures
from nimbus.datagen.policies.policy import STILL, Needs, PolicyObservation, PolicyTask
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.scene_assets import SceneAssets
from nimbus.datagen.tasks.task import Task

if TYPE_CHECKING:
    from nimbus.datagen.render.scene_renderer import SceneRenderer
    from nimbus.datagen.tasks.statements import Predicate

HOLD = 3
"""Number of consecutive steps in which all conditions must hold; a moment of success does not count."""
_MOVED = 0.02
"""Distance above which an object counts as moved [m]."""
_STIRRED = 0.01
"""Displacement of a joint above which its arm counts as moved [rad or m]; an arm that holds still sags by less."""


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """Judgment after one action."""

    is_success: bool
    """True if the task has been done for :data:`HOLD` steps."""
    failure: Outcome | None
    """First condition that does not hold; None if all hold and everything is at rest."""
    is_stable: bool = True
    """True while all numbers of the state are finite; otherwise the episode is over."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentSnapshot:
    """Environment at one instant of an episode."""

    scene: SceneSnapshot
    done_for: int
    """Number of consecutive steps in which the task has been done."""
    is_still: bool


class Environment:
    """One task with external step-by-step control.

    Args:
        task: The task.
        assets: Its loaded assets.
        needs: Requested parts of an observation.
        device: ``cpu`` or ``cuda``, for images.
        skill: Skill of the rows; ``policy`` marks rows that are not a demonstration.
        renders: True to render the images of observations; otherwise the environment's owner renders them.
    """

    def __init__(
        self,
        task: Task,
        assets: SceneAssets,
        *,
        needs: Needs | None = None,
        device: str = "cpu",
        skill: str = "policy",
        renders: bool = True,
    ) -> None:
        self.task, self.assets, self._skill, self._renders = task, assets, skill, renders
        self._needs, self._device = needs or Needs(), device
        self.simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
        self.simulation.load(PhysicalLayout(objects=()))  # this gives the ranges of the robot's joints

    @cached_property
    def features(self) -> SceneFeatures:
        """Layout of ``environment_state``."""
        return SceneFeatures(self.task, self.assets.robot)

    @cached_property
    def conventions(self) -> PolicyTask:
        """Names, limits, rate and cameras of the task."""
        robot = self.assets.robot
        low, high = action_limits(self.simulation)
        return PolicyTask(
            name=self.task.name,
            robot=robot.name,
            rate=self.task.rate,
            joint_names=robot.joint_names,
            action_names=robot.action_names,
            action_low=low,
            action_high=high,
            cameras={name: settings.size for name, settings in self.task.cameras.items()},
            feature_names=self.features.names if self._needs.environment_state else (),
        )

    @property
    def camera_names(self) -> tuple[str, ...]:
        """Names of the cameras whose images are rendered."""
        known = tuple(self.task.cameras)
        return known if self._needs.cameras is None else tuple(name for name in known if name in self._needs.cameras)

    @cached_property
    def _renderer(self) -> SceneRenderer:
        return policy_renderer(self.assets, self._device)

    def reset(self, layout: Layout) -> PolicyObservation:
        """Begin an episode with everything at its start and at rest.

        Args:
            layout: The drawn layout.
        """
        simulation, physical = self.simulation, layout.physical
        simulation.load(physical)
        settle(simulation)
        self.layout = layout
        self.scene = ObservedScene(simulation, physical, regions=self.task.regions)
        scope = task_scope(self.task, self.scene, physical)
        self._judge = TaskJudge(self.scene, scope)
        self._done_for = 0
        self._start_posture, self._is_still = simulation.joint_positions(), True
        self._pictures_loaded = False
        return self.observe()

    @property
    def step_count(self) -> int:
        """Number of actions of this episode so far."""
        return self.scene.step_count

    def observe(self) -> PolicyObservation:
        """Return an observation with the requested parts: joints, images, and features of the scene."""
        simulation = self.simulation
        empty = np.zeros(0)
        return PolicyObservation(
            step=self.step_count,
            state=simulation.joint_positions(),
            velocity=simulation.joint_velocities(),
            images=self.pictures() if self._renders else {},
            environment_state=self._features() if self._needs.environment_state else empty,
            instruction=self.layout.visual.instruction,
        )

    def _features(self) -> FloatArray:
        simulation = self.simulation
        return self.features.rows(
            self.layout.physical.objects,
            simulation.body_names,
            simulation.body_positions()[None],
            simulation.body_wxyz()[None],
        )[0]

    def pictures(self) -> Mapping[str, NDArray[np.uint8]]:
        """Render the present state with the requested cameras: (H, W, 3) each."""
        names = self.camera_names
        if not names:
            return {}
        simulation = self.simulation
        if not self._pictures_loaded:
            self._renderer.load(with_cameras(self.layout, names))
            self._pictures_loaded = True
        frames = self._renderer.render(
            simulation.body_names,
            simulation.body_positions()[None],
            simulation.body_wxyz()[None],
            first_step=self.step_count,
        )
        return {name: frames[name].rgb[0] for name in names}

    def present_action(self) -> FloatArray:
        """Action (A,) that commands the current posture [rad or m]."""
        return self.simulation.present_action()

    def step(self, action: FloatArray, *, phase: str | None = None) -> StepResult:
        """Run one action, and evaluate the conditions.

        Args:
            action: (A,) commanded positions of all arms and grippers [rad or m].
            phase: Label of the row; by default, it is derived from the activity of the hands.
        """
        target, part = self._activity()
        self.scene.advance(action, skill=self._skill, target=target, phase=part if phase is None else phase)
        if not self.simulation.is_stable:
            detail = "a position, velocity or acceleration is not finite"
            failure = Outcome(success=False, reason=Reason.UNSTABLE, detail=detail)
            return StepResult(is_success=False, failure=failure, is_stable=False)
        self._is_still = self._is_still and not self._has_stirred()
        failure = self.judge()
        self._done_for = self._done_for + 1 if failure is None else 0
        return StepResult(is_success=self._done_for >= HOLD, failure=failure)

    def snapshot(self) -> EnvironmentSnapshot:
        """Copy the current state of the episode."""
        return EnvironmentSnapshot(scene=self.scene.snapshot(), done_for=self._done_for, is_still=self._is_still)

    def rewind(self, snapshot: EnvironmentSnapshot) -> None:
        """Return to an earlier state of the same episode."""
        self.scene.rewind(snapshot.scene)
        self._done_for, self._is_still = snapshot.done_for, snapshot.is_still

    def resolve(self, condition: Predicate) -> Predicate:
        """Resolve the references of a condition of success to names of this layout."""
        return self._judge.resolved(condition, self._judge.scope)

    def judge(self) -> Outcome | None:
        """Return the first condition of success that does not hold; None when all hold and everything is at rest."""
        if failure := self._judge.failure(self.task.success, self._judge.scope):
            return failure
        moving = next((name for name in self.scene.objects if not self.scene.is_at_rest(name)), None)
        if moving is None:
            return None
        return Outcome(success=False, phase="at_rest", reason=Reason.NOT_AT_REST, detail=f"{moving} moves")

    @property
    def activity(self) -> str:
        """Return the current activity of the hands: reach, touch, hold, or after (something moved and nothing is held).

        It is ``still`` if no arm has moved since the start.
        """
        return STILL if self._is_still else self._activity()[1]

    def _has_stirred(self) -> bool:
        way = np.abs(self.simulation.joint_positions() - self._start_posture)
        return bool(way[self._arm_columns].max() > _STIRRED)

    @cached_property
    def _arm_columns(self) -> list[int]:
        robot = self.assets.robot
        return [robot.joint_names.index(name) for one in robot.arms for name in one.arm.joints]

    def _activity(self) -> tuple[str, str]:
        """Return the object that the robot handles, and the activity: reach, touch, hold or release."""
        scene = self.scene
        held = scene.find_held()
        if held:
            return next(iter(held.values())), "hold"
        touched = sorted(scene.touched_by_gripper() & set(scene.objects))
        if touched:
            return touched[0], "touch"
        return ("", "after") if any(map(self._is_moved, scene.objects)) else ("", "reach")

    def _is_moved(self, name: str) -> bool:
        way = self.scene.pose(name)[:3, 3] - self.scene.start_poses[name][:3, 3]
        return float(np.linalg.norm(way)) > _MOVED

    def finish(self, outcome: Outcome) -> Trajectory:
        """Return the record of the episode."""
        return self.scene.finish(outcome)


def policy_renderer(assets: SceneAssets, device: str) -> SceneRenderer:
    """Return a renderer of policies' images, which renders one step at a time."""
    from nimbus.datagen.render.scene_renderer import SceneRenderer

    libraries = tuple(assets.libraries)
    return SceneRenderer(assets.stage, assets.robot, libraries=libraries, stack=1, device=device, modalities=("rgb",))


def with_cameras(layout: Layout, names: Sequence[str]) -> Layout:
    """Return the layout with only the named cameras."""
    cameras = tuple(camera for camera in layout.visual.cameras if camera.name in names)
    return replace(layout, visual=replace(layout.visual, cameras=cameras))


def action_limits(simulation: NewtonSimulation) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest commands (A,) of a loaded robot: ranges of joints and grippers [rad or m]."""
    model, limits = simulation.model, []
    for one in simulation.robot.arms:
        limits += [model.jnt_range[model.joint(name).id] for name in one.arm.joints]
        limits.append(np.sort([one.gripper.closed, one.gripper.open]))
    low, high = np.transpose(limits)
    return low, high
