"""Scenes from the user's files: the robot stands at the marked work surface, and errors are one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh

from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.render.scene_renderer import load_scene
from nimbus.datagen.tasks.task import load_task
from nimbus.datagen.usd.stage import StageInfo, read_stage
from tests.support.one_can import TEXT
from tests.support.refusals import refusal

_STEPS = TEXT[TEXT.index("steps:") : TEXT.index("cameras:")]
_LIFT = "steps:\n  - for item in items:\n      - pick: item\nsuccess:\n  - for item in items:\n      - held: item\n"


def kitchen(folder: Path) -> Path:
    """Write a glTF file, y up, with a floor, a wall, and a counter of 0.8 x 1.6 m whose top is 0.9 m high."""
    scene = trimesh.Scene()
    for name, size, middle in (
        ("Floor", (5, 0.1, 4), (0, -0.05, 0)),
        ("Wall", (5, 2.5, 0.1), (0, 1.25, -2)),
        ("Counter", (0.8, 0.04, 1.6), (1, 0.88, 0)),
        ("Shelf.2", (0.3, 0.4, 0.3), (2, 1.1, -0.6)),
    ):
        box = trimesh.creation.box(size, transform=trimesh.transformations.translation_matrix(middle))
        scene.add_geometry(box, node_name=name, geom_name=name)
    path = folder / "my_kitchen.glb"
    scene.export(str(path))
    return path


def stage_of(folder: Path, scene: str) -> StageInfo:
    (folder / "task.yaml").write_text(TEXT.replace("scene: tabletop", f"scene: {scene}"), encoding="utf-8")
    task = load_task(folder / "task.yaml")
    return read_stage(task.scene, where="scene")


def test_a_gltf_scene_takes_a_task(tmp_path: Path):
    kitchen(tmp_path)
    text = (
        TEXT.replace("scene: tabletop", "scene: {file: my_kitchen.glb, surface: Counter}")
        .replace(_STEPS, _LIFT)
        .replace("[0.5, 0.0]", "[0.45, 0.0]")
    )
    (tmp_path / "task.yaml").write_text(text, encoding="utf-8")
    task = load_task(tmp_path / "task.yaml")
    assets = load_assets(task)
    stage = assets.stage
    table = stage.surfaces["table"]
    assert table.upper[2] == pytest.approx(0.0, abs=1e-5) and stage.robot_position == pytest.approx((0, 0, 0))
    assert np.array(table.lower[:2]) == pytest.approx([-0.12, -0.8], abs=1e-5)
    assert np.array(table.upper[:2]) == pytest.approx([0.68, 0.8], abs=1e-5)
    assert stage.furnishings == {"Shelf_2": "shelf"} and "backdrop" in stage.roles and "floor" in stage.roles
    drawn = draw_physical(task, assets, seed=0, index=0)
    assert drawn.objects[0].position[2] > 0
    parts, basis = load_scene(stage, assets.robot)
    assert basis is not None and {"table", "floor", "backdrop", "Shelf_2"} <= {part.instance for part in parts}


def test_a_usd_scene_keeps_its_unit(tmp_path: Path):
    """The stage has centimeters and y up, as foreign stages may have; the surface is marked in the file."""
    (tmp_path / "desk.usda").write_text(
        """#usda 1.0
(
    metersPerUnit = 0.01
    upAxis = "Y"
)
def Xform "Office"
{
    def Cube "Desk" (customData = {dictionary nimbus = {string role = "table"}})
    {
        double size = 100
        double3 xformOp:scale = (1.6, 0.05, 0.9)
        double3 xformOp:translate = (30, 72, 40)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
    }
    def Cube "Box_1"
    {
        double size = 30
    }
}
""",
        encoding="utf-8",
    )
    table = stage_of(tmp_path, "{file: desk.usda}").surfaces["table"]
    assert np.ptp([table.lower[:2], table.upper[:2]], axis=0) == pytest.approx([0.9, 1.6], abs=1e-4)
    assert table.upper[2] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        ("{file: my_kitchen.glb, surface: Countr}", "no prim or node 'Countr'"),
        ("{file: my_kitchen.glb, surface: Wall}", "is 5.00 x 0.10 m, expected"),
        ("{file: my_kitchen.glb, surface: Counter, mount: [1 m, 0 m]}", "is not on the work surface"),
        ("{file: nowhere.glb, surface: Counter}", "no such file"),
        ("{file: task.yaml}", "is not a scene file"),
        ("{file: broken.glb}", "cannot be read as GLB"),
        ("{file: broken.usda}", "USD cannot open it"),
        ("{file: my_kitchen.glb, surfaces: Counter}", "unknown key 'surfaces'"),
    ],
)
def test_a_mistake_in_a_file_is_told(scene: str, said: str, tmp_path: Path):
    kitchen(tmp_path)
    for name in ("broken.glb", "broken.usda"):
        (tmp_path / name).write_bytes(b"glTF nothing")
    assert said in refusal(stage_of, tmp_path, scene)
