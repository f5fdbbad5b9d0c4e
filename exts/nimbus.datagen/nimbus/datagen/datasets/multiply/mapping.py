"""Mapping file: columns of a LeRobot or robomimic dataset that are joints, grippers and objects of a task."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from nimbus.datagen.files.strict_yaml import StrictModel

Entry = int | str
"""Column of a signal: its number, or its name if the dataset has names."""


class MappedJoints(StrictModel):
    """Positions of the robot's joints."""

    source: str = Field(description="signal, such as observation.state, or obs/robot0_joint_pos of robomimic")
    entries: dict[str, Entry] = Field(min_length=1, description="column of each joint of the robot [rad or m]")


class MappedGripper(StrictModel):
    """Command or position of a gripper."""

    source: str = Field(description="signal, such as action")
    entry: Entry
    open: float = Field(description="value when open")
    closed: float = Field(description="value when closed")

    @model_validator(mode="after")
    def _moves(self) -> MappedGripper:
        if self.open == self.closed:
            raise PydanticCustomError("gripper", "open and closed are the same value")
        return self


class MappedObject(StrictModel):
    """Pose and kind of an object."""

    kind: str = Field(description="kind of the task's library that it is")
    source: str = Field("observation.environment_state", description="signal")
    position: tuple[Entry, Entry, Entry] = Field(description="columns of x, y, z [m]")
    wxyz: tuple[Entry, Entry, Entry, Entry] | None = Field(None, description="columns of its quaternion, w first")
    xyzw: tuple[Entry, Entry, Entry, Entry] | None = Field(None, description="columns of its quaternion, w last")
    rotation_6d: tuple[Entry, Entry, Entry, Entry, Entry, Entry] | None = Field(
        None, description="columns of the first two columns of its rotation matrix, as in observation.environment_state"
    )

    @model_validator(mode="after")
    def _one_rotation(self) -> MappedObject:
        if sum(one is not None for one in (self.wxyz, self.xyzw, self.rotation_6d)) != 1:
            raise PydanticCustomError("rotation", "give wxyz, xyzw or rotation_6d, one of them")
        return self

    @property
    def rotation(self) -> tuple[Entry, ...]:
        """Columns of its rotation."""
        return self.wxyz or self.xyzw or self.rotation_6d or ()


class DemonstrationMapping(StrictModel):
    """Meaning of the columns of a dataset."""

    joints: MappedJoints
    grippers: dict[str, MappedGripper] = Field(min_length=1, description="by arm; a robot of one arm calls it arm")
    objects: dict[str, MappedObject] = Field(min_length=1, description="by name, as in the task: peg, or cubes_1")
    rate: Annotated[float, Field(gt=0)] | None = Field(None, description="rows per second, where the set has none [Hz]")
    origin: tuple[float, float, float] = Field((0.0, 0.0, 0.0), description="the set's origin in the task's scene [m]")
