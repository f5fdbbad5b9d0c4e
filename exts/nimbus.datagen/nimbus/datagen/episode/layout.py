"""One seeded variation of a task: what is drawn before anything moves or is seen."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from nimbus.datagen.arrays import Quaternion
from nimbus.datagen.random_streams import RUN, episode_generator

Vector = tuple[float, float, float]
_TASK = re.compile("[A-Za-z0-9][A-Za-z0-9_-]*")
"""Name of a task; files of episodes carry it."""


@dataclass(frozen=True, kw_only=True)
class EpisodeKey:
    """The address of an episode. Nothing else enters its random streams: no attempt, worker or time."""

    task: str
    task_hash: str
    seed: int
    index: int
    variant: int = 0
    plan: str = ""
    """Id of the plan that it shows, where that was made for another task; not part of the address."""
    split: str = RUN
    """Set of episodes that it belongs to: those of runs, or those that policies are evaluated on."""

    def __post_init__(self) -> None:
        """Refuse, in a file of a dataset too, what would lead files named by it elsewhere."""
        if not _TASK.fullmatch(self.task):
            raise ValueError(f"task {self.task!a} is no name")
        if not _TASK.fullmatch(self.split):
            raise ValueError(f"split {self.split!a} is no name")

    @property
    def id(self) -> str:
        """File-safe id, equal for equal task content, split, seed, index and variant."""
        text = f"{self.task_hash}:{self.seed}:{self.index}:{self.variant}"
        apart = "" if self.split == RUN else f"{self.split}-"
        digest = hashlib.sha256((apart + text).encode()).hexdigest()[:8]
        return f"{self.task}-{apart}s{self.seed}-{self.index:06d}-v{self.variant}-{digest}"

    @property
    def plan_id(self) -> str:
        """Id of the episode whose plan this one shows: the first variant of the same index, unless said otherwise."""
        return self.plan or replace(self, variant=0).id

    def generator(self, *address: int | str) -> np.random.Generator:
        """A generator for one draw site of the episode."""
        return episode_generator(self.seed, self.split, self.index, *address)


@dataclass(frozen=True, kw_only=True)
class PlacedObject:
    """One movable object at the start of an episode, in the world frame."""

    name: str
    """Unique in the episode, for example ``items_0``."""
    group: str
    """The task file's name for the set it was drawn for, for example ``items``."""
    library: str
    kind: str
    variant: int
    object_class: str
    position: Vector
    wxyz: Quaternion
    rest_pose: str
    """How it rests: ``upright``, ``lying`` or another name of the object's rest poses."""
    scale: float = 1.0
    mass: float
    """[kg]"""
    friction: float
    """Coulomb coefficient of sliding."""
    anchored: bool = False
    """Fixed where it stands."""
    joints: dict[str, float] = field(default_factory=dict)
    """Position of its parts' joints by name [rad or m]; those left out are at 0."""
    damping: float = 1.0
    """Factor of the damping and dry friction of its parts' joints."""


def part_label(item: str, part: str) -> str:
    """What a part of an object is called: its body, its joint and what is seen of it."""
    return f"{item}.{part}"


@dataclass(frozen=True, kw_only=True)
class RobotSetup:
    """How this episode's robot differs from what its file says: as installed, worn and wired."""

    offset: Vector = (0.0, 0.0, 0.0)
    """Of its base, world frame [m]."""
    yaw: float = 0.0
    """Of its base, about the vertical through it [rad]."""
    start: dict[str, float] = field(default_factory=dict)
    """Away from the home posture at the start, by joint [rad]."""
    stiffness: float = 1.0
    """Factor of the arms' position gains; what the controller takes them for stays."""
    damping: float = 1.0
    """Factor of the arms' velocity gains, likewise."""
    delay: float = 0.0
    """From a command until the motors hear of it [s]."""


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """A force on one body at one time of an episode, whatever commands the robot."""

    body: str
    """Name of an object, or of the link of a hand."""
    time: float
    """From the first recorded row until it begins [s]."""
    duration: float
    """[s]"""
    force: Vector
    """On the center of mass, world frame [N]."""
    is_slippery: bool = False
    """Nothing has a grip on the body meanwhile: it slips out of a hand."""
    unnoticed: float = 0.0
    """From its end until the demonstrator looks again [s]."""


@dataclass(frozen=True, kw_only=True)
class PhysicalLayout:
    """What decides the motion. Equal physical layouts give equal plans."""

    objects: tuple[PlacedObject, ...]
    robot: RobotSetup = RobotSetup()
    disturbance: Disturbance | None = None
    drawn: dict[str, Any] = field(default_factory=dict)
    """Every value drawn, by randomizer name; plain JSON values."""


@dataclass(frozen=True, kw_only=True)
class Lamp:
    """A further directional light; with the default renderer it casts no shadow."""

    direction: Vector
    """The way the light travels, unit length, world frame."""
    color: Vector
    """Linear RGB times intensity."""


@dataclass(frozen=True, kw_only=True)
class Light:
    """One directional light and the sky and ground that fill its shadows; colours are linear RGB."""

    direction: Vector
    """The way the light travels, unit length, world frame."""
    color: Vector
    """Colour times intensity."""
    sky: Vector
    ground: Vector
    lamps: tuple[Lamp, ...] = ()
    """Further lights."""


Tone = Literal["plain", "filmic"]
"""Curve from light to colors: straight with a soft shoulder, or that of film."""


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """What a camera adds to what is seen; every field at 0 adds nothing."""

    exposure: float = 0.0
    """Stops: twice as bright for each."""
    blur: float = 0.0
    """Standard deviation of a Gaussian [px]."""
    grain: float = 0.0
    """Standard deviation of the noise in colours, a share of the full scale."""
    depth_noise: float = 0.0
    """Standard deviation of the depth at 1 m [m]; it grows with the square of the depth, as that of stereo does."""
    depth_holes: float = 0.0
    """Share of the pixels without a depth, in blobs."""
    seed: int = 0
    """Of the noise in colours."""
    depth_seed: int = 0
    """Of the noise in depth."""
    antialiasing: int = 1
    """Samples of color along each side of a pixel; depth and labels are of its middle whatever this is."""
    tone: Tone = "plain"


Modality = Literal["rgb", "depth", "instance", "semantic", "normals", "boxes", "visibility"]
MODALITIES: tuple[Modality, ...] = get_args(Modality)
"""Everything that a camera can store of a step."""


@dataclass(frozen=True, kw_only=True)
class Camera:
    """A pinhole camera as it is used: OpenGL axes (looks along -Z, +Y up, +X right)."""

    name: str
    mount: str
    """Name of the robot link it is fixed to, or ``""`` for the world."""
    position: Vector
    """[m], in the frame of the mount (``mount_T_camera``)."""
    wxyz: Quaternion
    vertical_fov: float
    """[rad]"""
    width: int
    height: int
    distortion: tuple[float, float] = (0.0, 0.0)
    """Radial coefficients k1 and k2 of the Brown-Conrady model, as OpenCV has them; the labels are bent alike."""
    sensor: Sensor = Sensor()
    modalities: tuple[Modality, ...] = MODALITIES
    """Stored of each step; ``rgb`` is among them."""


@dataclass(frozen=True, kw_only=True)
class SurfaceLook:
    """How something looks: an albedo tint over its texture, or a procedural texture of its own."""

    color: Vector = (1.0, 1.0, 1.0)
    """sRGB multiplier, 0 to 1."""
    texture: str = ""
    """Name of a procedural texture (``wood``, ``concrete``, …), empty to keep the asset's own."""
    texture_seed: int = 0
    picture: str = ""
    """Path of an image that is used instead of a procedural texture."""
    picture_hash: str = ""
    """Of its content."""


@dataclass(frozen=True, kw_only=True)
class Dome:
    """A picture of the sky all around, in place of a sky of one colour."""

    texture: str
    """Its file: latitude over longitude, linear light."""
    content: str
    """Hash of it."""
    intensity: float
    """Factor of its light."""
    turn: float
    """About the vertical [rad]"""
    sky: Vector
    """Its mean light from above, times the intensity; linear RGB."""
    ground: Vector


@dataclass(frozen=True, kw_only=True)
class VisualLayout:
    """What decides the pixels and nothing else."""

    light: Light
    cameras: tuple[Camera, ...]
    surfaces: dict[str, SurfaceLook] = field(default_factory=dict)
    """By name of an object, fixture or ``table``, ``floor``, ``backdrop``."""
    instruction: str = ""
    latency: float = 0.0
    """How old what all cameras show is [s]."""
    table_rise: float = 0.0
    """How much higher the table stands in the room [m]; the world's origin stays on its top."""
    drawn: dict[str, Any] = field(default_factory=dict)
    dome: Dome | None = None
    """What the light's sky and ground are the mean colours of, where there is one."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A physical and a visual part, drawn from separate random streams."""

    key: EpisodeKey
    physical: PhysicalLayout
    visual: VisualLayout
