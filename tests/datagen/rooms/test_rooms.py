"""Generated rooms: equal from equal settings, named and classed, closed, and out of the robot's way."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.rooms.plan import KINDS, Bench
from nimbus.datagen.rooms.room import FURNISH, Room, make_room
from nimbus.datagen.rooms.settings import FAMILIES, RoomSettings, parse_reference

BENCH = Bench((-0.2, -0.7), (0.9, 0.7), -0.75)
SEEDS = range(6)
_CLOSED = {"skirting", "ceiling"}


def rooms(family: str) -> list[Room]:
    return [make_room(RoomSettings.model_validate({"family": family, "seed": seed}), BENCH) for seed in SEEDS]


def test_every_family_is_furnished():
    assert set(FURNISH) == set(FAMILIES)


def test_kinds_are_known():
    seen = {one.kind for family in FAMILIES for room in rooms(family) for one in room.furnishings}
    assert seen <= set(KINDS)


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_settings_make_equal_rooms(family: str):
    (one, *_), (other, another, *_) = rooms(family), rooms(family)
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
    """Every level ray from the bench meets a wall's panel or what fills an opening."""
    for room in rooms(family):
        quads = [room.walls[:, [0, 1, 2]], room.walls[:, [0, 2, 3]]]
        fills = [one for one in room.furnishings if one.kind.endswith(("window", "door"))]
        quads += [patch.vertices[patch.faces] for one in fills for patch in one.patches]
        triangles = np.concatenate(quads)
        for angle in np.arange(0, 2 * np.pi, 0.05):
            for height in (-0.7, 0.0, 0.6, 1.4):
                ray = np.array([np.cos(angle), np.sin(angle), 0.0])
                assert _meets(triangles, np.array([0.35, 0.0, height]), ray), (room.settings.seed, angle, height)


def _meets(triangles: np.ndarray, start: np.ndarray, ray: np.ndarray) -> bool:
    one, other = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    across = np.cross(ray, other)
    scale = np.einsum("ij,ij->i", one, across)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = start - triangles[:, 0]
        u = np.einsum("ij,ij->i", away, across) / scale
        turned = np.cross(away, one)
        v = turned @ ray / scale
        distance = np.einsum("ij,ij->i", other, turned) / scale
    return bool(np.any((u > -1e-6) & (v > -1e-6) & (u + v < 1 + 1e-6) & (distance > 0)))


def test_a_reference_names_its_settings():
    settings = RoomSettings(family="kitchen", seed=3, clutter=0.5, bench="tabletop", look=None, size=None)
    assert parse_reference(settings.reference) == settings
    assert parse_reference("kitchen") == RoomSettings.model_validate({"family": "kitchen"})
    assert parse_reference("table") is None
