"""Draft of a layout that randomizers change, and the base class of their settings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from nimbus.datagen.episode.layout import Camera, Dome, Light, PlacedObject, RobotSetup, SurfaceLook
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.light_sources import nominal_light
from nimbus.datagen.tasks.statements import Randomization

if TYPE_CHECKING:
    from nimbus.datagen.objects.library import ObjectLibrary
    from nimbus.datagen.tasks.task_file import Region
    from nimbus.datagen.usd.stage import StageInfo

Draws: TypeAlias = dict[str, Any]


@dataclass
class Draft:
    """What randomizers change; plain layout values."""

    objects: list[PlacedObject] = field(default_factory=list)
    robot: RobotSetup = RobotSetup()
    joints: tuple[str, ...] = ()
    """Of the robot's arms."""
    regions: Mapping[str, Region] = field(default_factory=dict)
    scene: StageInfo | None = None
    light: Light = field(default_factory=nominal_light)
    dome: Dome | None = None
    cameras: list[Camera] = field(default_factory=list)
    surfaces: dict[str, SurfaceLook] = field(default_factory=dict)
    latency: float = 0.0
    """Of what cameras show [s]."""
    table_rise: float = 0.0
    """Of the table and what stands on it, in the room [m]."""
    names: dict[str, str] = field(default_factory=dict)
    """What the instruction calls an object, without an article."""
    sentence: str = "{Instruction}"
    """Round the instruction."""


class LayoutRandomization(Randomization):
    """A randomizer of one kind: registered as ``randomizer`` under the name that task files use."""

    part: ClassVar[Literal["physical", "visual"]]

    def complaint(
        self, regions: Collection[str], libraries: Mapping[str, ObjectLibrary]
    ) -> tuple[str, str, str] | None:
        """The field that names what the task has not, what is wrong with it, and what to write instead."""
        return None

    @abstractmethod
    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Change the draft and return every value drawn, as plain JSON values."""
