"""Draft of a layout, which randomizers change, and the base class of their settings."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from nimbus.datagen.episode.layout import (
    Camera,
    Disturbance,
    Dome,
    Lamp,
    Light,
    PlacedObject,
    RobotSetup,
    SurfaceLook,
    Vector,
)
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.tasks.statements import Randomization

if TYPE_CHECKING:
    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.tasks.task_file import Region
    from nimbus.datagen.usd.stage import StageInfo

_GROUND_SHARE = 0.45
"""Fraction of the light that the floor reflects upward."""
Draws: TypeAlias = dict[str, Any]


def make_light(*, azimuth: float, elevation: float, intensity: float, temperature: float, ambient: float) -> Light:
    """Return sunlight from ``azimuth`` and ``elevation`` [rad] with a color temperature [K], and a matching sky."""
    tint = np.array(blackbody_color(temperature))
    sky = ambient * (0.5 + 0.5 * tint)
    return Light(
        direction=_from(azimuth, elevation),
        color=_vector(intensity * tint),
        sky=_vector(sky),
        ground=_vector(_GROUND_SHARE * sky),
    )


def make_lamp(*, azimuth: float, elevation: float, intensity: float, temperature: float) -> Lamp:
    """Return an additional light from ``azimuth`` and ``elevation`` [rad] with a color temperature [K]."""
    color = _vector(intensity * np.array(blackbody_color(temperature)))
    return Lamp(direction=_from(azimuth, elevation), color=color)


def _from(azimuth: float, elevation: float) -> Vector:
    """Return the direction in which light from a point of the sky travels."""
    towards = math.cos(elevation) * math.cos(azimuth), math.cos(elevation) * math.sin(azimuth), math.sin(elevation)
    return -towards[0], -towards[1], -towards[2]


def nominal_light() -> Light:
    """Return the light of a task that does not randomize it."""
    return make_light(azimuth=0.6, elevation=1.05, intensity=0.9, temperature=6000.0, ambient=0.45)


def blackbody_color(temperature: float) -> Vector:
    """Return the linear sRGB of a black body [K] with brightest channel 1 (Kim et al., 2002; 1667 to 25000 K)."""
    t = 1e3 / temperature
    if temperature <= 4000.0:
        x = -0.2661239 * t**3 - 0.2343589 * t**2 + 0.8776956 * t + 0.179910
    else:
        x = -3.0258469 * t**3 + 2.1070379 * t**2 + 0.2226347 * t + 0.240390
    if temperature <= 2222.0:
        y = -1.1063814 * x**3 - 1.34811020 * x**2 + 2.18555832 * x - 0.20219683
    elif temperature <= 4000.0:
        y = -0.9549476 * x**3 - 1.37418593 * x**2 + 2.09137015 * x - 0.16748867
    else:
        y = 3.0817580 * x**3 - 5.87338670 * x**2 + 3.75112997 * x - 0.37001483
    xyz = np.array([x / y, 1.0, (1 - x - y) / y])
    # XYZ to linear sRGB (IEC 61966-2-1). Warm colors have negative blue there, which is clipped.
    to_rgb = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])
    rgb = np.clip(to_rgb @ xyz, 0.0, None)
    return _vector(rgb / rgb.max())


def _vector(values: np.ndarray) -> Vector:
    x, y, z = (float(value) for value in values)
    return x, y, z


@dataclass
class Draft:
    """Values of a layout that randomizers change."""

    objects: list[PlacedObject] = field(default_factory=list)
    robot: RobotSetup = RobotSetup()
    joints: tuple[str, ...] = ()
    """Joints of the robot's arms."""
    hands: tuple[str, ...] = ()
    """Link of each arm's hand."""
    disturbance: Disturbance | None = None
    regions: Mapping[str, Region] = field(default_factory=dict)
    scene: StageInfo | None = None
    light: Light = field(default_factory=nominal_light)
    dome: Dome | None = None
    cameras: list[Camera] = field(default_factory=list)
    surfaces: dict[str, SurfaceLook] = field(default_factory=dict)
    latency: float = 0.0
    """Age of the camera images [s]."""
    table_rise: float = 0.0
    """Height by which the table and everything on it is raised in the room [m]."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of objects in the instruction, without articles."""
    sentence: str = "{Instruction}"
    """Template around the instruction."""


class LayoutRandomization(Randomization):
    """Base class of randomizers; each is registered as ``randomizer`` under its name in task files."""

    part: ClassVar[Literal["physical", "visual"]]

    def complaint(
        self, regions: Collection[str], libraries: Mapping[str, ObjectLibrary]
    ) -> tuple[str, str, str] | None:
        """Return the field with an invalid reference, the problem and the fix; None if all references are valid."""
        return None

    @abstractmethod
    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Change the draft, and return all drawn values as plain JSON values."""
