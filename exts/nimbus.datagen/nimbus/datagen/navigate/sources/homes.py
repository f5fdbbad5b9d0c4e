"""Generated homes as a source of scenes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from nimbus.datagen.files.quantities import Range
from nimbus.datagen.navigate.homes import home_scene
from nimbus.datagen.navigate.navigation_scene import NavigationScene
from nimbus.datagen.navigate.scene_source import SceneSource
from nimbus.datagen.registry import register
from nimbus.datagen.rooms.home import HOME_VERSION


@register("scene", "homes")
class HomesSource(SceneSource):
    """Homes with generated rooms and furniture."""

    homes: Annotated[int, Field(ge=1, le=100_000)] = Field(description="Number of homes.")
    rooms: Range[Annotated[int, Field(ge=1, le=60)]] = Field(
        (4, 9), description="Smallest and largest number of rooms on a storey."
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(0, description="Number of the first home.")
    storeys: Range[Annotated[int, Field(ge=1, le=2)]] | None = Field(
        None, description="Smallest and largest number of storeys, joined by stairs; one by default."
    )

    @model_serializer(mode="wrap")
    def _without_none(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit fields that are not given, so that a new field does not change the hashes of older tasks."""
        return {name: value for name, value in dump(self).items() if value is not None}

    @property
    def count(self) -> int:
        """Number of homes."""
        return self.homes

    def open(self, number: int) -> NavigationScene:
        """Generate the home with the given number."""
        return home_scene(self.seed + number, self.rooms, self.storeys or (1, 1))

    def fingerprint(self) -> dict[str, str]:
        """Return the version of the home generator; the task's hash covers the rest."""
        return {"homes": str(HOME_VERSION)}
