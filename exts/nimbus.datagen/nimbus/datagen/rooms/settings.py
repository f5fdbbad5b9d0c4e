"""Settings of a generated room as given in task files, and their text form as the name of a stage."""

from __future__ import annotations

import json
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field

from nimbus.datagen.files.quantities import Metres, Radians, Ratio
from nimbus.datagen.files.strict_yaml import StrictModel

Family: TypeAlias = Literal["kitchen", "office", "storage", "workshop", "shop"]
FAMILIES: tuple[Family, ...] = get_args(Family)
"""Families of rooms."""
BENCH = "table"
"""Default stage that a room is built around."""
_PREFIX, _FILE_PREFIX = "room:", "file:"


class RoomSettings(StrictModel):
    """Room of a family around the bench of a stage."""

    family: Family = Field(description="Family: " + ", ".join(FAMILIES) + ".")
    bench: str = Field(
        BENCH, min_length=1, description="Stage with mount and work surface, a name or a path seen from this file."
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(0, description="Number of the room: its plan and its things.")
    look: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(
        None, description="Number of its colors and textures; left out: that of the seed."
    )
    clutter: Annotated[Ratio, Field(ge=0, le=1)] | None = Field(
        None, description="Share of the free places that small things fill; left out: drawn by the seed."
    )
    size: tuple[Annotated[Metres, Field(ge=4.4, le=8)], Annotated[Metres, Field(ge=4.4, le=8)]] | None = Field(
        None, description="Depth, which the robot looks along, and width [m]; left out: drawn by the seed."
    )

    @property
    def look_seed(self) -> int:
        """Number of the look."""
        return self.seed if self.look is None else self.look

    @property
    def reference(self) -> str:
        """Text form that :func:`parse_reference` reads; equal settings give equal texts."""
        return _PREFIX + json.dumps(self.model_dump(mode="json", exclude_none=True), sort_keys=True)


def parse_reference(text: str) -> RoomSettings | None:
    """Return the settings of a room's reference, or of the bare name of a family; None for other stages."""
    if text in FAMILIES:
        return RoomSettings.model_validate({"family": text})
    if not text.startswith(_PREFIX):
        return None
    return RoomSettings.model_validate_json(text.removeprefix(_PREFIX))


class StageFileSettings(StrictModel):
    """Scene from a user's USD or glTF file, with the part of it that is the work surface."""

    file: str = Field(min_length=1, description="USD or glTF file (.usd, .usda, .usdc, .usdz, .glb, .gltf).")
    surface: str = Field("table", min_length=1, description="Prim or node that is the work surface, by its name.")
    mount: tuple[Metres, Metres] | None = Field(
        None, description="Place of the robot on the work surface, from its middle [m]; left out: at a long side."
    )
    yaw: Radians | None = Field(None, description="Direction the robot looks, about the vertical; with mount alone.")

    @property
    def reference(self) -> str:
        """Text form that :func:`parse_file_reference` reads; equal settings give equal texts."""
        return _FILE_PREFIX + json.dumps(self.model_dump(mode="json", exclude_none=True), sort_keys=True)


def parse_file_reference(text: str) -> StageFileSettings | None:
    """Return the settings of a reference to a scene file; None for other stages."""
    if not text.startswith(_FILE_PREFIX):
        return None
    return StageFileSettings.model_validate_json(text.removeprefix(_FILE_PREFIX))
