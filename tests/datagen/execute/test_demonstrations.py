"""Demonstrated motions: their file, and their transformation to another scene."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.demonstrations.candidates import HeldNow, find_turns, list_candidates
from nimbus.datagen.execute.demonstrations.demonstration_file import (
    DemonstrationFile,
    GripperEvent,
    Take,
    Track,
    matrix_of,
    pose_row,
    read_demonstration,
)
from nimbus.datagen.execute.demonstrations.retiming import time_postures
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.tasks.task import load_task, parse_task

TASK = """
robot: panda
scene: table
regions:
  start: {on: table, center: [0.45, 0.1], size: [0.1, 0.1]}
objects:
  block: {library: blocks, kinds: [red_cube], region: start}
steps:
  - do: {demo: DEMO, on: block}
success: [{held: {object: block}}]
instructions: ["Take {block}."]
"""


def pose(x: float, y: float, z: float, yaw: float) -> FloatArray:
    """Return a pose rotated about the vertical."""
    return make_transform((x, y, z), quat_from_axis_angle((0, 0, 1), yaw))


def above(*heights: float, held: FloatArray | None = None) -> Take:
    """Return a take in which the tool points down over the object."""
    down = make_transform((0, 0, 0), (0.0, 1.0, 0.0, 0.0))
    rows = []
    for height in heights:
        down[2, 3] = height
        rows.append(pose_row(down))
    track = Track(
        poses=tuple(rows),
        held="" if held is None else "red_cube",
        tool_T_held=None if held is None else pose_row(held),
        events=(GripperEvent(row=1, action="close", on="on", opening=0.0),),
    )
    return Take(
        source="a", kind="red_cube", base_T_frame=pose_row(pose(0.5, 0, 0, 0)), rate=15.0, tracks={"arm": track}
    )


def demonstration(*takes: Take) -> DemonstrationFile:
    """Return a demonstration of one arm."""
    return DemonstrationFile(robot="panda", task="t", subtask="take block", takes=takes)


small = st.floats(-0.3, 0.3)


@given(small, small, st.floats(-3.0, 3.0))
def test_a_path_moves_with_its_thing(x: float, y: float, yaw: float):
    """The tool has the same pose relative to the object; symmetric variants are among the candidates."""
    thing = pose(0.5 + x, y, 0.0, yaw)
    take = above(0.1, 0.0)
    found = list_candidates(
        demonstration(take), world_T_frame=thing, base=np.zeros(3), kind="red_cube", symmetry="none", held={}
    )
    expected = take.tracks["arm"].matrices()
    assert any(np.allclose(np.linalg.inv(thing) @ one.paths["arm"], expected, atol=1e-5) for one in found)
    assert [one.change for one in found] == sorted(one.change for one in found)


@given(small, small, st.floats(-3.0, 3.0))
def test_a_held_thing_repeats_its_own_path(x: float, y: float, yaw: float):
    """A different grasp of the held object is compensated: the object's path in the frame is the demonstrated one."""
    then, now = pose(0.0, 0.0, 0.01, 0.0), pose(x / 10, y / 10, 0.02, yaw)
    take = above(0.1, 0.0, held=then)
    held = {"arm": HeldNow(kind="red_cube", symmetry="none", tool_T_held=now)}
    (found,) = list_candidates(
        demonstration(take), world_T_frame=np.eye(4), base=np.zeros(3), kind="red_cube", symmetry="none", held=held
    )
    assert np.allclose(found.paths["arm"] @ now, take.tracks["arm"].matrices() @ then, atol=1e-5)


def test_a_round_thing_keeps_the_hand_as_shown():
    """A round object that is rotated by 90 degrees is grasped as before."""
    arguments = {"base": np.zeros(3), "kind": "red_cube", "held": {}}
    turned = pose(0.5, 0.0, 0.0, np.pi / 2)
    plain = list_candidates(demonstration(above(0.1, 0.0)), world_T_frame=turned, symmetry="none", **arguments)
    round_ = list_candidates(demonstration(above(0.1, 0.0)), world_T_frame=turned, symmetry="revolution", **arguments)
    assert plain[0].change > 0.2
    assert round_[0].change < 1e-6


def test_the_nearest_take_comes_first():
    far = above(0.1, 0.0).model_copy(update={"base_T_frame": pose_row(pose(0.3, 0.3, 0, 0)), "source": "far"})
    found = list_candidates(
        demonstration(far, above(0.1, 0.0)),
        world_T_frame=pose(0.5, 0.02, 0, 0),
        base=np.zeros(3),
        kind="red_cube",
        symmetry="none",
        held={},
    )
    assert found[0].take.source == "a"


def test_a_thing_of_the_same_size_comes_before_a_nearer_one():
    """A hand opened for a cube would push a brick away."""
    cube, brick = (0.04, 0.04, 0.04), (0.08, 0.04, 0.04)
    far = {"base_T_frame": pose_row(pose(0.3, 0.3, 0, 0)), "source": "far", "size": brick, "kind": "blue_brick"}
    found = list_candidates(
        demonstration(above(0.1, 0.0).model_copy(update={"size": cube}), above(0.1, 0.0).model_copy(update=far)),
        world_T_frame=pose(0.5, 0.02, 0, 0),
        base=np.zeros(3),
        kind="red_brick",
        symmetry="none",
        held={},
        size=brick,
    )
    assert found[0].take.source == "far"


@pytest.mark.parametrize(
    ("size", "count"), [(None, 4), ((0.08, 0.04, 0.03), 4), ((0.04, 0.04, 0.08), 8), ((0.04, 0.04, 0.04), 24)]
)
def test_boxes_with_equal_sides_have_quarter_turns(size: tuple[float, float, float] | None, count: int):
    turns = find_turns("box", size)
    assert len(turns) == count
    assert all(np.isclose(np.linalg.det(turn[:3, :3]), 1.0) for turn in turns)
    assert all(np.allclose(np.abs(turn[:3, :3]) @ (size or (1, 1, 1)), size or (1, 1, 1)) for turn in turns)


def test_timing_keeps_the_limits_of_all_arms():
    """The slower arm determines the speed of both, and both reach their ends together."""
    fast, slow = np.linspace([0.0], [0.1], 6), np.linspace([0.0], [5.0], 6)
    one, other = time_postures([fast, slow], rate=15.0, period=1 / 15, limits=[[2.0], [2.0]])
    assert len(one) == len(other)
    assert np.abs(np.diff(other, axis=0)).max() * 15 <= 1.0 + 1e-9
    assert (one[-1], other[-1]) == (fast[-1], slow[-1])


def test_a_file_reads_back_as_written(tmp_path: Path):
    written = demonstration(above(0.1, 0.0))
    written.write(tmp_path / "take.demo.json")
    assert read_demonstration(tmp_path / "take.demo.json") == written
    assert np.allclose(matrix_of(written.takes[0].base_T_frame), pose(0.5, 0, 0, 0))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "not a demonstration"),
        ("{}", "robot: field required"),
        ('{"robot": "panda", "task": "t", "subtask": "s", "takes": []}', "takes"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, text: str, what: str):
    (tmp_path / "x.demo.json").write_text(text)
    with pytest.raises(InputError, match=what):
        read_demonstration(tmp_path / "x.demo.json")


def test_tracks_of_two_lengths_are_refused():
    take = above(0.1, 0.0)
    longer = above(0.1, 0.05, 0.0).tracks["arm"]
    with pytest.raises(ValueError, match="different numbers"):
        Take.model_validate(take.model_dump() | {"tracks": {"left": take.tracks["arm"], "right": longer}})


def test_content_of_a_demonstration_enters_the_hash(tmp_path: Path):
    """Tasks with equal demonstrations at different paths are equal; another demonstration changes the task."""
    for folder, height in (("one", 0.0), ("two", 0.0), ("three", 0.01)):
        (tmp_path / folder).mkdir()
        demonstration(above(0.1, height)).write(tmp_path / folder / "DEMO.demo.json")
        (tmp_path / folder / "t.yaml").write_text(TASK)
    one, two, three = (load_task(tmp_path / folder / "t.yaml").content_hash for folder in ("one", "two", "three"))
    assert one == two != three


def test_a_missing_demonstration_has_a_location(tmp_path: Path):
    (tmp_path / "t.yaml").write_text(TASK)
    with pytest.raises(InputError, match=r"t.yaml:9:.*no such demonstration"):
        load_task(tmp_path / "t.yaml")


def test_closing_a_hand_needs_a_thing(tmp_path: Path):
    """Without ``on``, the motion is in the world, and there is nothing on which the hand could close."""
    demonstration(above(0.1, 0.0)).write(tmp_path / "DEMO.demo.json")
    (tmp_path / "t.yaml").write_text(TASK.replace(", on: block", ""))
    with pytest.raises(InputError, match=r"t.yaml:9:.*closes a hand on a thing, and the step names none"):
        load_task(tmp_path / "t.yaml")


def test_a_stored_task_needs_no_demonstration():
    """A task stored in an episode is parsed for replays, which only need its conditions."""
    assert parse_task(TASK, name="t").success
