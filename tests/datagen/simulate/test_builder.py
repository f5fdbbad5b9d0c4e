"""Scenes put together from parts that are read once."""

from __future__ import annotations

from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.builder import SceneBuilder, parse_usd
from nimbus.datagen.usd.robot import robot_usd
from nimbus.datagen.usd.stage import read_stage
from tests.support.one_can import thing


def test_an_asset_is_read_once_and_not_changed_by_the_worlds_made_of_it():
    panda = load_robot("panda")
    usd = robot_usd(panda)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
    parsed = parse_usd(usd, visuals=False)
    labels, count = list(parsed.body_label), parsed.shape_count
    scenes = SceneBuilder(read_stage("tabletop"), panda, visuals=False)
    worlds = [scenes.world([thing()]), scenes.world([thing(), thing("items_1", y=0.2)]), scenes.world([])]
    assert parse_usd(usd, visuals=False) is parsed
    assert (list(parsed.body_label), parsed.shape_count) == (labels, count)
    assert [world.body_count - worlds[2].body_count for world in worlds] == [1, 2, 0]


def test_bodies_have_short_unique_names():
    scenes = SceneBuilder(read_stage("tabletop"), load_robot("panda"), visuals=False)
    labels = scenes.world([thing(), thing("items_1", y=0.2)]).body_label
    assert labels[:3] == list(read_stage("tabletop").fixtures)
    assert labels[-2:] == ["items_0", "items_1"]
    assert len(set(labels)) == len(labels) and not any("/" in label for label in labels)


def test_physics_leaves_out_what_only_cameras_see():
    stage, panda = read_stage("tabletop"), load_robot("panda")
    bare, seen = (SceneBuilder(stage, panda, visuals=visuals).world([]) for visuals in (False, True))
    assert bare.shape_count < seen.shape_count
    assert bare.body_label == seen.body_label
