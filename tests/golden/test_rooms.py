"""Golden values of generated rooms."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.rooms.plan import Bench
from nimbus.datagen.rooms.room import ROOM_VERSION, make_room
from nimbus.datagen.rooms.settings import FAMILIES, RoomSettings
from tests.golden.values import GoldenFile, sketch


@pytest.mark.parametrize("family", FAMILIES)
def test_rooms_are_as_their_version_says(family: str, golden: GoldenFile) -> None:
    settings = RoomSettings.model_validate({"family": family, "seed": 1})
    room = make_room(settings, Bench((-0.2, -0.7), (0.9, 0.7), -0.75))
    names = " ".join(one.name for one in room.furnishings)
    corners = np.array([one.bounds for one in room.furnishings])
    value = [names, room.triangle_count, *sketch(corners), *sketch(np.array(sorted(room.look.colors.values())))]
    golden.check(f"room {family}", value, {"ROOM_VERSION of rooms": ROOM_VERSION}, tolerance=1e-4)
