from __future__ import annotations

import itertools

import pytest

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import PlacedObject
from nimbus.datagen.errors import InputError
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.randomize.objects import CLEARANCE, check_room
from nimbus.datagen.randomize.placement import PlacementPose, footprint, gap, moved
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.tasks.scene_assets import SceneAssets
from nimbus.datagen.tasks.task import parse_task
from tests.support.task_text import changed

GROUP = "kinds: [can, pear], count: [2, 4], region: start"


def outline(item: PlacedObject) -> FloatArray:
    vertices = open_library(item.library).model(item.kind, item.variant).vertices
    return moved(footprint(vertices, item.wxyz), PlacementPose(*item.position[:2], 0.0))


@pytest.fixture(scope="module")
def assets() -> SceneAssets:
    second = f"{GROUP}, yaw: any, lying: 33 %}}\n  more: {{library: trash, {GROUP}, yaw: any, lying: 33 %"
    return load_assets(parse_task(changed(f"{GROUP}, yaw: any, lying: 33 %", second)))


def test_groups_that_share_a_region_keep_their_distance(assets: SceneAssets):
    for index in range(10):
        objects = draw_physical(assets.task, assets, seed=0, index=index).objects
        assert {item.group for item in objects} == {"items", "more"}
        for one, other in itertools.combinations(map(outline, objects), 2):
            assert gap(one, other) >= CLEARANCE - 1e-9


def test_room_is_asked_for_the_largest_number_of_objects(assets: SceneAssets):
    check_room(assets.task, assets, seed=0)
    crowded = parse_task(changed("size: [0.4, 0.5]", "size: [0.1, 0.1]"))
    with pytest.raises(InputError, match=r"^task.yaml:4:10: regions.start: 0.1 x 0.1 m has no reachable space for 4"):
        check_room(crowded, assets, seed=0)
