"""Mapping file: assigns columns of a LeRobot or robomimic dataset to the joints, grippers and objects of a task."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from nimbus.datagen.files.strict_yaml import StrictModel

Entry = int | str
"""Column of a signal: its number from 0, or its name if the dataset names its columns."""


class MappedJoints(StrictModel):
    """Columns with the positions of the robot's joints."""

    source: str = Field(description="Signal, such as observation.state, or obs/robot0_joint_pos in robomimic.")
    entries: dict[str, Entry] = Field(min_length=1, description="Column of each joint of the robot [rad or m].")


class MappedGripper(StrictModel):
    """Column with the command or the position of a gripper."""

    source: str = Field(description="Signal, such as action.")
    entry: Entry
    open: float = Field(description="Value of the open gripper.")
    closed: float = Field(description="Value of the closed gripper.")

    @model_validator(mode="after")
    def _moves(self) -> MappedGripper:
        if self.open == self.closed:
            raise PydanticCustomError("gripper", "open and closed have the same value")
        return self


class MappedObject(StrictModel):
    """Kind of an object, and columns with its pose."""

    kind: str = Field(description="Kind of the object in the task's library.")
    source: str = Field("observation.environment_state", description="Signal.")
    position: tuple[Entry, Entry, Entry] = Field(description="Columns of x, y, z [m].")
    wxyz: tuple[Entry, Entry, Entry, Entry] | None = Field(None, description="Columns of the quaternion, w first.")
    xyzw: tuple[Entry, Entry, Entry, Entry] | None = Field(None, description="Columns of the quaternion, w last.")
    rotation_6d: tuple[Entry, Entry, Entry, Entry, Entry, Entry] | None = Field(
        None, description="Columns of the rotation matrix's first two columns, as in observation.environment_state."
    )

    @model_validator(mode="after")
    def _one_rotation(self) -> MappedObject:
        if sum(one is not None for one in (self.wxyz, self.xyzw, self.rotation_6d)) != 1:
            raise PydanticCustomError("rotation", "give exactly one of wxyz, xyzw and rotation_6d")
        return self

    @property
    def rotation(self) -> tuple[Entry, ...]:
        """Columns of the rotation, in the given representation."""
        return self.wxyz or self.xyzw or self.rotation_6d or ()


class DemonstrationMapping(StrictModel):
    """Content of a mapping file."""

    joints: MappedJoints
    grippers: dict[str, MappedGripper] = Field(
        min_length=1, description="Gripper of each arm; the arm of a one-armed robot is called arm."
    )
    objects: dict[str, MappedObject] = Field(min_length=1, description="Objects by name in the task: peg, or cubes_1.")
    rate: Annotated[float, Field(gt=0)] | None = Field(
        None, description="Rows per second, if the dataset does not state it [Hz]."
    )
    origin: tuple[float, float, float] = Field(
        (0.0, 0.0, 0.0), description="Origin of the dataset's positions in the task's scene [m]."
    )
