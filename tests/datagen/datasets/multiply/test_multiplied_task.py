"""Tasks that repeat demonstrations: related objects, and axes in which several takes agree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.datasets.multiply import multiplied_task
from nimbus.datagen.datasets.multiply.axes import agree_on_axes
from nimbus.datagen.datasets.multiply.cutting import find_related
from nimbus.datagen.datasets.multiply.multiplied_task import write_task
from nimbus.datagen.datasets.multiply.subtasks import Subtask
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.execute.demonstrations.demonstration_file import Take, Track, matrix_of, pose_row
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.tasks.named_files import own_files
from nimbus.datagen.tasks.task import load_task, parse_task
from nimbus.datagen.usd.stage import read_stage
from tests.datagen.datasets.multiply.test_subtasks import thing
from tests.support import one_can
from tests.support.refusals import refusal

TASK = """
robot: panda
scene: table
regions:
  start: {on: table, center: [0.45, 0.1], size: [0.2, 0.2]}
objects:
  cups: {library: blocks, kinds: [red_cube], count: 2, region: start}
  goal: {library: blocks, kinds: [blue_brick], region: start}
steps: [pick: goal]
success: SUCCESS
instructions: ["Move."]
"""


@pytest.mark.parametrize(
    ("success", "related"),
    [
        ("[for cup in cups: [near: {object: cup, to: goal}]]", {"cups_0": ["goal_0"], "cups_1": ["goal_0"]}),
        ("[near: {object: 'cups[1]', to: goal}]", {"cups_0": [], "cups_1": ["goal_0"]}),
        ("[choose cup in cups: [near: {object: cup, to: goal}]]", {"cups_0": [], "cups_1": ["goal_0"]}),
    ],
)
def test_conditions_in_loops_relate_each_member(success: str, related: dict[str, list[str]]):
    task = parse_task(TASK.replace("SUCCESS", success), name="t")
    things = tuple(thing(name, 0.4, 0.0, 0.02) for name in ("cups_0", "cups_1", "goal_0"))
    layout = PhysicalLayout(objects=things, drawn={"choices": {"cup in cups": 1}})
    found = find_related(task, layout, read_stage(task.scene))
    assert {name: found[name] for name in related} == related


def put(yaw: float, *, world: bool) -> Subtask:
    """Return a demonstration that puts a cup at a side of a rotated object, in the object's or the world's axes."""
    thing = make_transform((0.5, 0.1, 0.0), quat_from_axis_angle((0, 0, 1), yaw))
    place = np.eye(4)
    place[:3, 3] = (0.0, 0.1, 0.02)
    own = thing[:3, :3].T @ place[:3, :3] if world else place[:3, :3]
    shown = np.eye(4)
    shown[:3, :3], shown[:3, 3] = own, (thing[:3, :3].T if world else np.eye(3)) @ place[:3, 3]
    track = Track(poses=(pose_row(shown), pose_row(shown)), held="red_cube", tool_T_held=pose_row(np.eye(4)))
    take = Take(source="a", kind="b", base_T_frame=pose_row(thing), rate=15.0, tracks={"arm": track})
    return Subtask(arms=("arm",), frame="goal_0", start=0, stop=2, verb="put", take=take)


@pytest.mark.parametrize("world", [True, False])
def test_takes_agree_in_the_axes_they_mean(world: bool):
    found = agree_on_axes(tuple(put(yaw, world=world) for yaw in (0.0, 1.0, 2.5)))
    assert {one.axes for one in found} == {"world" if world else "thing"}
    for one in found:
        assert np.allclose(matrix_of(one.take.tracks["arm"].poses[0])[:3, 3], (0.0, 0.1, 0.02), atol=1e-5)


def test_two_takes_keep_the_axes_of_the_thing():
    column = (put(0.0, world=True), put(1.0, world=True))
    assert agree_on_axes(column) == column


def test_a_link_in_the_place_of_the_task_is_refused(tmp_path: Path):
    """In a shared folder, another user could have placed a library beside --out."""
    (tmp_path / "out.demonstrations").symlink_to(tmp_path)
    nothing: Any = None  # the folder is checked first
    folder = tmp_path / "out.demonstrations"
    assert "this is a link" in refusal(write_task, nothing, task=nothing, robot=nothing, stage=nothing, folder=folder)


@pytest.mark.parametrize("name", ["room/room.usda", "notes.txt"])
def test_a_folder_with_other_files_is_refused(tmp_path: Path, name: str):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    nothing: Any = None  # the folder is checked first
    said = refusal(write_task, nothing, task=nothing, robot=nothing, stage=nothing, folder=tmp_path)
    assert f"{tmp_path / name.partition('/')[0]}: the folder for the takes contains something" in said


@pytest.mark.parametrize("scene", ["{file: room.usd}", "{family: shop, bench: ./b.usda}", "./b.usda"])
def test_paths_do_not_begin_at_the_new_file(tmp_path: Path, scene: str):
    randomize = "{distractors: {library: ./own/, region: start}, textures: {folder: Pictures}}"
    text = one_can.TEXT.replace("scene: tabletop", f"scene: {scene}").replace("robot: panda", "robot: own.yaml")
    text = re.sub("library: [a-z]+", "library: ./own/", text)
    (tmp_path / "t.yaml").write_text(f"{text}randomize: {randomize}\n")
    made = multiplied_task._text(load_task(tmp_path / "t.yaml"), "  - home\n")
    found = own_files(parse_task(made, folder=Path("elsewhere")), draws=True)
    assert len(found) == 5 and all(name.startswith(f"{tmp_path}/") for name in found), found
