"""Table height: how high the table stands in the room, with the robot and all things on it."""

from __future__ import annotations

import dataclasses

from pydantic import Field

from nimbus.datagen.files.quantities import Metres
from nimbus.datagen.random_streams import Streams
from nimbus.datagen.randomize.draft import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register


@register("randomizer", "table_height")
class TableHeightRandomization(LayoutRandomization):
    """Raises or lowers the table between the floor and the cameras that stand in the room.

    The robot is bolted to the table; how high it stands above its top is ``height`` of ``robot_base``.
    """

    part = "visual"
    height: Metres = Field(0.03, ge=0, le=0.3, description="largest rise or sinking, either way")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        """Draw a rise; seen from the table's top the room sinks by as much."""
        rise = float(streams("height").uniform(-self.height, self.height))
        draft.table_rise = rise
        for place, camera in enumerate(draft.cameras):
            if not camera.mount:
                x, y, z = camera.position
                draft.cameras[place] = dataclasses.replace(camera, position=(x, y, z - rise))
        return {"height": rise}
