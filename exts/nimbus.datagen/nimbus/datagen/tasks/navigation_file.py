"""Models of a navigation task file: its scenes, its body, the goals, and the limits of the filters."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from nimbus.datagen.episode.layout import MODALITIES, Camera, Modality
from nimbus.datagen.files.quantities import Metres, Radians, Range, Speed, TurnRate
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.geometry.transforms import look_at
from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.drive import DriveLimits
from nimbus.datagen.tasks.task_file import CommonFile, Growing, Named, Point, unique

BASE = "base"
"""Body of a navigation episode: on the floor, x forward, z up."""


class BodySettings(StrictModel):
    """A body that drives: an upright cylinder with limits."""

    radius: Annotated[Metres, Field(gt=0.02, le=1.0)] = Field(0.25, description="Radius [m].")
    height: Annotated[Metres, Field(gt=0.05, le=3.0)] = Field(1.4, description="Height [m].")
    step: Annotated[Metres, Field(ge=0, le=0.3)] = Field(
        0.03, description="Height of the highest step that the body can climb [m]."
    )
    speed: Annotated[Speed, Field(gt=0.01, le=5.0)] = Field(0.6, description="Largest speed [m/s].")
    turn: Annotated[TurnRate, Field(gt=0.01, le=10.0)] = Field(1.2, description="Largest turn rate [rad/s].")

    @property
    def shape(self) -> BodyShape:
        """Shape for collision checks."""
        return BodyShape(radius=self.radius, height=self.height, step=self.step)

    @property
    def limits(self) -> DriveLimits:
        """Limits of the driven motion."""
        return DriveLimits(speed=self.speed, turn=self.turn)


class NavigateSettings(Growing):
    """Goals of a task's episodes."""

    to: str = Field(description="Kind of goal: point, room, object or instruction.")
    kinds: Literal["all"] | Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(unique)] = Field(
        "all", description="Classes of things, or kinds of rooms, to go to: a list, or 'all'."
    )
    length: Range[Annotated[Metres, Field(gt=0, le=500)]] = Field(
        (2.0, 25.0), description="Range of the shortest path from start to goal [m]."
    )
    detour: Annotated[float, Field(ge=1, le=5)] = Field(
        1.05,
        description="Smallest ratio of the shortest path to the straight distance, if any pair reaches it.",
    )
    per_scene: Annotated[int, Field(ge=1, le=100_000)] = Field(
        150, description="Number of episodes of each scene; after the last scene, episodes begin again with the first."
    )


class KeepSettings(Growing):
    """Limits of the filters; an episode that does not pass is a failed attempt, with value and limit as its detail."""

    clearance: Annotated[Metres, Field(gt=0, le=2)] | None = Field(
        None, description="Smallest distance of the body's axis from any triangle [m]; by default the body's radius."
    )
    duplicates: Annotated[Metres, Field(ge=0, le=5)] = Field(
        0.5, description="Smallest discrete Frechet distance between two paths to one target [m]."
    )
    landmarks: Annotated[int, Field(ge=1, le=20)] | None = Field(
        None, description="Smallest number of things that an instruction names, including the one at its end."
    )


class RigCameraSettings(StrictModel):
    """A camera on the body, before it is randomized."""

    mount: Literal["base"] = Field("base", description="Part that carries the camera: always the body.")
    position: Point = Field((0.0, 0.0, 1.2), description="Position in the frame of the body: x forward, z up [m].")
    tilt: Annotated[Radians, Field(ge=-1.5, le=1.5)] = Field(
        0.0, description="Tilt downward from the horizontal [rad]."
    )
    pan: Radians = Field(0.0, description="Rotation to the left from straight ahead [rad].")
    hfov: Annotated[Radians, Field(ge=0.05, lt=3.0)] = Field(1.379, description="Horizontal field of view [rad].")
    size: tuple[Annotated[int, Field(ge=8, le=4096)], Annotated[int, Field(ge=8, le=4096)]] = Field(
        (320, 240), description="Width and height [px]."
    )
    modalities: Annotated[tuple[Modality, ...], AfterValidator(unique)] = Field(
        ("rgb", "depth", "instance", "semantic", "normals", "boxes"),
        description="Images stored of each step: rgb, and any of depth, instance, semantic, normals, boxes, flow.",
    )

    @model_validator(mode="after")
    def _has_color(self) -> RigCameraSettings:
        if "rgb" not in self.modalities:
            context = {"instead": f"write modalities: [{', '.join(('rgb', *self.modalities))}]"}
            raise PydanticCustomError("camera", "a camera without rgb: previews and exports need it", context)
        if "keypoints" in self.modalities:
            what = "keypoints belong to objects and grippers, which a navigation task does not have"
            raise PydanticCustomError("camera", what, {"instead": "leave out keypoints"})
        return self

    def camera(self, name: str) -> Camera:
        """Make the camera as it is before randomization."""
        width, height = self.size
        ahead = np.array([np.cos(self.pan), np.sin(self.pan), 0.0]) * np.cos(self.tilt) - (0, 0, np.sin(self.tilt))
        x, y, z = (float(value) for value in np.add(self.position, ahead))
        return Camera(
            name=name,
            mount=BASE,
            position=self.position,
            wxyz=look_at(self.position, (x, y, z), up=(0.0, 0.0, 1.0)),
            vertical_fov=float(2 * np.arctan(np.tan(self.hfov / 2) * height / width)),
            width=width,
            height=height,
            modalities=tuple(modality for modality in MODALITIES if modality in self.modalities),
        )


def _as_cameras(value: Any) -> Any:
    """Convert a single name such as ``front`` to one camera with default settings, which looks ahead."""
    return {value: {}} if isinstance(value, str) else value


class NavigationFile(CommonFile):
    """A navigation task: scenes, a body, and its goals."""

    scene: dict[str, Any] = Field(description="Source of scenes, such as {homes: 40, rooms: [4, 9]}.")
    body: BodySettings = Field(default_factory=BodySettings.model_construct, description="The body that moves.")
    navigate: NavigateSettings = Field(description="Goals of the episodes.")
    keep: KeepSettings = Field(default_factory=KeepSettings.model_construct, description="Limits of the filters.")
    cameras: Annotated[Named[RigCameraSettings], BeforeValidator(_as_cameras)] = Field(
        default_factory=lambda: {"front": RigCameraSettings.model_construct()},
        description="Cameras on the body by name; {} for none.",
    )
    instructions: Literal["template"] = Field("template", description="Source of the instructions' wording.")
    pipeline: str = Field("nav_mesh", description="Pipeline: a name, or a path relative to this file.")
    rate: Annotated[float, Field(ge=1, le=60)] = Field(10.0, description="Recorded steps per second [Hz].")
