"""Generated rooms: equal for equal settings, with names and classes, closed, and clear of the robot."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from nimbus.datagen.rooms.kinds import KINDS
from nimbus.datagen.rooms.plan import Bench
from nimbus.datagen.rooms.room import FURNISH, Room, make_room
from nimbus.datagen.rooms.settings import FAMILIES, RoomSettings, parse_reference
from nimbus.datagen.rooms.small_parts import SMALL

BENCH = Bench((-0.2, -0.7), (0.9, 0.7), -0.75)
SEEDS = range(3)


@cache
def rooms(family: str) -> list[Room]:
    return [make_room(RoomSettings.model_validate({"family": family, "seed": seed}), BENCH) for seed in SEEDS]


def test_every_family_is_furnished():
    assert set(FURNISH) == set(FAMILIES)


def test_there_are_forty_kinds_of_furniture():
    """Small objects, the trim of the walls and the ceiling are not counted."""
    seen = {one.kind for family in FAMILIES for room in rooms(family) for one in room.furnishings}
    assert seen <= set(KINDS) and len(seen - {kind.name for kind in SMALL} - {"ceiling", "skirting"}) >= 40


def test_families_have_fixtures_of_their_own():
    for family in FAMILIES:
        own = {one.kind for room in rooms(family) for one in room.furnishings}
        others = {
            one.kind for other in FAMILIES if other != family for room in rooms(other) for one in room.furnishings
        }
        assert len(own - others) >= 4, family


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_settings_make_equal_rooms(family: str):
    (one, *_), (other, another, *_) = rooms(family), rooms.__wrapped__(family)
    assert [thing.name for thing in one.furnishings] == [thing.name for thing in other.furnishings]
    for thing, same in zip(one.furnishings, other.furnishings, strict=True):
        assert all(np.array_equal(a.vertices, b.vertices) for a, b in zip(thing.patches, same.patches, strict=True))
    assert one.look == other.look
    assert [thing.name for thing in one.furnishings] != [thing.name for thing in another.furnishings]


@pytest.mark.parametrize("family", FAMILIES)
def test_names_are_unique_and_solids_sound(family: str):
    for room in rooms(family):
        names = [one.name for one in room.furnishings]
        assert len(set(names)) == len(names) >= 15
        for one in room.furnishings:
            for patch in one.patches:
                corners = patch.vertices[patch.faces]
                across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
                assert np.isfinite(patch.vertices).all() and np.allclose(np.linalg.norm(patch.normals, axis=1), 1)
                assert np.linalg.norm(across, axis=1).min() > 1e-9, one.name
                slot = patch.material
                assert not isinstance(slot, str) or slot in room.look.colors or slot in room.look.textures, slot


@pytest.mark.parametrize("family", FAMILIES)
def test_the_workspace_stays_free(family: str):
    for room in rooms(family):
        low, high = room.workspace
        for one in room.furnishings:
            if one.kind.endswith("_base"):
                assert one.bounds[1, 2] < -1e-3, one.name  # below the top of the bench
                continue
            inside = np.all(one.bounds[0] < high - 1e-3) and np.all(low + 1e-3 < one.bounds[1])
            assert not inside, one.name


@pytest.mark.parametrize("family", FAMILIES)
def test_walls_are_closed(family: str):
    """Panels and the fillings of openings cover the area of each wall, and no opening is empty."""
    for room in rooms(family):
        one, other = room.walls[:, 1] - room.walls[:, 0], room.walls[:, 3] - room.walls[:, 0]
        panels = np.linalg.norm(np.cross(one, other), axis=1).sum()
        fills = [one for one in room.furnishings if one.kind in ("window", "door", "roller_door")]
        assert fills
        filled = 0.0
        for fill in fills:
            frame = np.concatenate([patch.vertices for patch in fill.patches if patch.material in ("trim", "metal")])
            wide = min(np.ptp(frame, axis=0)[:2].max(), np.ptp(fill.bounds, axis=0)[:2].max())
            sill = 0.1 if fill.kind == "window" else 0.0  # stands out at both sides
            low = fill.bounds[0, 2] + (0.03 if sill else 0.0)
            filled += (wide - sill) * (fill.bounds[1, 2] - low)
        (x0, y0, z), (x1, y1, _) = room.floor[0], room.floor[2]
        height = room.walls[..., 2].max() - z
        assert panels + filled == pytest.approx(2 * (x1 - x0 + y1 - y0) * height, rel=1e-6)


def test_a_reference_names_its_settings():
    settings = RoomSettings(family="kitchen", seed=3, clutter=0.5, bench="tabletop", look=None, size=None)
    assert parse_reference(settings.reference) == settings
    assert parse_reference("kitchen") == RoomSettings.model_validate({"family": "kitchen"})
    assert parse_reference("table") is None
