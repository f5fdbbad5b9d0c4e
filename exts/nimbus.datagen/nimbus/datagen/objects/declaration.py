"""Schema of an object library file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nimbus.datagen.files.quantities import Kilograms, Metres, Range, Ratio
from nimbus.datagen.files.strict_yaml import Name, StrictModel
from nimbus.datagen.objects.articulated import AnyArticulated
from nimbus.datagen.objects.model import FlexibleKind
from nimbus.datagen.objects.shapes.ball import Ball
from nimbus.datagen.objects.shapes.block import Block
from nimbus.datagen.objects.shapes.cable import Cable
from nimbus.datagen.objects.shapes.cloth import Cloth
from nimbus.datagen.objects.shapes.compound import Compound
from nimbus.datagen.objects.shapes.crumpled import Crumpled
from nimbus.datagen.objects.shapes.grains import Grains
from nimbus.datagen.objects.shapes.hole_board import HoleBoard
from nimbus.datagen.objects.shapes.hollow import Hollow
from nimbus.datagen.objects.shapes.loft import Loft
from nimbus.datagen.objects.shapes.peel import Peel
from nimbus.datagen.objects.shapes.ring import Ring
from nimbus.datagen.objects.textures.canvas import Color
from nimbus.datagen.objects.textures.texture import Layer

FlexibleShape = Cloth | Cable | Grains
AnyShape = Annotated[
    Loft | Crumpled | Peel | Block | Hollow | Ring | Ball | HoleBoard | FlexibleShape | Compound | AnyArticulated,
    Field(discriminator="family"),
]


BY_COLOR = "color"
"""Class value that is replaced by the name of a kind's color."""
Direction = tuple[float, float, float]


class Size(StrictModel):
    """Outer size of the shape before it is deformed; the depth equals the width by default."""

    width: Range[Metres]
    depth: Range[Metres] | None = None
    height: Range[Metres]


class Frame(StrictModel):
    """Named frame on an object, for skills."""

    at: tuple[Ratio, Ratio, Ratio] = Field(
        description="fractions of width, depth and height from the center of the bounds; 50 % is on the surface"
    )
    z: Direction = Field((0.0, 0.0, 1.0), description="z axis: out of an opening, along a handle or out of a tip")
    x: Direction = Field((1.0, 0.0, 0.0), description="x axis; it is made perpendicular to z")


class ObjectKind(StrictModel):
    """Kind of object; every range is drawn once per variant."""

    object_class: Name = Field(alias="class")
    category: str = Field(min_length=1, description="name of the object in instructions")
    variants: int = Field(default=12, ge=1, le=1000)
    size: Size
    mass: Range[Kilograms]
    friction: Range[Annotated[float, Field(gt=0, le=2)]]
    symmetry: Literal["none", "revolution", "box"] = "none"
    fill: Literal["solid", "shell"] = Field(
        default="solid", description="location of the mass: in the volume or in the surface"
    )
    rests: Annotated[tuple[Literal["upright", "lying", "on_side", "inverted"], ...], Field(min_length=1)] = (
        "upright",
        "lying",
    )
    lies_on: Literal["side", "base", "any"] = Field(
        default="side", description="part on which a lying object rests; flat objects rest on their base"
    )
    keypoints: dict[Name, Ratio] = Field(default={}, description="points on the axis, as fractions of the height")
    frames: dict[Name, Frame] = Field(default={}, description="frames in addition to the shape's own")
    colors: dict[Name, Color] = Field(
        default={},
        description="colors by name; each gives a separate kind, such as 'red_block' for 'block', and colors the "
        "layers without colors",
    )
    shapes: Annotated[tuple[AnyShape, ...], Field(min_length=1)] = Field(
        description="shapes that the variants use in turn"
    )
    texture: Annotated[tuple[Layer, ...], Field(min_length=1)]
    anchored: bool = Field(False, description="the object is fixed in place, as if it were heavy or screwed down")

    @property
    def bends_as(self) -> FlexibleKind:
        """Flexible kind of a variant; empty for a rigid kind."""
        for shape in self.shapes:
            if isinstance(shape, FlexibleShape):
                return shape.family
        return ""

    def in_color(self, name: str) -> ObjectKind:
        """Return the kind in only one of its colors."""
        only, said = {name: self.colors[name]}, self.object_class
        changes = {
            "colors": only,
            "category": f"{name} {self.category}",
            "object_class": name if said == BY_COLOR else said,
        }
        return self.model_copy(update=changes)


class LibraryFile(StrictModel):
    """Library: classes, and kinds that belong to them."""

    classes: Annotated[tuple[Name, ...], Field(min_length=1)]
    kinds: Annotated[dict[Name, ObjectKind], Field(min_length=1)]

    @model_validator(mode="after")
    def _classes_are_known(self) -> LibraryFile:
        for name, kind in self.kinds.items():
            if kind.object_class == BY_COLOR and kind.colors:
                if missing := [color for color in kind.colors if color not in self.classes]:
                    raise ValueError(f"kind '{name}' has the color '{missing[0]}', which is not one of the classes")
            elif kind.object_class not in self.classes:
                known = ", ".join(self.classes)
                raise ValueError(f"kind '{name}' has the unknown class '{kind.object_class}'; known: {known}")
        return self

    def expanded(self) -> dict[str, ObjectKind]:
        """Return the kinds, with one kind per color where a kind has several."""
        kinds: dict[str, ObjectKind] = {}
        for name, kind in self.kinds.items():
            named = {f"{color}_{name}": kind.in_color(color) for color in kind.colors}
            kinds |= named or {name: kind}
        return kinds
