"""Layouts: physical and visual values are drawn from separate streams, and every draw is recorded."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Layout, PhysicalLayout
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.randomize.camera import CameraRandomization
from nimbus.datagen.randomize.objects import CLEARANCE, check_room
from nimbus.datagen.randomize.placement import footprint, gap, rectangle
from nimbus.datagen.randomize.tabletop import TabletopRandomizer, draw_physical
from nimbus.datagen.stages import Request, Scene
from nimbus.datagen.tasks.task import load_task
from tests.support.one_can import TEXT, assets, task
from tests.support.refusals import refusal

STANDING = TEXT.replace("kinds: [can], count: 1", "kinds: [can, bottle, pear], count: [2, 4], lying: 33 %")
VARIED = STANDING + "randomize: {camera: {}, light: {}, materials: {}, mass: {}}\n"


def layouts(text: str, *, seed: int = 3, index: int = 5, variants: tuple[int, ...] = (0,)) -> tuple[Layout, ...]:
    request = Request(index=index, variants=variants)
    scene = Scene(request=request, assets=assets(), provenance=Provenance(task_text=text, task_hash=""))
    (randomized,) = TabletopRandomizer(task(text), seed).process(scene)
    return randomized.layouts


@lru_cache
def many(text: str = STANDING, count: int = 200) -> tuple[PhysicalLayout, ...]:
    return tuple(draw_physical(task(text), assets(), seed=0, index=index) for index in range(count))


def items(drawn: tuple[PhysicalLayout, ...]):
    return [item for physical in drawn for item in physical.objects]


def test_the_same_seed_and_index_give_the_same_layout():
    assert layouts(VARIED) == layouts(VARIED)


def test_other_seeds_and_indices_give_other_layouts():
    drawn = [layouts(VARIED, seed=seed, index=index)[0] for seed in (0, 1) for index in (0, 1)]
    for one, other in combinations(drawn, 2):
        assert one.physical != other.physical and one.visual != other.visual and one.key.id != other.key.id


def test_variants_share_the_physical_part_and_differ_in_looks():
    first, second = layouts(VARIED, variants=(0, 1))
    assert first.physical is second.physical
    assert first.visual.light != second.visual.light
    assert first.key.plan_id == second.key.plan_id == first.key.id != second.key.id


def test_a_further_variant_moves_no_draw():
    assert layouts(VARIED, variants=(0, 2))[1] == layouts(VARIED, variants=(2,))[0]


@pytest.mark.parametrize("added", ["camera", "light", "materials"])
def test_visual_randomizers_do_not_touch_the_physical_part(added: str):
    bare, varied = layouts(STANDING)[0], layouts(STANDING + f"randomize: {{{added}: {{}}}}\n")[0]
    assert varied.physical == bare.physical
    assert varied.visual != bare.visual


def test_a_further_randomizer_moves_no_draw_of_another_one():
    some = layouts(STANDING + "randomize: {light: {}, mass: {}}\n")[0]
    more = layouts(STANDING + "randomize: {camera: {}, friction: {}, light: {}, materials: {}, mass: {}}\n")[0]
    assert more.visual.light == some.visual.light
    assert more.visual.instruction == some.visual.instruction
    masses = [[item.mass for item in drawn.physical.objects] for drawn in (some, more)]
    assert masses[0] == masses[1]
    places = [[(item.position, item.wxyz) for item in drawn.physical.objects] for drawn in (some, more)]
    assert places[0] == places[1]


def test_everything_drawn_is_told_as_plain_json():
    text = STANDING + "randomize: {camera: {}, friction: {}, light: {}, materials: {}, mass: {}}\n"
    drawn = layouts(text)[0]
    for part in (drawn.physical.drawn, drawn.visual.drawn):
        assert json.loads(json.dumps(part)) == part
    assert set(drawn.physical.drawn) == {"objects", "mass", "friction"}
    assert set(drawn.visual.drawn) == {"camera", "light", "materials", "language"}
    assert set(drawn.visual.drawn["camera"]) == {camera.name for camera in drawn.visual.cameras}
    assert set(drawn.visual.drawn["materials"]) == set(drawn.visual.surfaces)


def test_objects_follow_from_what_was_drawn():
    drawn = layouts(STANDING + "randomize: {mass: {}}\n")[0].physical
    told = drawn.drawn["objects"]["items"]
    assert told["count"] == len(drawn.objects)
    for item in drawn.objects:
        values = told[item.name]
        model = open_library("trash").model(values["kind"], values["variant"])
        assert (item.kind, item.variant, item.rest_pose) == (values["kind"], values["variant"], values["rest_pose"])
        assert item.position[:2] == (values["x"], values["y"])
        assert item.mass == model.mass * drawn.drawn["mass"][item.name]["factor"]
        assert (item.object_class, item.friction) == (model.object_class, model.friction)


def test_objects_start_in_the_region_apart_from_each_other_and_from_the_bins():
    fixtures = [
        rectangle(*(np.add(corner, fixture.position)[:2] for corner in fixture.bounds))
        for fixture in assets().stage.fixtures.values()
    ]
    for physical in many()[:40]:
        outlines = []
        for item in physical.objects:
            assert abs(item.position[0] - 0.5) <= 0.2 and abs(item.position[1]) <= 0.25
            model = open_library("trash").model(item.kind, item.variant)
            outlines.append(footprint(model.vertices, item.wxyz) + item.position[:2])
        for one, other in combinations(outlines, 2):
            assert gap(one, other) >= CLEARANCE - 1e-9
        assert all(gap(outline, fixture) >= CLEARANCE - 1e-9 for outline in outlines for fixture in fixtures)


def test_counts_cover_their_range_evenly():
    counts = Counter(len(physical.objects) for physical in many())
    assert set(counts) == {2, 3, 4}
    assert min(counts.values()) > 45


def test_yaw_covers_the_circle():
    yaws = [physical.drawn["objects"]["items"][item.name]["yaw"] for physical in many() for item in physical.objects]
    histogram, _ = np.histogram(yaws, bins=8, range=(-math.pi, math.pi))
    assert histogram.sum() == len(yaws) and histogram.min() > 0.6 * len(yaws) / 8


def test_a_third_of_what_can_stand_lies():
    able = [item for item in items(many()) if item.kind in ("can", "bottle")]
    share = np.mean([item.rest_pose == "lying" for item in able])
    assert len(able) > 250 and share == pytest.approx(0.33, abs=0.07)
    assert {item.rest_pose for item in able} == {"upright", "lying"}


@pytest.mark.parametrize(("lying", "pose"), [("0 %", "upright"), ("100 %", "lying")])
def test_shares_of_none_and_all_are_kept(lying: str, pose: str):
    drawn = many(STANDING.replace("33 %", lying), 20)
    assert {item.rest_pose for item in items(drawn) if item.kind == "can"} == {pose}


def test_a_range_of_yaw_is_kept():
    drawn = many(STANDING.replace("yaw: any", "yaw: [10 deg, 20 deg]"), 20)
    yaws = [physical.drawn["objects"]["items"][item.name]["yaw"] for physical in drawn for item in physical.objects]
    assert all(math.radians(10) <= yaw <= math.radians(20) for yaw in yaws)


def test_distinct_kinds_do_not_repeat():
    drawn = many(STANDING.replace("count: [2, 4]", "count: 3, distinct: true"), 20)
    assert all(len({item.kind for item in physical.objects}) == 3 for physical in drawn)


def test_the_instruction_names_what_is_there():
    text = STANDING.replace("Sort the trash.", "Sort {items}.").replace("count: [2, 4]", "count: 3")
    drawn = layouts(text)[0]
    names = [f"the {item.kind}" for item in drawn.physical.objects]
    assert drawn.visual.instruction == f"Sort {names[0]}, {names[1]} and {names[2]}."
    assert drawn.visual.drawn["language"] == {"template": "Sort {items}."}


def test_a_region_too_small_for_its_objects_is_one_line_with_its_place():
    text = STANDING.replace("size: [0.4, 0.5]", "size: [0.1, 0.1]")
    small = dataclasses.replace(task(text), name="small")
    said = refusal(check_room, small, assets(), seed=0)
    assert said.startswith("task.yaml:4:") and "0.1 x 0.1 m has no reachable space for 4 objects of 'items'" in said


def test_sort_trash_varies_at_least_as_much_as_it_should():
    sort_trash = load_task("sort_trash")
    group = sort_trash.objects["items"]
    assert sorted(sort_trash.regions[group.region].size) >= [0.4, 0.5]
    assert group.count == (2, 4) and group.yaw == "any" and group.kinds == "all"
    assert group.lying == pytest.approx(1 / 3, abs=0.01)
    camera = sort_trash.randomize["camera"]
    assert isinstance(camera, CameraRandomization)
    assert camera.position >= 0.05 and camera.rotation >= math.radians(5)
    assert {"camera", "light", "materials", "mass", "friction"} <= set(sort_trash.randomize)


def test_all_kinds_of_sort_trash_occur():
    sort_trash = load_task("sort_trash")
    drawn = [draw_physical(sort_trash, assets(), seed=0, index=index) for index in range(50)]
    kinds = {item.kind for physical in drawn for item in physical.objects}
    assert kinds == set(assets().libraries["trash"].kinds)
