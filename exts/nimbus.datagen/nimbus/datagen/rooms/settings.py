"""Settings of a generated room in task files, and their text form, which serves as the name of a stage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias, get_args

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from nimbus.datagen.files.quantities import Metres, Radians, Ratio
from nimbus.datagen.files.scene_files import literal_path, resolve_from
from nimbus.datagen.files.strict_yaml import StrictModel

Family: TypeAlias = Literal["kitchen", "office", "storage", "workshop", "shop"]
FAMILIES: tuple[Family, ...] = get_args(Family)
"""Families of rooms."""
BENCH = "table"
"""Default stage around which a room is built."""
_PREFIX, _FILE_PREFIX = "room:", "file:"


def plain_name(text: str) -> str:
    """Return a name or path of a stage, after checking that it is no text form of settings.

    A task file has settings as mappings. Their text form is refused, because its escapes could hide a path.
    """
    if text.startswith((_PREFIX, _FILE_PREFIX)):
        context = {"instead": "write a name, a path, or settings as a mapping: {family: …} or {file: …}"}
        raise PydanticCustomError("stage", "a stage is not named by a text that begins with room: or file:", context)
    return text


class RoomSettings(StrictModel):
    """Room of a family around the bench of a stage."""

    family: Family = Field(description="Family: " + ", ".join(FAMILIES) + ".")
    bench: Annotated[str, AfterValidator(plain_name)] = Field(
        BENCH, min_length=1, description="Stage with mount and work surface: a name, or a path relative to this file."
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(0, description="Seed of the plan and the furnishings.")
    look: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(
        None, description="Seed of the colors and textures; by default the seed of the room."
    )
    clutter: Annotated[Ratio, Field(ge=0, le=1)] | None = Field(
        None, description="Fraction of free positions that small objects fill; by default drawn."
    )
    size: tuple[Annotated[Metres, Field(ge=4.4, le=8)], Annotated[Metres, Field(ge=4.4, le=8)]] | None = Field(
        None, description="Depth, in the robot's viewing direction, and width [m]; by default drawn."
    )

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with the bench's path relative to the working directory instead of the task's folder."""
        return self.model_copy(update={"bench": resolve_from(folder, self.bench)})

    @property
    def look_seed(self) -> int:
        """Seed of the look."""
        return self.seed if self.look is None else self.look

    @property
    def reference(self) -> str:
        """Text form for :func:`parse_reference`; equal settings give equal texts."""
        return _PREFIX + json.dumps(self.model_dump(mode="json", exclude_none=True), sort_keys=True)


def parse_reference(text: str) -> RoomSettings | None:
    """Parse the reference of a room, or the bare name of a family; return None for other stages."""
    if text in FAMILIES:
        return RoomSettings.model_validate({"family": text})
    if not text.startswith(_PREFIX):
        return None
    return RoomSettings.model_validate_json(text.removeprefix(_PREFIX))


class StageFileSettings(StrictModel):
    """Scene from a user's USD or glTF file, and the part of it that is the work surface."""

    file: str = Field(min_length=1, description="USD or glTF file (.usd, .usda, .usdc, .usdz, .glb, .gltf).")
    surface: str = Field("table", min_length=1, description="Name of the prim or node that is the work surface.")
    mount: tuple[Metres, Metres] | None = Field(
        None, description="Position of the robot relative to the work surface's center [m]; by default at a long side."
    )
    yaw: Radians | None = Field(None, description="Robot's yaw about the vertical; only together with mount.")

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with the file's path relative to the working directory instead of the task's folder."""
        return self.model_copy(update={"file": str(literal_path(folder / self.file))})

    @property
    def reference(self) -> str:
        """Text form for :func:`parse_file_reference`; equal settings give equal texts."""
        return _FILE_PREFIX + json.dumps(self.model_dump(mode="json", exclude_none=True), sort_keys=True)


def parse_file_reference(text: str) -> StageFileSettings | None:
    """Parse the reference of a scene file; return None for other stages."""
    if not text.startswith(_FILE_PREFIX):
        return None
    return StageFileSettings.model_validate_json(text.removeprefix(_FILE_PREFIX))
