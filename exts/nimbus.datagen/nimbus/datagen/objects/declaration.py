"""What an object library file says."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nimbus.datagen.objects.crumpled import Crumpled
from nimbus.datagen.objects.loft import Loft
from nimbus.datagen.objects.peel import Peel
from nimbus.datagen.objects.texture import Layer
from nimbus.datagen.quantities import Kilograms, Metres, Range, Ratio
from nimbus.datagen.strict_yaml import StrictModel

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
AnyShape = Annotated[Loft | Crumpled | Peel, Field(discriminator="family")]


class Size(StrictModel):
    """Outer size of the clean shape; depth equals width when left out."""

    width: Range[Metres]
    depth: Range[Metres] | None = None
    height: Range[Metres]


class ObjectKind(StrictModel):
    """One kind of object; every range is drawn once a variant."""

    object_class: Name = Field(alias="class")
    category: str = Field(min_length=1, description="what people call it")
    variants: int = Field(default=12, ge=1, le=1000)
    size: Size
    mass: Range[Kilograms]
    friction: Range[Annotated[float, Field(gt=0, le=2)]]
    symmetry: Literal["none", "revolution", "box"] = "none"
    fill: Literal["solid", "shell"] = Field(default="solid", description="where the mass is")
    rests: Annotated[tuple[Literal["upright", "lying", "on_side", "inverted"], ...], Field(min_length=1)] = (
        "upright",
        "lying",
    )
    lies_on: Literal["side", "base", "any"] = Field(
        default="side", description="what lying means: flat things lie on their base"
    )
    keypoints: dict[Name, Ratio] = Field(default={}, description="points on the axis, as shares of the height")
    shapes: Annotated[tuple[AnyShape, ...], Field(min_length=1)] = Field(description="variants take them in turn")
    texture: Annotated[tuple[Layer, ...], Field(min_length=1)]


class LibraryFile(StrictModel):
    """A library: classes, and kinds that belong to them."""

    classes: Annotated[tuple[Name, ...], Field(min_length=1)]
    kinds: Annotated[dict[Name, ObjectKind], Field(min_length=1)]

    @model_validator(mode="after")
    def _classes_are_known(self) -> LibraryFile:
        for name, kind in self.kinds.items():
            if kind.object_class not in self.classes:
                known = ", ".join(self.classes)
                raise ValueError(f"kind '{name}' is of class '{kind.object_class}'; known: {known}")
        return self
