"""Generated rooms as stages: the bench stays, parts have classes, drawn rooms open, and errors are one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.episode.layout import EpisodeKey, Layout
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.rooms.kinds import KINDS
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.task import Task, load_task, parse_task
from nimbus.datagen.usd.stage import layout_stage, read_stage
from tests.support.one_can import TEXT
from tests.support.refusals import refusal

ROOM = "scene: {family: storage, seed: 1, bench: tabletop}"


def task(scene: str, more: str = "") -> Task:
    return parse_task(TEXT.replace("scene: tabletop", scene) + more)


def test_a_room_keeps_what_its_bench_offers():
    bench, room = read_stage("tabletop"), read_stage(task(ROOM).scene)
    assert room.fixtures == bench.fixtures and room.surfaces == bench.surfaces
    assert room.robot_position == bench.robot_position and room.content_hash != bench.content_hash
    assert set(room.furnishings.values()) <= set(KINDS) == set(room.classes)


def test_a_bare_family_is_a_room():
    stage = read_stage(task("scene: kitchen").scene)
    assert stage.room is not None and stage.room.family == "kitchen" and stage.bench == "table"


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        ("scene: {family: barn}", "scene.family: expected"),
        ("scene: {family: kitchen, seed: -1}", "scene.seed: expected at least 0"),
        ("scene: {family: kitchen, clutter: 120 %}", "scene.clutter: expected at most 100 %"),
        ("scene: {family: kitchen, sed: 1}", "unknown key 'sed'"),
        ("scene: {seed: 1}", "'family' is missing"),
        ("scene: {family: kitchen, size: [2 m, 5 m]}", "scene.size[0]: expected at least"),
        ("scene: 3", "expected text"),
    ],
)
def test_a_mistake_in_a_room_is_told(scene: str, said: str):
    assert said in refusal(task, scene)


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        ("scene: kitchn", "unknown scene 'kitchn'"),
        ("scene: {family: kitchen, bench: nowhere}", "unknown scene 'nowhere'"),
        ("scene: {family: kitchen, bench: office}", "'office' is already a room"),
        ("scene: {family: kitchen, size: [4.4 m, 4.4 m], bench: tabletop}", ""),
    ],
)
def test_a_bench_must_be_one(scene: str, said: str):
    made = task(scene)
    if said:
        assert said in refusal(read_stage, made.scene)
    else:
        assert read_stage(made.scene).room is not None


def test_the_randomizer_refuses_what_is_no_family():
    assert "scene.families[0]: expected" in refusal(task, "scene: table", "randomize: {scene: {families: [barn]}}\n")
    twice = "randomize: {scene: {families: [shop, shop]}}\n"
    assert "a family is listed twice" in refusal(task, "scene: table", twice)


def test_drawn_rooms_depend_on_the_episode_alone():
    drawn = task("scene: tabletop", "randomize: {scene: {rooms: 3, looks: 2}}\n")
    assets = load_assets(drawn)
    layouts = [draw_physical(drawn, assets, seed=0, index=index) for index in range(12)]
    assert layouts[4] == draw_physical(drawn, assets, seed=0, index=4)
    assert len({layout.drawn["scene"]["family"] for layout in layouts}) >= 3
    plain = draw_physical(task("scene: tabletop"), assets, seed=0, index=4)
    assert plain.objects == layouts[4].objects and layout_stage(assets.stage, plain) is assets.stage
    stage = layout_stage(assets.stage, layouts[4])
    assert stage.name == layouts[4].drawn["scene"]["family"] and stage.fixtures == assets.stage.fixtures


def test_no_shipped_task_is_in_a_room():
    assert "scene" not in load_task("pick_and_place").randomize


def test_a_stage_of_a_bench_without_a_table_is_refused(tmp_path: Path):
    path = tmp_path / "bare.usda"
    mount = '(customData = {dictionary nimbus = {string role = "robot_mount"}})'
    path.write_text(f'#usda 1.0\n(defaultPrim = "World")\ndef Xform "World" {{\n def Xform "m" {mount} {{}}\n}}\n')
    made = task(f"scene: {{family: shop, bench: {path}}}")
    assert "no work surface to build a room around" in refusal(read_stage, made.scene)


@pytest.mark.slow
@pytest.mark.long
def test_a_task_runs_and_is_seen_in_drawn_rooms():
    """Simulator and renderer open the room of each layout; robot and objects keep clear of it."""
    drawn = task("scene: tabletop", "randomize: {scene: {families: [storage, office], rooms: 1, looks: 1}}\n")
    assets = load_assets(drawn)
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=drawn.rate)
    renderer = SceneRenderer(assets.stage, assets.robot, libraries=tuple(assets.libraries), stack=1)
    seen = {}
    physical, key = None, None
    for index in range(20):
        physical = draw_physical(drawn, assets, seed=0, index=index)
        family = physical.drawn["scene"]["family"]
        if family in seen:
            continue
        key = EpisodeKey(task="room", task_hash="0", seed=0, index=index)
        simulation.load(physical)
        assert simulation.stage.name == family and not simulation.data.ncon
        visual = draw_visual(drawn, assets.stage, assets.robot, physical, key=key)
        renderer.load(Layout(key=key, physical=physical, visual=visual))
        states = simulation.body_positions()[None], simulation.body_wxyz()[None]
        frames = renderer.render(simulation.body_names, *states)["front"]
        labels = renderer.labels
        names = {labels.instance_names[place] for place in np.unique(frames.instance)}
        assert names & set(simulation.stage.furnishings)
        kinds = {labels.semantic_names[labels.instance_semantics[labels.instance_names.index(name)]] for name in names}
        assert kinds & set(simulation.stage.furnishings.values())
        seen[family] = labels.semantic_names
    assert len(seen) == 2 and len(set(seen.values())) == 1  # an index has the same meaning in all rooms
    assert physical is not None and key is not None
    made = run_attempt(drawn, simulation, physical, streams=key.generator, planner="ompl")
    assert made.outcome.success
