"""Effect of every randomizer in physics, images or instructions. A new randomizer is tested automatically."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np
import pytest
from PIL import Image

from nimbus.datagen import registry
from nimbus.datagen.episode.layout import EpisodeKey, Layout, PhysicalLayout, SurfaceLook, VisualLayout
from nimbus.datagen.errors import InputError
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.render.camera_model.sensor import shown_poses
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.simulate.newton import NewtonSimulation
from tests.support.drawn_layouts import NAMES, drawn
from tests.support.one_can import TEXT, assets, task, thing

RATE = 15.0
CUPBOARD = dataclasses.replace(
    thing("cupboard_0"),
    library="furniture",
    kind="cupboard",
    anchored=True,
    position=(0.75, 0.0, 0.0005),
    wxyz=(1, 0, 0, 0),
)
"""Replaces the can for randomizers of joints."""


@lru_cache
def simulation() -> NewtonSimulation:
    return NewtonSimulation(assets().stage, assets().robot, rate=RATE)


@lru_cache
def renderer() -> SceneRenderer:
    return SceneRenderer(assets().stage, assets().robot, libraries=("trash",), stack=2)


def moved(physical: PhysicalLayout) -> np.ndarray:
    """Return the state of physics in a layout: masses, friction, damping, and all positions after a turn of the arm."""
    simulation().load(physical)
    simulation().restore(simulation().state())
    model = simulation().model
    action = simulation().present_action()
    for period in range(3):
        action[0] += 0.02 * (period + 1)
        simulation().advance(action)
    given = [model.body_mass, model.geom_friction.ravel(), model.dof_damping]
    return np.concatenate([*given, simulation().body_positions().ravel()])


def pictures(visual: VisualLayout) -> dict[str, np.ndarray]:
    """Return the colors and depth of the second of two moments; all objects are lifted between them."""
    physical = drawn()[0]
    simulation().load(physical)
    positions = np.stack([simulation().body_positions()] * 2)
    positions[1, :, 2] += 0.05
    turns = np.stack([simulation().body_wxyz()] * 2)
    renderer().load(Layout(key=EpisodeKey(task="t", task_hash="h", seed=0, index=0), physical=physical, visual=visual))
    late = shown_poses(positions, turns, rate=RATE, latency=visual.latency)
    frames = renderer().render(simulation().body_names, *late)["front"]
    return {"rgb": frames.rgb[1].astype(float), "depth": frames.depth[1].astype(float)}


@pytest.mark.parametrize("name", NAMES)
def test_the_effect_of_each_kind_is_seen(name: str) -> None:
    (physical, visual), (nominal, plain) = drawn(name), drawn()
    if registry.lookup("randomizer", name).part == "physical":
        if name == "damping":  # of what has joints
            physical, nominal = (
                dataclasses.replace(nominal, objects=(dataclasses.replace(CUPBOARD, damping=factor),))
                for factor in (physical.objects[0].damping, 1.0)
            )
        before, after = moved(nominal), moved(physical)
        assert before.shape != after.shape or np.abs(before - after).max() > 1e-4
        return
    shown, usual = pictures(visual), pictures(plain)
    changed = np.abs(shown["rgb"] - usual["rgb"]).mean() > 0.3 or np.abs(shown["depth"] - usual["depth"]).mean() > 1e-3
    assert changed != (visual.instruction != plain.instruction), "a kind changes what is seen, or what is said"


def test_lamps_only_add_light_and_each_adds_its_own() -> None:
    visual = drawn()[1]
    lamps = drawn("lights", index=1)[1].light.lamps
    assert lamps
    before = pictures(visual)["rgb"]
    for count in range(1, len(lamps) + 1):
        lit = dataclasses.replace(visual, light=dataclasses.replace(visual.light, lamps=lamps[:count]))
        after = pictures(lit)["rgb"]
        assert (after >= before).all() and (after > before).mean() > 0.3
        before = after


def test_a_late_picture_is_that_of_a_moment_ago_and_the_first_of_the_start() -> None:
    positions = np.arange(12.0).reshape(4, 1, 3)
    turns = np.tile((1.0, 0.0, 0.0, 0.0), (4, 1, 1))
    shown, _ = shown_poses(positions, turns, rate=10.0, latency=0.15)
    assert np.allclose(shown[:, 0, 0], [0, 0, 1.5, 4.5])
    assert shown_poses(positions, turns, rate=10.0, latency=0.0)[0] is positions


def test_a_table_that_rises_leaves_its_things_where_they_are_and_the_room_below() -> None:
    plain = drawn()[1]
    (camera,) = plain.cameras
    x, y, z = camera.position
    high = dataclasses.replace(plain, table_rise=0.2, cameras=(dataclasses.replace(camera, position=(x, y, z - 0.2)),))
    only_the_camera = dataclasses.replace(high, table_rise=0.0)
    shown, nominal = pictures(high)["depth"], pictures(only_the_camera)["depth"]
    further = shown - nominal
    assert further.min() > -1e-4 and (further > 0.05).mean() > 0.05, "the floor is further away"
    assert (np.abs(further) < 1e-4).mean() > 0.3, "the table is where it was, seen from there"


def write_pictures(folder: Path) -> Path:
    folder.mkdir()
    for place, color in enumerate([(200, 30, 30), (30, 30, 200)]):
        Image.new("RGB", (64, 48), color).save(folder / f"{place}.png")
    return folder


def test_pictures_of_ones_own_cover_what_they_are_for(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "mine")
    text = f"{TEXT}randomize: {{textures: {{on: [table], share: 100 %, folder: {folder}}}}}\n"
    physical = draw_physical(task(text), assets(), seed=1, index=0)
    key = EpisodeKey(task="t", task_hash="h", seed=1, index=0)
    visual = draw_visual(task(text), assets().stage, assets().robot, physical, key=key)
    surface = visual.surfaces["table"]
    assert visual.drawn["textures"] == {"table": {"texture": Path(surface.picture).name}}
    assert all(found.picture == "" for name, found in visual.surfaces.items() if name != "table")
    rgb = pictures(visual)["rgb"]
    main = 0 if surface.picture.endswith("0.png") else 2
    assert (rgb[..., main] > rgb[..., 2 - main] + 60).mean() > 0.2
    Image.new("RGB", (64, 48), (0, 255, 0)).save(surface.picture)
    with pytest.raises(InputError, match="the image has changed since the episode was generated"):
        pictures(dataclasses.replace(visual, surfaces={"table": dataclasses.replace(surface, picture_hash="0")}))


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x89PNG\r\n\x1a\n but no more", "not a readable image"), (b"", "not a readable image")],
)
def test_a_broken_picture_is_told_in_one_line_before_anything_is_made(
    tmp_path: Path, content: bytes, said: str
) -> None:
    folder = write_pictures(tmp_path / "mine")
    (folder / "broken.png").write_bytes(content)
    text = f"{TEXT}randomize: {{textures: {{folder: {folder}}}}}\n"
    with pytest.raises(InputError, match=said) as caught:
        load_assets(task(text))
    assert "randomize.textures.folder" in str(caught.value) and "broken.png" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("folder", "said"), [("nowhere", "no such file"), ("", "no image in")])
def test_a_folder_without_pictures_is_told(tmp_path: Path, folder: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_assets(task(f"{TEXT}randomize: {{textures: {{folder: {tmp_path / folder}}}}}\n"))


def test_what_things_are_covered_with_keeps_its_tint() -> None:
    covered = drawn("textures", "materials")[1].surfaces["items_0"]
    assert covered.texture and covered.color == drawn("materials")[1].surfaces["items_0"].color
    assert drawn()[1].surfaces["items_0"] == SurfaceLook()


def test_physics_of_joints_takes_the_factor() -> None:
    stiff = {}
    for factor in (1.0, 2.0):
        simulation().load(PhysicalLayout(objects=(dataclasses.replace(CUPBOARD, damping=factor),)))
        model: mujoco.MjModel = simulation().model
        doors = [model.jnt_dofadr[joint] for joint in range(model.njnt) if "cupboard_0." in model.joint(joint).name]
        assert doors
        stiff[factor] = model.dof_damping[doors], model.dof_frictionloss[doors]
    for nominal, doubled in zip(stiff[1.0], stiff[2.0], strict=True):
        assert np.allclose(doubled, 2 * nominal) and nominal.max() > 0
