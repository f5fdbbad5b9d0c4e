"""Settings beside a mesh: ``library.yaml`` for a whole folder, or ``<name>.yaml`` for one file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nimbus.datagen.files.quantities import Kilograms, Metres, Range
from nimbus.datagen.files.strict_yaml import Name, StrictModel
from nimbus.datagen.objects.model import FlexibleKind

Unit = Literal["m", "cm", "mm", "in"]
METRES: dict[Unit, float] = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254}
Axis = Literal["x", "-x", "y", "-y", "z", "-z"]
Point = tuple[Metres, Metres, Metres]


class NamedFrame(StrictModel):
    """Frame on the object, in its own coordinates after unit, scale and up axis."""

    at: Point
    z: tuple[float, float, float] = (0.0, 0.0, 1.0)
    x: tuple[float, float, float] = (1.0, 0.0, 0.0)


class CavitySettings(StrictModel):
    """Box inside the object that can hold other objects."""

    lower: Point
    upper: Point


class AssetSettings(StrictModel):
    """Settings of one mesh; omitted ones are taken from the file or inferred."""

    object_class: Name = Field(default="object", alias="class")
    category: str = Field(default="", description="name of the object in instructions; by default the file's name")
    unit: Unit | None = Field(default=None, description="unit of the file; by default the format's, or meters")
    scale: Annotated[float, Field(gt=0, le=1e6)] = Field(default=1.0, description="factor in addition to the unit")
    up: Axis | None = Field(default=None, description="axis of the file that points up; by default found by a vote")
    mass: Range[Annotated[Kilograms, Field(gt=0)]] | None = None
    density: Annotated[float, Field(gt=0)] = Field(
        default=400.0, description="density of an object without a given mass [kg/m³]"
    )
    friction: Range[Annotated[float, Field(gt=0, le=2)]] = (0.7, 0.7)
    symmetry: Literal["none", "revolution", "box"] | None = Field(
        default=None, description="symmetry; by default determined from the mesh"
    )
    rests: tuple[Literal["upright", "lying", "on_side", "inverted"], ...] = ("upright", "lying")
    lies_on: Literal["side", "base", "any"] = Field(default="any", description="part on which a lying object rests")
    pieces: Annotated[int, Field(ge=1, le=64)] = Field(default=16, description="largest number of convex pieces")
    keypoints: dict[Name, Point] = {}
    frames: dict[Name, NamedFrame] = {}
    cavities: dict[Name, CavitySettings] = {}
    anchored: bool = False
    variants: Literal[1] = 1
    colors: dict[Name, str] = Field(default={}, max_length=0)

    @property
    def bends_as(self) -> FlexibleKind:
        """Empty: meshes are rigid."""
        return ""


class AssetFile(StrictModel):
    """Content of ``library.yaml``: settings by the name of a mesh, and defaults."""

    classes: tuple[Name, ...] = Field(default=(), description="names of all classes, in order")
    defaults: AssetSettings = AssetSettings()
    kinds: dict[str, AssetSettings] = {}

    @model_validator(mode="after")
    def _classes_are_known(self) -> AssetFile:
        for name, kind in self.kinds.items():
            if self.classes and kind.object_class not in self.classes:
                raise ValueError(f"'{name}' has the unknown class '{kind.object_class}', not {', '.join(self.classes)}")
        return self
