"""Layout: one seeded variation of a task, drawn before anything moves or is rendered."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, get_args

import numpy as np
from msgspec import Meta

from nimbus.datagen.arrays import Quaternion
from nimbus.datagen.errors import InputError
from nimbus.datagen.random_streams import RUN, episode_generator

Vector = tuple[float, float, float]
Side = Annotated[int, Meta(ge=1, le=4096)]
"""Side of a camera's image [px]; it is limited, because a layout may come from an untrusted file."""
_LIBRARY = re.compile(r"[^./\\\0]+")
"""Pattern of a library's name. By a path, the layout of a foreign dataset could name any file of this user."""
MOST_OBJECTS = 200
"""Largest number of objects in a stored layout whose physics is computed; the time grows faster than their square. The
largest group of objects in the shipped tasks has 14."""
TASK = re.compile("[A-Za-z0-9][A-Za-z0-9_-]*")
"""Pattern of a task's name, which is part of the names of episode files."""
TaskName = Annotated[str, Meta(pattern=rf"\A{TASK.pattern}\Z")]
"""Name of a task in a file of others."""
ThingName = Annotated[str, Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]*\Z", max_length=200)]
"""Name of a camera, an object or a group, which is a part of paths in USD; a layout may come from an untrusted file."""
LinkName = Annotated[str, Meta(max_length=200)]
"""Name of a link or body, which models of robots choose."""
RunSeed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""Seed of a run."""
_Number = Annotated[int, Meta(ge=0, le=2**53)]
"""Number in an episode's address, as in the ledger."""


@dataclass(frozen=True, kw_only=True)
class EpisodeKey:
    """Address of an episode. Its random streams depend on nothing else: not on attempt, worker or time."""

    task: str
    task_hash: str
    seed: RunSeed
    index: _Number
    variant: _Number = 0
    plan: str = ""
    """Id of the plan that is rendered, if it was made for another task; not part of the address."""
    split: str = RUN
    """Set of episodes to which it belongs: those of runs, or those for evaluating policies."""

    def __post_init__(self) -> None:
        """Refuse values that could lead file names outside their folder; keys also come from the files of datasets."""
        if not TASK.fullmatch(self.task):
            raise ValueError(f"task {self.task!a} is not a name")
        if not TASK.fullmatch(self.split):
            raise ValueError(f"split {self.split!a} is not a name")
        if min(self.seed, self.index, self.variant) < 0:
            raise ValueError(f"seed {self.seed}, index {self.index}, variant {self.variant}: one is negative")

    @property
    def id(self) -> str:
        """Id that is safe in file names; it is equal for equal task content, split, seed, index and variant."""
        text = f"{self.task_hash}:{self.seed}:{self.index}:{self.variant}"
        apart = "" if self.split == RUN else f"{self.split}-"
        digest = hashlib.sha256((apart + text).encode()).hexdigest()[:8]
        return f"{self.task}-{apart}s{self.seed}-{self.index:06d}-v{self.variant}-{digest}"

    @property
    def plan_id(self) -> str:
        """Id of the episode whose plan is rendered; by default the first variant with the same index."""
        return self.plan or replace(self, variant=0).id

    def generator(self, *address: int | str) -> np.random.Generator:
        """Return a generator for one draw of the episode."""
        return episode_generator(self.seed, self.split, self.index, *address)


@dataclass(frozen=True, kw_only=True)
class PlacedObject:
    """Movable object at the start of an episode, in the world frame."""

    name: ThingName
    """Name that is unique in the episode, such as ``items_0``."""
    group: ThingName
    """Name of the object's group in the task file, such as ``items``."""
    library: str
    """Name of its object library, never a path."""
    kind: str
    variant: int
    object_class: str
    position: Vector
    wxyz: Quaternion
    rest_pose: str
    """Rest pose: ``upright``, ``lying`` or another name of the object's rest poses."""
    scale: float = 1.0
    mass: float
    """Mass [kg]."""
    friction: float
    """Coefficient of sliding friction (Coulomb)."""
    anchored: bool = False
    """True if the object is fixed in place."""
    joints: dict[str, float] = field(default_factory=dict)
    """Positions of the joints of its parts, by name [rad or m]; omitted joints are at 0."""
    damping: float = 1.0
    """Factor on the damping and dry friction of the joints of its parts."""

    def __post_init__(self) -> None:
        """Refuse a path in place of the name of a library."""
        if not _LIBRARY.fullmatch(self.library):
            raise ValueError(f"object library {self.library[:200]!a} is not a name")


def part_label(item: str, part: str) -> str:
    """Return the label of an object's part, which its body, joint and mesh share."""
    return f"{item}.{part}"


@dataclass(frozen=True, kw_only=True)
class RobotSetup:
    """Deviations of the robot in this episode from its file: installation, wear and wiring."""

    offset: Vector = (0.0, 0.0, 0.0)
    """Offset of the base in the world frame [m]."""
    yaw: float = 0.0
    """Rotation of the base about its vertical [rad]."""
    start: dict[str, float] = field(default_factory=dict)
    """Initial deviation from the home posture, by joint [rad]."""
    stiffness: float = 1.0
    """Factor on the position gains of the arms; the controller does not know it."""
    damping: float = 1.0
    """Factor on the velocity gains of the arms; the controller does not know it."""
    delay: Annotated[float, Meta(ge=0.0, le=10.0)] = 0.0
    """Delay from a command to its effect [s]."""


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """Force on one body during part of an episode, independent of the source of the robot's commands."""

    body: LinkName
    """Name of an object, or of the link of a hand."""
    time: float
    """Start, from the first recorded row [s]."""
    duration: float
    """Duration of the push [s]."""
    force: Vector
    """Force on the center of mass in the world frame [N]."""
    is_slippery: bool = False
    """True if the body has no friction during the push, so it slips out of a hand."""
    unnoticed: float = 0.0
    """Time from the end of the push until the demonstrator observes the scene again [s]."""


@dataclass(frozen=True, kw_only=True)
class PhysicalLayout:
    """Values that determine the motion: equal physical layouts give equal plans."""

    objects: tuple[PlacedObject, ...]
    robot: RobotSetup = RobotSetup()
    disturbance: Disturbance | None = None
    drawn: dict[str, Any] = field(default_factory=dict)
    """All drawn values by the name of the randomizer, as plain JSON values."""


@dataclass(frozen=True, kw_only=True)
class Lamp:
    """Additional directional light; with the default renderer it casts no shadow."""

    direction: Vector
    """Unit vector in which the light travels, in the world frame."""
    color: Vector
    """Linear RGB times intensity."""


@dataclass(frozen=True, kw_only=True)
class Light:
    """Directional light, with light from sky and ground that fills its shadows; colors are linear RGB."""

    direction: Vector
    """Unit vector in which the light travels, in the world frame."""
    color: Vector
    """Color times intensity."""
    sky: Vector
    ground: Vector
    lamps: tuple[Lamp, ...] = ()
    """Additional lights."""


Tone = Literal["plain", "filmic"]
"""Curve from light to colors: linear with a soft shoulder, or like film."""


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """Sensor effects of a camera; with every field at 0 the image is ideal."""

    exposure: float = 0.0
    """Exposure [stops]; each stop doubles the brightness."""
    blur: Annotated[float, Meta(ge=0.0, le=1000.0)] = 0.0
    """Standard deviation of a Gaussian blur [px]."""
    grain: float = 0.0
    """Standard deviation of the color noise, as a fraction of the full scale."""
    depth_noise: float = 0.0
    """Standard deviation of the depth at 1 m [m]; it grows with the square of the depth, as for stereo cameras."""
    depth_holes: float = 0.0
    """Fraction of the pixels without a depth; they form blobs."""
    seed: int = 0
    """Seed of the color noise."""
    depth_seed: int = 0
    """Seed of the depth noise."""
    antialiasing: Annotated[int, Meta(ge=1, le=4)] = 1
    """Number of color samples along each side of a pixel; depth and labels are always sampled at its center."""
    tone: Tone = "plain"


Modality = Literal["rgb", "depth", "instance", "semantic", "normals", "boxes", "visibility", "flow", "keypoints"]
MODALITIES: tuple[Modality, ...] = get_args(Modality)
"""All modalities that a camera can store in each step."""
ANNOTATIONS: tuple[Modality, ...] = ("flow", "keypoints")
"""Modalities that are only stored on request."""
DEFAULT_MODALITIES: tuple[Modality, ...] = tuple(name for name in MODALITIES if name not in ANNOTATIONS)
"""Modalities of a camera that lists none."""


@dataclass(frozen=True, kw_only=True)
class Camera:
    """Pinhole camera as used in an episode, with OpenGL axes (looks along -Z, +Y up, +X right)."""

    name: ThingName
    mount: LinkName
    """Name of the robot link to which it is fixed; empty for the world."""
    position: Vector
    """Position in the frame of the mount (``mount_T_camera``) [m]."""
    wxyz: Quaternion
    vertical_fov: float
    """Vertical field of view [rad]."""
    width: Side
    height: Side
    distortion: tuple[float, float] = (0.0, 0.0)
    """Radial coefficients k1 and k2 of the Brown-Conrady model, as in OpenCV; labels are distorted in the same way."""
    sensor: Sensor = Sensor()
    modalities: tuple[Modality, ...] = DEFAULT_MODALITIES
    """Modalities stored in each step; ``rgb`` is always included."""


@dataclass(frozen=True, kw_only=True)
class SurfaceLook:
    """Look of a surface: an albedo tint over its texture, or a procedural texture."""

    color: Vector = (1.0, 1.0, 1.0)
    """Multiplier of the sRGB color, from 0 to 1."""
    texture: str = ""
    """Name of a procedural texture (``wood``, ``concrete``, …); empty to keep the asset's own."""
    texture_seed: int = 0
    picture: str = ""
    """Path of an image that replaces a procedural texture."""
    picture_hash: str = ""
    """Hash of the image's content."""


@dataclass(frozen=True, kw_only=True)
class Dome:
    """Environment map that replaces a plain sky."""

    texture: str
    """Path of the image file: equirectangular projection, linear light."""
    content: str
    """Hash of the image's content."""
    intensity: float
    """Factor on its light."""
    turn: float
    """Rotation about the vertical [rad]."""
    sky: Vector
    """Mean light from above, times the intensity; linear RGB."""
    ground: Vector


@dataclass(frozen=True, kw_only=True)
class VisualLayout:
    """Values that determine only the pixels."""

    light: Light
    cameras: tuple[Camera, ...]
    surfaces: dict[str, SurfaceLook] = field(default_factory=dict)
    """Looks by the name of an object or fixture, or by ``table``, ``floor`` or ``backdrop``."""
    instruction: str = ""
    latency: float = 0.0
    """Age of the camera images [s]."""
    table_rise: float = 0.0
    """Height by which the table is raised in the room [m]; the origin of the world stays on the table's top."""
    drawn: dict[str, Any] = field(default_factory=dict)
    dome: Dome | None = None
    """Environment map, or None; ``light.sky`` and ``light.ground`` are its mean colors."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Physical and visual part of a layout, drawn from separate random streams."""

    key: EpisodeKey
    physical: PhysicalLayout
    visual: VisualLayout

    def check_names(self, bodies: Collection[str]) -> None:
        """Compare the names in a stored layout with the bodies of its trajectory, at whose poses readers draw them.

        Args:
            bodies: Names of the bodies.

        Raises:
            ValueError: A name is given twice, or no body has it.
        """
        objects = [item.name for item in self.physical.objects]
        cameras = [camera.name for camera in self.visual.cameras]
        for kind, names in (("object", objects), ("camera", cameras)):
            if len(set(names)) < len(names):
                raise ValueError(f"two of its {kind}s have one name")
        push = self.physical.disturbance
        used = [*objects, *(camera.mount for camera in self.visual.cameras), push.body if push else ""]
        if missing := [name for name in used if name and name not in bodies]:
            raise ValueError(f"the trajectory has no body {missing[0]!a}")


def check_object_count(layout: PhysicalLayout, *, where: str) -> None:
    """Refuse a layout from a file of others whose physics would take hours.

    Raises:
        InputError: It has too many objects.
    """
    if (count := len(layout.objects)) > MOST_OBJECTS:
        what = f"its layout has {count} objects; the limit is {MOST_OBJECTS}"
        raise InputError(what, where=where, instead="check where the dataset comes from")
