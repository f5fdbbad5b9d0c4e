"""Rooms of points in a scene, and pictures of its parts."""

from __future__ import annotations

import numpy as np

from nimbus.datagen.navigate.navigation_scene import NavigationScene, ScenePart, SceneRoom
from nimbus.datagen.navigate.read.assemble import triangles_of
from nimbus.datagen.progress import allow, subscribe


def room(name: str, x: float, y: float) -> SceneRoom:
    """Return a square room of 2 m at a corner [m]."""
    outline = ((x, y), (x + 2, y), (x + 2, y + 2), (x, y + 2))
    return SceneRoom(name=name, kind="room", outline=outline, floor=0.0, height=2.5)


def test_points_belong_to_the_first_room_around_them():
    rooms = (room("a", 0, 0), room("b", 1, 1), room("c", 4, 0))
    scene = NavigationScene(name="flat", content_hash="", parts=(), rooms=rooms)
    points = np.random.default_rng(0).uniform((-1, -1, -0.5), (7, 4, 3), (400, 3))
    expected = [next((one.name for one in rooms if one.contains(point)[0]), "") for point in points]
    assert scene.room_of(points) == expected


def test_a_picture_is_painted_once_when_used():
    painted = []

    def paint() -> np.ndarray:
        painted.append(1)
        return np.zeros((2, 2, 3), dtype=np.uint8)

    triangles = triangles_of(np.eye(3)[None])
    part = ScenePart(name="wall", object_class="wall", room="", triangles=triangles, picture=paint)
    assert not painted
    assert part.image is part.image
    assert painted == [1]


def test_painting_allows_time_within_a_longer_limit():
    limits: list[float] = []
    subscribe(lambda _: None, patience=limits.append)
    triangles = triangles_of(np.eye(3)[None])
    picture = np.zeros((2, 2, 3), dtype=np.uint8)
    part = ScenePart(name="wall", object_class="wall", room="", triangles=triangles, picture=lambda: picture)
    try:
        with allow(500.0):
            assert part.image is picture
    finally:
        subscribe(lambda _: None)
    assert limits == [500.0, 500.0, 500.0, 0.0]
