"""Proxy geometry that is derived from splats, and proxy geometry that a file provides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from nimbus.datagen.arrays import AnyArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.free_space import FreeSpace, find_free_space
from nimbus.datagen.navigate.triangle_tests import CollisionMesh
from nimbus.datagen.splats.alignment import check_alignment, measure_alignment
from nimbus.datagen.splats.cloud import SplatCloud
from nimbus.datagen.splats.proxy import make_proxy
from tests.support.splat_room import room_cloud, room_corners

BODY = BodyShape(radius=0.25, height=1.4, step=0.02)


def free_space(corners: AnyArray) -> FreeSpace:
    return find_free_space(CollisionMesh(corners), BODY)


@pytest.mark.parametrize(("count", "floaters"), [(10_000, 200), (60_000, 1200)])
def test_paths_on_proxy_are_safe_in_truth(count: int, floaters: int):
    """The free space of a proxy made from noisy splats lies inside the free space of the true room, and is not much
    smaller.
    """
    cloud = room_cloud(count, noise=0.005, floaters=floaters)
    proxy = make_proxy(cloud, where="room.ply")
    assert abs(proxy.floor_height) < 0.01 and not proxy.is_sparse
    true, found = free_space(room_corners()), free_space(np.concatenate([proxy.floor, proxy.obstacles]))
    x, y = np.meshgrid(np.arange(0.05, 6, 0.05), np.arange(0.05, 5, 0.05))
    places = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    here, there = true.clearance_at(places), found.clearance_at(places)
    assert not ((there >= found.limit) & (here < BODY.radius)).any()
    assert ((here > 0.35) & (there < BODY.radius)).mean() < 0.02


def test_proxy_faces_look_outward():
    proxy = make_proxy(room_cloud(20_000), where="room.ply")
    across = np.cross(proxy.floor[:, 1] - proxy.floor[:, 0], proxy.floor[:, 2] - proxy.floor[:, 0])
    assert (across[:, 2] > 0).all()
    low = proxy.obstacles[(proxy.obstacles[:, :, 2] < 0.91).all(axis=1)]
    low = low[(low[:, :, 0] > 0.8).all(axis=1) & (low[:, :, 0] < 2.2).all(axis=1)]
    low = low[(low[:, :, 1] > 0.8).all(axis=1) & (low[:, :, 1] < 1.8).all(axis=1)]
    # The voxels of the box are closed surfaces, one per solid voxel.
    volume = np.sum(low[:, 0].astype(float) * np.cross(low[:, 1], low[:, 2])) / 6
    assert 0.05 < volume < 0.5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cloud: replace(cloud, positions=cloud.positions * 60), "the scene is"),
        (lambda cloud: replace(cloud, positions=cloud.positions * (0.2, 0.2, 1)), "has no floor"),
        (lambda cloud: replace(cloud, opacities=cloud.opacities * 0), "no splats that could form a surface"),
    ],
)
def test_scenes_without_floor_are_refused(change: Callable[[SplatCloud], SplatCloud], said: str):
    cloud = change(room_cloud(3000))
    cloud = replace(cloud, positions=np.asarray(cloud.positions, np.float32))
    with pytest.raises(InputError, match=said):
        make_proxy(cloud, where="room.ply")


@pytest.mark.parametrize("offset", [(0.1, 0, 0), (0, 0.1, 0), (0, 0, -0.1), (0.06, 0.06, 0)])
def test_proxy_off_by_ten_centimeters_is_refused(offset: tuple[float, float, float]):
    """Most surfaces are parallel to the offset and do not reveal it; the message states the correction."""
    moved = room_corners() + np.array(offset, np.float32)
    cloud = room_cloud(20_000, noise=0.01)
    found = measure_alignment(cloud, moved)
    assert np.allclose(found.offset, -np.array(offset), atol=0.005)
    with pytest.raises(InputError, match="cm away from its splats; the limit is 5"):
        check_alignment(cloud, moved, where="room.glb")


def test_proxy_within_limits_is_taken():
    cloud = room_cloud(20_000, noise=0.01)
    assert check_alignment(cloud, room_corners() + np.float32(0.02), where="room.glb").displacement < 0.04


def test_proxy_of_another_place_is_refused():
    with pytest.raises(InputError, match="only 0% of the splats"):
        check_alignment(room_cloud(2000), room_corners() + 30, where="room.glb")
