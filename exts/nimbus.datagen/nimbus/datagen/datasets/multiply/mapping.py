"""Mapping file: names the columns of a LeRobot or robomimic dataset that hold a task's joints, grippers and objects."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from nimbus.datagen.files.strict_yaml import StrictModel

Entry = int | str
"""Column of a signal: its index, or its name if the dataset states names."""


class MappedJoints(StrictModel):
    """Columns with the positions of the robot's joints."""

    source: str = Field(description="signal, such as observation.state, or obs/robot0_joint_pos of robomimic")
    entries: dict[str, Entry] = Field(min_length=1, description="column of each joint of the robot [rad or m]")


class MappedGripper(StrictModel):
    """Column with the command or position of a gripper."""

    source: str = Field(description="signal, such as action")
    entry: Entry
    open: float = Field(description="value of the open gripper")
    closed: float = Field(description="value of the closed gripper")

    @model_validator(mode="after")
    def _moves(self) -> MappedGripper:
        if self.open == self.closed:
            raise PydanticCustomError("gripper", "open and closed have the same value")
        return self


class MappedObject(StrictModel):
    """Columns with the pose of an object, and its kind."""

    kind: str = Field(description="kind in the task's object library")
    source: str = Field("observation.environment_state", description="signal")
    position: tuple[Entry, Entry, Entry] = Field(description="columns of x, y, z [m]")
    wxyz: tuple[Entry, Entry, Entry, Entry] | None = Field(None, description="columns of the quaternion, w first")
    xyzw: tuple[Entry, Entry, Entry, Entry] | None = Field(None, description="columns of the quaternion, w last")
    rotation_6d: tuple[Entry, Entry, Entry, Entry, Entry, Entry] | None = Field(
        None, description="entries with the first two columns of the rotation matrix"
    )

    @model_validator(mode="after")
    def _one_rotation(self) -> MappedObject:
        if sum(one is not None for one in (self.wxyz, self.xyzw, self.rotation_6d)) != 1:
            raise PydanticCustomError("rotation", "give exactly one of wxyz, xyzw and rotation_6d")
        return self

    @property
    def rotation(self) -> tuple[Entry, ...]:
        """Columns of the rotation."""
        return self.wxyz or self.xyzw or self.rotation_6d or ()


class DemonstrationMapping(StrictModel):
    """Meaning of the columns of a dataset."""

    joints: MappedJoints
    grippers: dict[str, MappedGripper] = Field(
        min_length=1, description="columns of each gripper, by arm; the only arm of a robot is named arm"
    )
    objects: dict[str, MappedObject] = Field(
        min_length=1, description="columns of each object, by its name in the task, such as peg or cubes_1"
    )
    rate: Annotated[float, Field(gt=0)] | None = Field(
        None, description="rows per second, if the dataset does not state the rate [Hz]"
    )
    origin: tuple[float, float, float] = Field(
        (0.0, 0.0, 0.0), description="origin of the dataset's frame in the task's scene [m]"
    )
