"""Generated homes: all rooms reachable, no two equal, and a name and class for every object."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.home_things import _STORE, _THEMES, place_things
from nimbus.datagen.navigate.homes import home_scene
from nimbus.datagen.navigate.scene_map import map_scene
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.rooms.home import HOME_KINDS, HomePlan, make_home
from nimbus.datagen.rooms.home_rooms import HOME_ROOMS

BODY = BodyShape(radius=0.25, height=1.4, step=0.03)


@cache
def twelve() -> tuple[HomePlan, ...]:
    """Return homes of four to ten rooms."""
    return tuple(make_home(seed, (4, 10)) for seed in range(12))


def test_homes_have_many_kinds_of_rooms_and_furniture():
    assert len(HOME_ROOMS) >= 12
    assert len(HOME_KINDS) >= 100
    assert set(HOME_ROOMS) == {room.kind for home in twelve() for room in home.rooms}


@pytest.mark.parametrize("seed", [3, 62, 169])
def test_all_rooms_of_homes_are_reachable(seed: int):
    """A window sill and a bed once blocked home 62; the cells of a rug and its floor once blocked home 169."""
    scene = home_scene(seed, (4, 9))
    reached = set(map_scene(scene, BODY).main_rooms)
    assert {room.name for room in scene.rooms} <= reached
    assert len(scene.passages) >= len(scene.rooms) - 1


def test_storeys_are_joined_by_stairs():
    """A body that can climb stairs reaches both storeys of a home; another body stays on one."""
    scene = home_scene(3, (5, 7), (2, 2))
    climber = BodyShape(radius=0.22, height=1.4, step=0.18)
    place = map_scene(scene, climber)
    assert {room.name for room in scene.rooms} <= set(place.main_rooms)
    heights = np.unique(place.space.positions[place.space.main_nodes, 2].round(2))
    assert heights[0] == 0 and heights[-1] > 2.6 and np.diff(heights).max() < climber.step + 0.005
    assert {"stairs_0"} == {thing.name for thing in scene.things if thing.object_class == "stairs"}
    rooms = {room.name: room for room in scene.rooms}
    assert len({rooms[name].floor for name in set(map_scene(scene, BODY).main_rooms) - {"", "stairwell_0"}}) == 1


def test_equal_numbers_give_equal_homes():
    one, same, other = (home_scene(seed, (4, 6)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.corners, same.corners)
    assert one.content_hash == same.content_hash != other.content_hash
    assert len(one.corners) != len(other.corners)


def test_library_things_stand_on_furniture():
    """An object touches the top of a piece of furniture and stays inside its outline, so no path changes."""
    home = make_home(2, (4, 6))
    placed = place_things(home)
    assert len({part.object_class for part in placed}) >= 3
    for part in placed:
        low, high = part.triangles.vertices.min(axis=0), part.triangles.vertices.max(axis=0)
        tops = [one.bounds for room in home.rooms for one in room.furnishings if room.name == part.room]
        below = [box for box in tops if np.all(box[0, :2] <= low[:2]) and np.all(high[:2] <= box[1, :2])]
        assert any(abs(float(box[1, 2]) - low[2]) < 0.003 for box in below)


def test_things_are_in_their_libraries():
    for name in {name for kinds in (*_THEMES.values(), _STORE) for name in kinds}:
        library, kind = name.split()
        assert kind in open_library(library).kinds


def test_things_of_homes_are_named_once_and_in_rooms():
    scene = home_scene(2, (4, 6))
    assert len({thing.name for thing in scene.things}) == len(scene.things) < 254
    assert all(thing.object_class in scene.classes for thing in scene.things)
    rooms = {room.name: room for room in scene.rooms}
    beds = [thing for thing in scene.goals if thing.object_class == "bed"]
    assert beds
    assert all(rooms[bed.room].contains(bed.middle[None]).all() for bed in beds)


@pytest.mark.slow
def test_no_plan_of_homes_comes_twice():
    plans = set()
    for home in twelve():
        assert len(home.doors) >= len(home.rooms) - 1
        plans.add(tuple((room.kind, room.rectangle) for room in home.rooms))
    assert len(plans) == 12
