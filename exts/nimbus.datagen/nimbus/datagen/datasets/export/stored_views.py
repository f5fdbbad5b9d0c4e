"""Conversion of the stored states and actions of episodes to a view: another form or control mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.datasets.export.source import Source
from nimbus.datagen.episode.layout import PhysicalLayout, RobotSetup
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import parse
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.geometry.warp_library import start_warp
from nimbus.datagen.policies.control_modes import ControlMode, ToolControl, make_control
from nimbus.datagen.policies.features import SceneFeatures
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.policies.state_forms import StateForm, commands_before
from nimbus.datagen.robots.robot import Robot, load_robot
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.tasks.own_tasks import find_named, own_folder
from nimbus.datagen.tasks.stored_files import check_stored_files
from nimbus.datagen.tasks.task import manipulation_of
from nimbus.datagen.tasks.task_file import TaskFile
from nimbus.datagen.usd.stage import read_stage

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation

ENVIRONMENT_STATE = "observation.environment_state"
DONE, SUCCESS = "next.done", "next.success"
_CLOSE = 1e-3
"""Largest distance between the stored position of a tool and the one computed from the robot file [m]. A larger one
means that the data were created with another version of the robot file."""


@dataclass(frozen=True, kw_only=True)
class ViewedSignals:
    """Signals of an episode in a view, in T steps."""

    state: FloatArray
    """(T, S) states [rad or m]."""
    action: FloatArray
    """(T, M) actions, in the units of the control mode."""
    extra: dict[str, NDArray[Any]]
    """(T, F) or (T,) values of each additional feature."""


class StoredViews:
    """Converts the signals of a dataset's episodes to a view; task and robot are those named in the episodes.

    Args:
        view: Requested form of states and actions.
        episode: Any episode of the dataset.

    Raises:
        InputError: The view does not exist, the task in the episode cannot be read, or names other files than those
            with which the episode was made.
    """

    def __init__(self, view: SignalView, episode: EpisodeFile) -> None:
        self.view = view
        task = parse(episode.provenance.task_text, f"{episode.path}: task").validate(TaskFile)
        named = find_named(task, episode.provenance, where=str(episode.path))
        own = task.seen_from(own_folder(episode.provenance)) if named is None else manipulation_of(named)
        check_stored_files(own, episode.provenance.assets, where=str(episode.path))
        self._scene, self._rate = own.scene_name if isinstance(own, TaskFile) else own.scene, episode.rate
        self.robot: Robot = load_robot(own.robot, where=str(episode.path))
        self._state = StateForm(self.robot, view.state, where="--state")
        self._control = self._make_control()
        self._features = SceneFeatures(task, self.robot) if view.environment_state else None
        self._present: RobotSetup | None = None
        joints, actions = episode.texts("names/joints"), episode.texts("names/actions")
        if (joints, actions) != (self.robot.joint_names, self.robot.action_names):
            raise self._other_robot(episode)
        self._place(RobotSetup())

    @cached_property
    def _simulation(self) -> NewtonSimulation:
        from nimbus.datagen.simulate.newton import (
            NewtonSimulation,
        )  # imported here, because most readers need no physics

        start_warp()
        return NewtonSimulation(read_stage(self._scene), self.robot, rate=self._rate)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, without the simulation, which that process creates itself."""
        kept = {name: value for name, value in vars(self).items() if name != "_simulation"}
        return kept | {"_present": None, "_control": self._make_control()}

    def _make_control(self) -> ControlMode:
        return make_control(self.view.actions, self.robot, rotation=self.view.rotation, where="--actions")

    @property
    def control(self) -> ControlMode:
        """Control mode of the actions."""
        return self._control

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the entries of the state."""
        return self._state.names

    @property
    def extra_names(self) -> dict[str, tuple[str, ...]]:
        """Names of the entries of each additional feature; empty for scalar features."""
        found = {ENVIRONMENT_STATE: self._features.names} if self._features else {}
        return found | (dict.fromkeys((DONE, SUCCESS), ()) if self.view.done else {})

    def described(self) -> dict[str, dict[str, Any]]:
        """Return the conventions of each feature: units, frame, representation of rotations, and reference."""
        action: dict[str, Any] = {"control_mode": self.view.actions, "units": list(self._control.units)}
        if isinstance(self._control, ToolControl):
            action |= {"frame": "world", "rotation": self.view.rotation}
        if self._control.base:
            action["relative_to"] = self._control.base
        units = np.array(self._units)[self._state.action_index].tolist()
        return {
            "observation.state": {"form": self.view.state, "units": units},
            "action": action,
            **({ENVIRONMENT_STATE: {"frame": "world", "units": "m"}} if self._features else {}),
        }

    def make(self, episode: EpisodeFile) -> ViewedSignals:
        """Return the signals of an episode in the view.

        Raises:
            InputError: The robot file differs from the one with which the episode was created.
        """
        joints, actions = episode.array("observations/qpos"), episode.array("action")
        postures, layout = self._state.postures(joints), episode.layout().physical
        self._place(layout.robot)
        if isinstance(self._control, ToolControl):
            self._check_robot(episode, self._control.tool_poses(postures[0]))
        extra: dict[str, NDArray[Any]] = {}
        if self._features:
            bodies = episode.array("observations/body_positions"), episode.array("observations/body_wxyz")
            rows = self._features.rows(layout.objects, episode.texts("names/bodies"), *bodies)
            extra[ENVIRONMENT_STATE] = rows.astype(np.float32)
        if self.view.done:
            is_last = np.arange(len(joints)) == len(joints) - 1
            extra |= {DONE: is_last, SUCCESS: is_last & episode.outcome.success}
        return ViewedSignals(
            state=self._state.rows(joints, commands_before(postures[0], actions)),
            action=self._control.from_commands(actions, postures),
            extra=extra,
        )

    def _place(self, setup: RobotSetup) -> None:
        """Move the base of the robot to its pose in an episode."""
        setup = replace(RobotSetup(), offset=setup.offset, yaw=setup.yaw)
        if setup == self._present:
            return
        self._simulation.load(PhysicalLayout(objects=(), robot=setup))
        self._control.begin(self._simulation)
        self._present = setup
        joint = make_control("joint", self.robot)
        joint.begin(self._simulation)
        self._units = joint.units

    def _check_robot(self, episode: EpisodeFile, found: list[FloatArray]) -> None:
        names = episode.texts("names/bodies")
        positions, wxyz = episode.rows("observations/body_positions", 0), episode.rows("observations/body_wxyz", 0)
        for one, pose in zip(self.robot.arms, found, strict=True):
            at = names.index(one.tool.link)
            tool = make_transform(positions[at], wxyz[at]) @ make_transform(one.tool.position, one.tool.wxyz)
            if np.abs(tool[:3, 3] - pose[:3, 3]).max() > _CLOSE:
                raise self._other_robot(episode)

    def _other_robot(self, episode: EpisodeFile) -> InputError:
        what = f"the episode was created with another version of the robot file '{self.robot.name}'"
        return InputError(what, where=str(episode.path), instead="use that version of Nimbus and of the robot file")


def with_view(source: Source, view: SignalView | None) -> Source:
    """Return a source whose signals are converted to a view.

    Args:
        source: Source to convert.
        view: Form of states and actions; the stored form by default.

    Raises:
        InputError: The view does not exist, or does not support the dataset.
    """
    if view is None or view.is_stored:
        return source
    with EpisodeFile(source.items[0].path) as episode:
        return replace(source, views=StoredViews(view, episode))
