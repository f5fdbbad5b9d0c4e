"""Session of an operator: practice, record, undo, keep or discard in layouts of one task; no call blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import EpisodeKey, Layout
from nimbus.datagen.episode.trajectory import TELEOPERATION
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.planner import find_unbelievable
from nimbus.datagen.policies.environment import Environment
from nimbus.datagen.policies.policy import Needs
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.tasks.scene_assets import SceneAssets
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.teleoperate.history import CommandHistory
from nimbus.datagen.teleoperate.operator_hints import (
    describe_failure,
    find_pressing,
    tool_heights,
    way_to_object,
    way_to_region,
)
from nimbus.datagen.teleoperate.operator_input import OperatorInput, ToolCommand, check_input
from nimbus.datagen.teleoperate.recording import SHORTEST, SPLIT, OperatorRecording
from nimbus.datagen.teleoperate.tool_follower import ToolFollower

_LONGEST = 600.0
"""Longest recording [s], which bounds the size of the file if the operator walks away."""


class SessionPhase(StrEnum):
    """Phase of a session."""

    PRACTICE = "practice"
    """The robot moves, and nothing is recorded."""
    ARMED = "armed"
    """Time does not advance at the start of the layout, until the operator's first motion."""
    RECORDING = "recording"
    PAUSED = "paused"
    """Time does not advance after a pause, an undo, or the loss of a device."""


@dataclass(frozen=True, kw_only=True)
class SessionState:
    """State of a session after a period, for display."""

    phase: SessionPhase
    index: int
    """Number of the layout."""
    step_count: int
    """Number of commands since the start of the layout."""
    seconds: float
    """Time since the start of the layout [s]."""
    is_success: bool
    """True if the conditions of success have held for the required steps."""
    failure: str
    """First condition that does not hold; empty if all hold."""
    openings: Mapping[str, float] = field(default_factory=dict)
    """Requested opening of each gripper, from 0 (closed) to 1 (open), by name of the arm."""
    held: Mapping[str, str] = field(default_factory=dict)
    """Name of the object in each hand, by name of the arm; empty hands are omitted."""
    blocked: tuple[str, ...] = ()
    """Arms that do not get to their targets: something is in the way, or they are out of reach."""
    out_of_reach: tuple[str, ...] = ()
    """Arms whose last motion was not followed, because it leads out of reach."""
    pressing: tuple[str, ...] = ()
    """Arms whose fingers do not close, because they press on something that is no object."""
    heights: Mapping[str, float] = field(default_factory=dict)
    """Height of each tool above the surface below it [m], by name of the arm; tools above nothing are omitted."""
    way: str = ""
    """Way of the first object that is beside its region, with the keys; empty if none is."""
    reach: str = ""
    """Way of a tool to the nearest object of the condition that does not hold, with the keys; empty while an object is
    held."""
    message: str = ""


class TeleoperationSession:
    """Task under the control of an operator, one period at a time.

    Equal inputs in equal periods give equal episodes; the caller is responsible for real time.

    Args:
        task: Task to do.
        assets: Loaded assets of the task.
        seed: Seed of the layouts.
        operator: Name of the operator, stored with each demonstration.
        device: Kind of the device, which is also stored.
    """

    def __init__(self, task: Task, assets: SceneAssets, *, seed: int = 0, operator: str = "", device: str = "") -> None:
        self.task, self.assets, self.seed = task, assets, seed
        self.operator, self.device, self.prompt = operator, device, ""
        self.environment = Environment(task, assets, needs=Needs(cameras=()), skill=TELEOPERATION)
        self._joint_counts = {one.name: len(one.arm.joints) for one in assets.robot.arms}
        self.reset(0)

    def layout(self, index: int) -> Layout:
        """Draw a layout from the split of demonstrations."""
        return demonstration_layout(self.task, self.assets, seed=self.seed, index=index)

    def reset(self, index: int | None = None) -> None:
        """Start practice in a layout, by default the current one; the recording is dropped."""
        self.index = self.index if index is None else index
        self.drawn = self.layout(self.index)
        self.environment.reset(self.drawn)
        simulation = self.environment.simulation
        self._followers = {one.name: ToolFollower(simulation, one) for one in self.assets.robot.arms}
        self._low, self._high = self.environment.conventions.action_low, self.environment.conventions.action_high
        self._history = CommandHistory(self.environment)
        self._undone, self._is_success, self._message = 0, False, ""
        self._failure = self.environment.judge()
        self.phase = SessionPhase.PRACTICE

    @property
    def step_count(self) -> int:
        """Number of commands since the start of the layout."""
        return len(self._history)

    @property
    def is_recording(self) -> bool:
        """True from the start of a recording until it is kept or discarded."""
        return self.phase is not SessionPhase.PRACTICE

    def targets(self) -> dict[str, FloatArray]:
        """Return ``world_T_tool`` (4, 4) [m], the target of each tool, by name of the arm."""
        return {name: follower.target.copy() for name, follower in self._followers.items()}

    def tool_poses(self) -> dict[str, FloatArray]:
        """Return the measured ``world_T_tool`` (4, 4) [m] of each tool, by name of the arm."""
        return {name: arm.tool_pose() for name, arm in self.environment.scene.arms.items()}

    def record(self) -> None:
        """Arm the recording at the start of the layout, or continue a paused recording."""
        if self.phase is SessionPhase.PAUSED:
            self.phase = SessionPhase.RECORDING
        elif self.phase is SessionPhase.PRACTICE:
            self._go_to_start()
            self.phase = SessionPhase.ARMED

    def pause(self, message: str = "") -> None:
        """Pause a recording; nothing of it is lost."""
        if self.phase is SessionPhase.RECORDING:
            self.phase = SessionPhase.PAUSED
        self._message = message

    def undo(self, seconds: float) -> None:
        """Go back by some time [s], and wait until :meth:`record` is called."""
        self.go_to(self.step_count - max(1, round(seconds * self.task.rate)))

    def go_to(self, step_count: int) -> None:
        """Go back to the state after a number of commands; later commands are removed.

        Args:
            step_count: Number of commands to keep.
        """
        before = self.step_count
        self._history.go_back(step_count)
        if self.step_count < before:
            self._undone += 1
        self._after_jump()
        if self.phase is SessionPhase.RECORDING:
            self.phase = SessionPhase.PAUSED

    def _go_to_start(self) -> None:
        self._history.go_back(0)
        self._undone = 0
        self._after_jump()

    def _after_jump(self) -> None:
        actions, end = self._history.actions, 0
        for name, follower in self._followers.items():
            begin, end = end, end + self._joint_counts[name] + 1
            if actions:
                follower.resume(actions[-1][begin:end])
            else:
                follower.restart()
        self._failure = self.environment.judge()
        self._is_success = False

    def discard(self) -> None:
        """Drop the recording, and start the same layout again."""
        self.reset()

    def recording(self) -> OperatorRecording:
        """Return the recording so far.

        Raises:
            InputError: The recording is too short for a demonstration.
        """
        if not self.is_recording or self.step_count < SHORTEST:
            what = f"{self.step_count if self.is_recording else 0} commands are recorded"
            raise InputError(what, where="recording", instead="press record, then move the tool")
        return OperatorRecording(
            task=self.task.name,
            task_hash=self.task.content_hash,
            robot=self.assets.robot.name,
            rate=self.task.rate,
            seed=self.seed,
            index=self.index,
            action_names=self.assets.robot.action_names,
            actions=tuple(tuple(map(float, action)) for action in self._history.actions),
            prompt=self.prompt.strip(),
            operator=self.operator,
            device=self.device,
            undone=self._undone,
        )

    def resume(self, recording: OperatorRecording) -> None:
        """Restore an unfinished recording, and pause at its end.

        Raises:
            InputError: The recording is for another task, robot or version.
        """
        recording.check(self.task, self.assets.robot, where="unfinished recording")
        self.seed = recording.seed
        self.reset(recording.index)
        self.prompt, self._undone = recording.prompt, recording.undone
        self.phase = SessionPhase.RECORDING
        for action in recording.rows:
            self._execute(action)
        self._after_jump()
        self.pause("continued from an unfinished recording")

    def step(self, given: OperatorInput) -> SessionState:
        """Advance by one period, except in phases in which time does not advance.

        Raises:
            InputError: The input does not fit this robot; the state is unchanged.
        """
        check_input(given, joint_counts=self._joint_counts)
        if self.phase is SessionPhase.ARMED and not given.is_idle():
            self.phase = SessionPhase.RECORDING
        if self.phase in (SessionPhase.PRACTICE, SessionPhase.RECORDING):
            self._advance(given)
        return self.state()

    def _advance(self, given: OperatorInput) -> None:
        self._message = ""
        if self.step_count >= _LONGEST * self.task.rate:
            if self.phase is SessionPhase.PRACTICE:
                self._go_to_start()
            else:
                self.pause(f"paused: a recording takes at most {_LONGEST:g} s; keep or discard it")
            return
        still = ToolCommand()
        parts = [follower.step(given.arms.get(name, still)) for name, follower in self._followers.items()]
        self._execute(np.clip(np.concatenate(parts), self._low, self._high))

    def _execute(self, action: FloatArray) -> None:
        result = self.environment.step(action)
        if not result.is_stable:
            # A state with infinite or undefined numbers cannot be continued, so the session returns to the last valid
            # state.
            self._history.go_back(self.step_count)
            self._after_jump()
            self.pause("paused: physics became unstable; go back some seconds and continue")
            return
        self._history.append(action)
        failure = result.failure or find_unbelievable(self.environment.scene.contact_extremes())
        self._failure, self._is_success = failure, result.is_success and failure is None

    def state(self) -> SessionState:
        """Return the current state for display."""
        held = self.environment.scene.find_held()
        gaps = {name: one.finger_gap for name, one in self._followers.items()}
        return SessionState(
            phase=self.phase,
            index=self.index,
            step_count=self.step_count,
            seconds=self.step_count / self.task.rate,
            is_success=self._is_success,
            failure=describe_failure(self._failure),
            openings={name: one.opening for name, one in self._followers.items()},
            held=held,
            blocked=tuple(name for name, one in self._followers.items() if one.is_blocked),
            out_of_reach=tuple(name for name, one in self._followers.items() if one.is_out_of_reach),
            pressing=find_pressing(self.environment, held, gaps),
            heights=tool_heights(self.environment, held),
            way="" if self._failure is None else way_to_region(self.environment, held),
            reach="" if self._failure is None or held else way_to_object(self.environment, self._failure),
            message=self._message,
        )


def demonstration_layout(task: Task, assets: SceneAssets, *, seed: int, index: int) -> Layout:
    """Draw a layout for operators.

    Args:
        task: Task of the layout.
        assets: Loaded assets of the task.
        seed: Seed of the layouts.
        index: Number of the layout.
    """
    key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=seed, index=index, split=SPLIT)
    physical = draw_physical(task, assets, seed=seed, index=index, split=SPLIT)
    visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
    return Layout(key=key, physical=physical, visual=visual)


def with_prompt(layout: Layout, prompt: str) -> Layout:
    """Return a layout with the operator's instruction, if there is one, instead of its own."""
    return replace(layout, visual=replace(layout.visual, instruction=prompt)) if prompt else layout
