"""Baked light: shade and light from a lamp, the sky through openings, the cache, and looks as sums of light sources."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nimbus.datagen import progress
from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.render.baked_light import basis as bases
from nimbus.datagen.render.baked_light.basis import bake, join_faces, light_basis
from nimbus.datagen.render.baked_light.light_basis import GROUPS, PLACES, LightBasis
from nimbus.datagen.render.baked_light.weighing import sky_parts, weigh
from tests.support.baked_scene import LIGHT, box, still_scene


def at(basis: LightBasis, face: int, corner: int) -> int:
    """Return the number of the sample at a corner of a face."""
    steps = int(basis.steps[face])
    place = (steps * (steps + 3) // 2, steps, 0)[corner]
    return int(basis.samples[basis.start[face] + place])


@pytest.fixture(scope="module")
def basis() -> LightBasis:
    return bake(still_scene())


def test_an_open_floor_sees_lamps_and_sky(basis: LightBasis):
    corner = basis.direct[at(basis, 0, 0)].astype(float)
    assert np.all(corner[:PLACES] > 0.02) and corner[PLACES:-1].sum() > 0.8
    assert corner[-1] == 0.0
    assert basis.direct[-2, :PLACES] == pytest.approx(np.ones(PLACES), abs=0.25)


def test_below_a_box_it_is_dark(basis: LightBasis):
    """The middle samples of the floor are under the box."""
    floor = np.flatnonzero(basis.group == 0)
    dark = basis.direct[floor].astype(float).sum(axis=1) < 0.05
    assert 0 < dark.sum() < 0.2 * len(floor)


def test_a_face_beside_color_takes_it_on(basis: LightBasis):
    grey = np.full((GROUPS, 3), 0.3)
    red = grey.copy()
    red[0] = (0.9, 0.1, 0.1)
    plain, tinted = (weigh(basis, LIGHT, colors).values for colors in (grey, red))
    side = np.flatnonzero(basis.group == 4)
    redness = [float((one[side, 0] / one[side, 1]).mean()) for one in (plain, tinted)]
    assert redness[1] > 1.02 * redness[0]


def test_the_light_chooses_the_nearest_lamp(basis: LightBasis):
    lit = weigh(basis, LIGHT, np.full((GROUPS, 3), 0.5))
    turned = weigh(basis, replace(LIGHT, direction=(0.6, 0.0, -0.8)), np.full((GROUPS, 3), 0.5))
    assert lit.light.direction[0] < 0 < turned.light.direction[0]
    assert not np.allclose(lit.values, turned.values)


def test_a_bake_is_kept(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    first = light_basis(still_scene())
    (kept,) = (tmp_path / "light").iterdir()
    monkeypatch.setattr(bases, "bake", None)
    assert np.array_equal(light_basis(still_scene()).bounce, first.bounce)
    kept.unlink()
    with pytest.raises(TypeError):
        light_basis(still_scene())


def test_a_bake_may_take_minutes(tmp_path, monkeypatch: pytest.MonkeyPatch, basis: LightBasis):
    """A worker that baked light was once ended as hung, so baking must report progress every few seconds."""
    limits: list[float] = []
    seen: list[list[float]] = []
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    monkeypatch.setattr(progress, "_patience", [limits.append])
    monkeypatch.setattr(bases, "bake", lambda scene: seen.append(list(limits)) or basis)
    light_basis(still_scene())
    assert seen[0][-1] >= 120.0
    assert limits[-1] == 0.0


def test_faces_that_shine_show_the_sky():
    """A wall whose normals lie in its plane is a window."""
    wall: FloatArray = np.array([[[1, -1, 0], [1, 1, 0], [1, 1, 2]], [[1, -1, 0], [1, 1, 2], [1, -1, 2]]], dtype=float)
    floor, normals = box((-1, -1, -0.1), (1, 1, 0))
    shown = []
    for normal in ((-1.0, 0.0, 0.0), (0.0, 0.0, 1.0)):
        window = np.tile(np.array(normal), (2, 3, 1))
        scene = join_faces([(floor, normals, "floor"), (wall, window, "window_1")], np.zeros(3))
        shown.append(float(bake(scene).direct[-3 - 4, PLACES:].astype(float).sum()))
    assert shown[1] > shown[0]


def test_a_picture_lights_from_its_side(basis: LightBasis):
    """An image with a bright last quarter lights faces towards +x and +y; after a half turn, the opposite ones."""
    picture = np.full((32, 64, 3), 0.05)
    picture[8:16, 48:] = 4.0
    parts, turned = (sky_parts(picture, turn=turn, intensity=2.0) for turn in (0.0, np.pi))
    assert np.argmax(parts[:, 0]) == 0 and np.argmax(turned[:, 0]) == 3 and parts[5, 0] == pytest.approx(0.1)
    lit = weigh(basis, LIGHT, np.full((GROUPS, 3), 0.5), parts).values[-6:, 0]
    away = weigh(basis, LIGHT, np.full((GROUPS, 3), 0.5), turned).values[-6:, 0]
    assert lit[0] > away[0] and lit[2] > away[2] and lit[1] < away[1]
