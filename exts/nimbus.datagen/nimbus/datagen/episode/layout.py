"""Layout: one seeded variation of a task, drawn before anything moves or is rendered."""

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
        """Refuse values that would lead file names outside their folder, also from a dataset's files."""
        if not _TASK.fullmatch(self.task):
            raise ValueError(f"task {self.task!a} is not a name")
        if not _TASK.fullmatch(self.split):
            raise ValueError(f"split {self.split!a} is not a name")

    @property
    def id(self) -> str:
        """File-safe id, equal for equal task content, split, seed, index and variant."""
        text = f"{self.task_hash}:{self.seed}:{self.index}:{self.variant}"
        apart = "" if self.split == RUN else f"{self.split}-"
        digest = hashlib.sha256((apart + text).encode()).hexdigest()[:8]
        return f"{self.task}-{apart}s{self.seed}-{self.index:06d}-v{self.variant}-{digest}"

    @property
    def plan_id(self) -> str:
        """Return the id of the episode whose plan is rendered: by default the first variant of the same index."""
        return self.plan or replace(self, variant=0).id

    def generator(self, *address: int | str) -> np.random.Generator:
        """Return a generator for one draw of the episode."""
        return episode_generator(self.seed, self.split, self.index, *address)


@dataclass(frozen=True, kw_only=True)
class PlacedObject:
    """Movable object at the start of an episode, in the world frame."""

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
    """Rest pose: ``upright``, ``lying`` or another name of the object's rest poses."""
    scale: float = 1.0
    mass: float
    """Mass [kg]."""
    friction: float
    """Coulomb coefficient of sliding."""
    anchored: bool = False
    """Fixed where it stands."""
    joints: dict[str, float] = field(default_factory=dict)
    """Position of its parts' joints by name [rad or m]; those left out are at 0."""
    damping: float = 1.0
    """Factor of the damping and dry friction of its parts' joints."""


def part_label(item: str, part: str) -> str:
    """Return the label of an object's part, shared by its body, joint and mesh."""
    return f"{item}.{part}"


@dataclass(frozen=True, kw_only=True)
class RobotSetup:
    """Deviations of this episode's robot from its file: installation, wear and wiring."""

    offset: Vector = (0.0, 0.0, 0.0)
    """Offset of its base, world frame [m]."""
    yaw: float = 0.0
    """Rotation of its base about the vertical through it [rad]."""
    start: dict[str, float] = field(default_factory=dict)
    """Away from the home posture at the start, by joint [rad]."""
    stiffness: float = 1.0
    """Factor on the arms' position gains, unknown to the controller."""
    damping: float = 1.0
    """Factor on the arms' velocity gains, unknown to the controller."""
    delay: float = 0.0
    """Delay from a command to its effect [s]."""


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """A force on one body at one time of an episode, whatever commands the robot."""

    body: str
    """Name of an object, or of the link of a hand."""
    time: float
    """Start, from the first recorded row [s]."""
    duration: float
    """Duration of the push [s]."""
    force: Vector
    """Force on the center of mass, world frame [N]."""
    is_slippery: bool = False
    """True if the body has no friction meanwhile, so that it slips out of a hand."""
    unnoticed: float = 0.0
    """Time from its end until the demonstrator observes again [s]."""


@dataclass(frozen=True, kw_only=True)
class PhysicalLayout:
    """Values that decide the motion. Equal physical layouts give equal plans."""

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
    """One directional light, with the sky and ground that fill its shadows; colors are linear RGB."""

    direction: Vector
    """The way the light travels, unit length, world frame."""
    color: Vector
    """Color times intensity."""
    sky: Vector
    ground: Vector
    lamps: tuple[Lamp, ...] = ()
    """Further lights."""


Tone = Literal["plain", "filmic"]
"""Curve from light to colors: straight with a soft shoulder, or that of film."""


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """Sensor effects of a camera; with every field at 0 the image is ideal."""

    exposure: float = 0.0
    """Stops: twice as bright for each."""
    blur: float = 0.0
    """Standard deviation of a Gaussian [px]."""
    grain: float = 0.0
    """Standard deviation of the noise in colors, as a fraction of the full scale."""
    depth_noise: float = 0.0
    """Standard deviation of the depth at 1 m [m]; it grows with the square of the depth, as that of stereo does."""
    depth_holes: float = 0.0
    """Fraction of the pixels without a depth, in blobs."""
    seed: int = 0
    """Seed of the noise in colors."""
    depth_seed: int = 0
    """Seed of the noise in depth."""
    antialiasing: int = 1
    """Samples of color along each side of a pixel; depth and labels are of its middle whatever this is."""
    tone: Tone = "plain"


Modality = Literal["rgb", "depth", "instance", "semantic", "normals", "boxes", "visibility", "flow", "keypoints"]
MODALITIES: tuple[Modality, ...] = get_args(Modality)
"""Everything that a camera can store of a step."""
ANNOTATIONS: tuple[Modality, ...] = ("flow", "keypoints")
"""Modalities that are stored only where they are asked for."""
DEFAULT_MODALITIES: tuple[Modality, ...] = tuple(name for name in MODALITIES if name not in ANNOTATIONS)
"""Modalities of a camera that lists none."""


@dataclass(frozen=True, kw_only=True)
class Camera:
    """A pinhole camera as it is used: OpenGL axes (looks along -Z, +Y up, +X right)."""

    name: str
    mount: str
    """Name of the robot link it is fixed to, or ``""`` for the world."""
    position: Vector
    """Position in the frame of the mount (``mount_T_camera``) [m]."""
    wxyz: Quaternion
    vertical_fov: float
    """Vertical field of view [rad]."""
    width: int
    height: int
    distortion: tuple[float, float] = (0.0, 0.0)
    """Radial coefficients k1 and k2 of the Brown-Conrady model, as OpenCV has them; the labels are bent alike."""
    sensor: Sensor = Sensor()
    modalities: tuple[Modality, ...] = DEFAULT_MODALITIES
    """Stored of each step; ``rgb`` is among them."""


@dataclass(frozen=True, kw_only=True)
class SurfaceLook:
    """Look of a surface: an albedo tint over its texture, or a procedural texture."""

    color: Vector = (1.0, 1.0, 1.0)
    """sRGB multiplier, 0 to 1."""
    texture: str = ""
    """Name of a procedural texture (``wood``, ``concrete``, …), empty to keep the asset's own."""
    texture_seed: int = 0
    picture: str = ""
    """Path of an image that is used instead of a procedural texture."""
    picture_hash: str = ""
    """Hash of its content."""


@dataclass(frozen=True, kw_only=True)
class Dome:
    """Environment map in place of a plain sky."""

    texture: str
    """Path of the image file: equirectangular, linear light."""
    content: str
    """Hash of it."""
    intensity: float
    """Factor of its light."""
    turn: float
    """About the vertical [rad]"""
    sky: Vector
    """Mean light from above, times the intensity; linear RGB."""
    ground: Vector


@dataclass(frozen=True, kw_only=True)
class VisualLayout:
    """Values that decide the pixels and nothing else."""

    light: Light
    cameras: tuple[Camera, ...]
    surfaces: dict[str, SurfaceLook] = field(default_factory=dict)
    """Looks by name of an object, fixture or ``table``, ``floor``, ``backdrop``."""
    instruction: str = ""
    latency: float = 0.0
    """Age of the camera images [s]."""
    table_rise: float = 0.0
    """Rise of the table in the room [m]; the world's origin stays on its top."""
    drawn: dict[str, Any] = field(default_factory=dict)
    dome: Dome | None = None
    """Environment map whose mean colors are the light's sky and ground, if any."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A physical and a visual part, drawn from separate random streams."""

    key: EpisodeKey
    physical: PhysicalLayout
    visual: VisualLayout
