"""Models of a task file, apart from its steps."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from nimbus.datagen.arrays import Quaternion
from nimbus.datagen.episode.layout import (
    ANNOTATIONS,
    DEFAULT_MODALITIES,
    MODALITIES,
    Camera,
    Modality,
    Sensor,
    Tone,
    Vector,
)
from nimbus.datagen.errors import suggest
from nimbus.datagen.files.quantities import Hertz, Metres, Radians, Range, Ratio
from nimbus.datagen.files.scene_files import resolve_from, scene_folder
from nimbus.datagen.files.strict_yaml import StrictModel, read
from nimbus.datagen.geometry.transforms import look_at
from nimbus.datagen.rooms.settings import RoomSettings, StageFileSettings, plain_name

Length = Annotated[Metres, Field(gt=0, le=100)]
Coordinate = Annotated[Metres, Field(ge=-100, le=100)]
Point = tuple[Coordinate, Coordinate, Coordinate]
Value = TypeVar("Value")


EXECUTION_NOISE = 0.015
"""Default execution noise [rad], about 1 cm at the hand of an arm of 0.7 m: the largest value that makes no first
attempt of a shipped task fail."""


@dataclass(frozen=True)
class WordingField:
    """Field in braces in a wording."""

    name: str
    text: str
    """Text of the field, braces included."""

    @property
    def is_plain(self) -> bool:
        """True for a name alone; format specifications and conversions have no use in a sentence."""
        return self.text == f"{{{self.name}}}"


def wording_fields(wording: str) -> list[WordingField]:
    """Parse the fields in braces of a wording.

    Raises:
        ValueError: A brace has no partner.
    """
    found = []
    for _, name, form, conversion in Formatter().parse(wording):
        if name is not None:
            more = (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
            found.append(WordingField(name, f"{{{name}{more}}}"))
    return found


@lru_cache
def presets(room: str) -> dict[str, Any]:
    """Return the presets of ``scenes/<room>.yaml`` by name, as plain data."""
    return read(scene_folder("tasks").parent / f"{room}.yaml").data


def expand_cameras(value: Any) -> Any:
    """Expand cameras by name: ``front+wrist``, ``[front, wrist]`` or ``{mine: front}`` become their settings.

    ``{mine: {preset: front, size: [640, 480]}}`` takes omitted settings from the preset.
    """
    if isinstance(value, str):
        value = _named(value)
    if isinstance(value, tuple):
        if odd := [entry for entry in value if not isinstance(entry, str)]:
            instead = "write names of presets in a list, or your own cameras as name: {…}"
            context = {"found": f"{odd[0]}"[:80], "instead": instead}
            raise PydanticCustomError("preset", "a list of cameras has names only, found {found}", context)
        if not value:
            context = {"instead": "write names, or cameras: {} for none"}
            raise PydanticCustomError("preset", "the list of cameras is empty", context)
        value = {name: name for name in value}
    if not isinstance(value, dict):
        return value
    return {name: _expand_camera(entry) for name, entry in value.items()}


def _expand_camera(entry: Any) -> Any:
    """Expand a preset by name, or with changes: ``{preset: front, modalities: [rgb, depth]}``."""
    if isinstance(entry, dict) and "preset" in entry:
        changes = {name: setting for name, setting in entry.items() if name != "preset"}
        base = _preset("cameras", entry["preset"])
        if {"look_at", "wxyz"} & changes.keys():
            base = {name: setting for name, setting in base.items() if name not in ("look_at", "wxyz")}
        return base | changes
    return _preset("cameras", entry) if isinstance(entry, str) else entry


def _named(names: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in names.split("+"))
    if "" in found and names.strip():
        context = {"names": names, "instead": f"write {'+'.join(filter(None, found)) or 'front+wrist'}"}
        raise PydanticCustomError("preset", "a name is missing next to a + in '{names}'", context)
    return found


def expand_randomization(value: Any) -> Any:
    """Expand the name of a level: ``medium`` becomes the settings of each randomizer."""
    if isinstance(value, str):
        return _preset("randomizations", value)
    names = ", ".join(presets("randomizations"))
    if not isinstance(value, dict):
        context = {"instead": f"write a name ({names}), or settings by randomizer, such as {{mass: {{}}}}"}
        raise PydanticCustomError("preset", "neither a name nor a mapping (key: value)", context)
    if "preset" in value:
        context = {"instead": f"write a name alone ({names}), or every randomizer with its settings"}
        raise PydanticCustomError("preset", "a preset cannot be mixed with other settings", context)
    return value


def _preset(room: str, name: Any) -> Any:
    known = presets(room)
    if not isinstance(name, str) or name not in known:
        what = room.removesuffix("s")
        context = {"what": f"unknown {what} '{name}'", "instead": suggest(str(name), known)}
        raise PydanticCustomError("preset", "{what}", context)
    return known[name]


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", text):
        what = "'{name}' is not a name: lower-case letters, digits and _, a letter first"
        raise PydanticCustomError("name", what, {"name": text})
    return text


Named = dict[Annotated[str, AfterValidator(_name)], Value]


def unique(entries: Any) -> Any:
    """Return the entries, after checking that no entry is listed twice."""
    for index, entry in enumerate(entries):
        if entry in entries[:index]:
            raise PydanticCustomError("twice", "'{entry}' is listed twice", {"entry": entry})
    return entries


def _is_none(value: object) -> bool:
    return value is None


def _scene_form(value: object) -> str:
    """Return the form of a scene: a mapping has settings, everything else is a name."""
    if isinstance(value, StageFileSettings) or (isinstance(value, dict) and "file" in value):
        return "scene file"
    return "room settings" if isinstance(value, dict | RoomSettings) else "name"


class Growing(StrictModel):
    """Model whose later fields default to None, so that the hashes of existing tasks do not change."""

    @model_serializer(mode="wrap")
    def _without_none(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in dump(self).items() if value is not None}


class Region(Growing):
    """Rectangle on a surface, where objects start or are put."""

    on: str = Field("table", description="Surface of the scene that the region lies on.")
    center: tuple[Coordinate, Coordinate] = Field(description="Center x, y of the region in the world frame [m].")
    size: tuple[Length, Length] = Field(
        description="Extent of the region along x and y [m]. It contains the origins of objects that start there."
    )


def _count(count: tuple[int, int]) -> tuple[int, int]:
    low, high = count
    if low < 0 or high < 1 or high > 64:
        context = {
            "low": low,
            "high": high,
            "instead": "write a number from 1 to 64, or a range such as [0, 3] that ends at 1 to 64",
        }
        raise PydanticCustomError("count", "impossible count: {low} to {high} objects", context)
    return count


class ObjectGroup(Growing):
    """Objects drawn from a library for every episode, under one name."""

    library: str = Field(description="Object library: a name from scenes/objects, or a path relative to this file.")
    kinds: Literal["all"] | Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(unique)] = Field(
        "all", description="Kinds to draw from: a list, or 'all'."
    )
    count: Annotated[Range[int], AfterValidator(_count)] = Field(
        (1, 1), description="Number of objects, or a range [low, high] that includes both."
    )
    distinct: bool = Field(False, description="True if no kind may occur twice in an episode.")
    region: str = Field(
        description="Region where the objects start, or an earlier group, inside whose first object they start."
    )
    yaw: Literal["any"] | Range[Radians] = Field("any", description="Heading about the vertical [rad].")
    lying: Annotated[Ratio, Field(ge=0, le=1)] = Field(
        0.0, description="Fraction of the objects that start lying, among those that could also stand."
    )
    scale: Range[Annotated[Ratio, Field(ge=0.2, le=5)]] | None = Field(
        None, description="Factor on the size; mass is scaled by its cube. By default, sizes are those of the library."
    )
    classes: dict[str, str] | None = Field(
        None, description="Other names for classes of the library: {fruit: organic, any: residual}."
    )
    anchored: bool | None = Field(
        None, description="True if the objects are fixed in place; by default as in the library."
    )
    joints: dict[str, Range[Annotated[Ratio, Field(ge=0, le=1)]]] | None = Field(
        None,
        description="Start positions of moving parts, as fractions of their range: {door: [0 %, 30 %]}; 0 by default.",
    )

    def seen_from(self, folder: Path) -> Self:
        """Return the group with the library's path relative to the working directory instead of the task's folder."""
        return self.model_copy(update={"library": resolve_from(folder, self.library)})

    def class_of(self, name: str) -> str:
        """Return the task's name of a class of the library."""
        return self.classes.get(name, self.classes.get("any", name)) if self.classes else name

    @model_validator(mode="after")
    def _enough_kinds(self) -> ObjectGroup:
        if self.distinct and self.kinds != "all" and self.count[1] > len(self.kinds):
            context = {"count": self.count[1], "kinds": len(self.kinds)}
            what = "impossible count: up to {count} distinct kinds from a list of {kinds}"
            raise PydanticCustomError("count", what, context)
        return self


TaskModality = Literal["flow", "keypoints", "end_effector"]
"""Annotations that a task can request: of all of its cameras, or of its robot."""


class CameraSettings(StrictModel):
    """Pinhole camera before randomization."""

    mount: str = Field(
        "",
        description="Robot link that carries the camera, or 'hand': the link with the tool, with the axes of the tool; "
        "empty for the world.",
    )
    position: Point = Field(description="Position in the frame of the mount [m].")
    look_at: Point | None = Field(None, description="Point that the camera looks at, in the frame of the mount [m].")
    wxyz: Quaternion | None = Field(
        None, description="Orientation mount_T_camera in place of look_at, OpenGL axes (looks along -z, y up)."
    )
    up: Vector = Field((0.0, 0.0, 1.0), description="Direction that is up in the image; used with look_at.")
    vertical_fov: Annotated[Radians, Field(ge=0.01, lt=3.0)] = Field(description="Vertical field of view [rad].")
    size: tuple[Annotated[int, Field(ge=8, le=4096)], Annotated[int, Field(ge=8, le=4096)]] = Field(
        (320, 240), description="Width and height [px]."
    )

    modalities: Annotated[tuple[Modality, ...], AfterValidator(unique)] | None = Field(
        None,
        exclude_if=_is_none,
        description="Stored images and labels: rgb, and any of depth, instance, semantic, normals, boxes, visibility, "
        "flow, keypoints; by default all but the last two.",
    )

    antialiasing: Annotated[int, Field(ge=1, le=4)] = Field(
        1,
        exclude_if=lambda value: value == 1,
        description="Number of color samples along each side of a pixel; 2 smooths edges and takes four times as long.",
    )
    tone: Tone = Field(
        "plain",
        exclude_if=lambda value: value == "plain",
        description="Curve from light to colors: plain, or filmic with deeper shadows and softer highlights.",
    )

    @model_validator(mode="after")
    def _has_color(self) -> CameraSettings:
        if self.modalities is not None and "rgb" not in self.modalities:
            context = {"instead": f"write modalities: [{', '.join(('rgb', *self.modalities))}]"}
            raise PydanticCustomError("camera", "a camera without rgb: previews and exports need it", context)
        return self

    @model_validator(mode="after")
    def _has_direction(self) -> CameraSettings:
        if (self.look_at is None) == (self.wxyz is None):
            raise PydanticCustomError("camera", "give either look_at or wxyz, not both")
        if self.wxyz is not None and abs(np.linalg.norm(self.wxyz) - 1) > 1e-3:
            raise PydanticCustomError("camera", "wxyz is not a unit quaternion")
        if self.look_at is not None:
            sight = np.subtract(self.look_at, self.position)
            if np.linalg.norm(np.cross(sight, self.up)) < 1e-6 * max(1.0, float(np.linalg.norm(sight))):
                what = "the camera looks along its up direction, or at itself"
                raise PydanticCustomError("camera", what, {"instead": "move look_at, or choose another up direction"})
        return self

    def annotated(self, asked: Collection[str]) -> CameraSettings:
        """Return the camera with those of the requested annotations that cameras provide."""
        stored = DEFAULT_MODALITIES if self.modalities is None else self.modalities
        missing = tuple(name for name in ANNOTATIONS if name in asked and name not in stored)
        return self.model_copy(update={"modalities": stored + missing}) if missing else self

    def camera(self, name: str) -> Camera:
        """Return the camera before randomization."""
        width, height = self.size
        wanted = DEFAULT_MODALITIES if self.modalities is None else self.modalities
        wxyz = self.wxyz or look_at(self.position, self.look_at or self.position, up=self.up)
        return Camera(
            name=name,
            mount=self.mount,
            position=self.position,
            wxyz=wxyz,
            vertical_fov=self.vertical_fov,
            width=width,
            height=height,
            sensor=Sensor(antialiasing=self.antialiasing, tone=self.tone),
            modalities=tuple(modality for modality in MODALITIES if modality in wanted),
        )


class CommonFile(Growing):
    """Fields of task files of all kinds."""

    family: str = Field("", exclude=True, description="Kind of task, such as stacking; for readers only.")
    pipeline: str = Field(description="Pipeline: a name, or a path relative to this file.")
    rate: Annotated[Hertz, Field(gt=0, le=120)] = Field(description="Recorded steps per second [Hz].")
    randomize: Annotated[dict[str, Any], BeforeValidator(expand_randomization)] = Field(
        {}, description="Amount of variation: small, medium or large, or settings by randomizer."
    )


class TaskFile(CommonFile):
    """A task: a robot, a scene, objects, steps, success conditions and variation."""

    robot: str = Field(description="Robot: a name from scenes/robots, or a path relative to this file.")
    scene: Annotated[
        Annotated[str, AfterValidator(plain_name), Tag("name")]
        | Annotated[RoomSettings, Tag("room settings")]
        | Annotated[StageFileSettings, Tag("scene file")],
        Discriminator(_scene_form),
    ] = Field(
        description="USD stage: a name from scenes/stages or a path relative to this file; or a family of rooms, "
        "such as kitchen, alone or with settings; or your own scene file with its work surface."
    )
    pipeline: str = Field("manipulation", description="Pipeline: a name, or a path relative to this file.")
    rate: Annotated[Hertz, Field(gt=0, le=120)] = Field(15.0, description="Recorded steps per second [Hz].")
    regions: Named[Region] = Field({}, description="Named rectangles on surfaces.")
    objects: Named[ObjectGroup] = Field(description="Named groups of objects, drawn for every episode.")
    steps: Annotated[tuple[Any, ...], Field(min_length=1)] = Field(
        description="Steps of the robot: skills, and loops 'for item in items:' over them."
    )
    success: Annotated[tuple[Any, ...], Field(min_length=1)] = Field(
        description="Conditions that must hold at the end, judged from physics."
    )
    execution_noise: Annotated[Radians, Field(ge=0, le=0.1)] | None = Field(
        None,
        description="Standard deviation of the noise on commands while an empty gripper approaches a thing [rad]; "
        f"recorded commands have no noise. 0 for none; by default {EXECUTION_NOISE} rad.",
    )
    cameras: Annotated[Named[CameraSettings], BeforeValidator(expand_cameras)] = Field(
        "front+wrist",
        description="Presets of scenes/cameras.yaml, as in front+wrist, or your own cameras by name; {} for none.",
        validate_default=True,
    )
    modalities: Annotated[tuple[TaskModality, ...], AfterValidator(unique)] = Field(
        (),
        exclude_if=lambda value: not value,
        description="Annotations to store in addition: flow, keypoints of every camera, end_effector for tool poses.",
    )
    instructions: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(unique)] = Field(
        description="Wordings of the task; {items} stands for the objects of the group 'items'."
    )

    def seen_from(self, folder: Path) -> Self:
        """Return the file with paths relative to the working directory instead of its folder.

        Those of steps, conditions and randomizers are moved by their own models.
        """
        scene = resolve_from(folder, self.scene) if isinstance(self.scene, str) else self.scene.seen_from(folder)
        return self.model_copy(
            update={
                "robot": resolve_from(folder, self.robot),
                "scene": scene,
                "pipeline": resolve_from(folder, self.pipeline),
                "objects": {name: group.seen_from(folder) for name, group in self.objects.items()},
            }
        )

    @property
    def scene_name(self) -> str:
        """Name or path that opens the stage; for a room with settings, it is the room's reference."""
        return self.scene if isinstance(self.scene, str) else self.scene.reference

    def canonical(self) -> dict[str, Any]:
        """Return the content in the order that hashes of tasks use."""
        dumped = self.model_dump(mode="json")
        return {name: dumped[name] for name in _ORDER if name in dumped}


_ORDER = ("robot", "scene", "pipeline", "rate", "regions", "objects", "steps", "success", "execution_noise", "cameras")
_ORDER += ("randomize", "modalities", "instructions")
"""Fields of a task in the order of its hash."""
