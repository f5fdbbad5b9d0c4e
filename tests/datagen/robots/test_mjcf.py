"""Robots in MuJoCo's format: the generated URDF moves in the same way, and such a robot picks a block."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files.cache import full_disk
from nimbus.datagen.files.limited_process import LimitedPool
from nimbus.datagen.robots import mjcf
from nimbus.datagen.robots.mjcf import convert_into, convert_to_urdf, keep_urdf
from nimbus.datagen.robots.mjcf_copy import MjcfCopy
from nimbus.datagen.robots.model_folder import MjcfFiles, check_mjcf_files
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.robots.urdf import limit_of, ratio_of, read_urdf
from tests.support.refusals import refusal
from tests.support.six_joint_robot import robot_file
from tests.support.task_attempts import first_success

ODD = """<mujoco>
  <compiler angle="degree"/>
  <worldbody>
    <geom type="plane" size="2 2 0.1"/>
    <body name="base" pos="0 0 0.1" euler="0 0 30">
      <geom type="cylinder" size="0.05 0.1"/>
      <body name="one" pos="0.1 0 0.2" euler="20 0 0">
        <joint name="a" axis="0 0 1" range="-100 100"/>
        <joint name="b" axis="0 1 0" pos="0.02 0 0.05" range="-90 90" ref="15"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.2"/>
        <body name="two" pos="0 0 0.3">
          <joint name="c" type="slide" axis="0 0 1" range="0 0.2"/>
          <geom type="box" size="0.02 0.03 0.04" pos="0 0.1 0" quat="1 1 0 0"/>
          <body name="three" pos="0 0.1 0"><joint name="d" axis="1 0 0" pos="0 0 0.1"/>
            <geom type="sphere" size="0.03"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><joint joint1="d" joint2="a" polycoef="0 0.5 0 0 0"/></equality>
  <actuator><motor joint="a" gear="20" forcerange="-3 3"/></actuator>
</mujoco>"""

ARM = """<mujoco>
  <default><geom type="box" rgba="0.7 0.7 0.75 1" density="600"/>
    <joint axis="0 1 0" range="-2.9 2.9" limited="true"/></default>
  <compiler angle="radian"/>
  <worldbody>
    <body name="base"><geom size="0.05 0.05 0.05" pos="0 0 0.05"/>
     <body name="a" pos="0 0 0.12"><joint name="j1" axis="0 0 1"/><geom size="0.035 0.035 0.1" pos="0 0 0.1"/>
      <body name="b" pos="0 0 0.25"><joint name="j2"/><geom size="0.03 0.03 0.18" pos="0 0 0.18"/>
       <body name="c" pos="0 0 0.42"><joint name="j3"/><geom size="0.03 0.03 0.15" pos="0 0 0.15"/>
        <body name="d" pos="0 0 0.34"><joint name="j4" axis="0 0 1"/><geom size="0.025 0.025 0.05" pos="0 0 0.05"/>
         <body name="e" pos="0 0 0.14"><joint name="j5"/><geom size="0.025 0.025 0.04" pos="0 0 0.04"/>
          <body name="palm" pos="0 0 0.12"><joint name="j6" axis="0 0 1"/><geom size="0.025 0.07 0.02" pos="0 0 0.02"/>
           <body name="finger_l" pos="0 0.005 0.05"><joint name="left" type="slide" range="0 0.04"/>
            <geom size="0.01 0.005 0.025" pos="0 0 0.025"/></body>
           <body name="finger_r" pos="0 -0.005 0.05"><joint name="right" type="slide" axis="0 -1 0" range="0 0.04"/>
            <geom size="0.01 0.005 0.025" pos="0 0 0.025"/></body>
          </body></body></body></body></body></body></body>
  </worldbody>
</mujoco>"""
FILE = robot_file("of_mjcf", model="arm.xml")
TASK = """robot: of_mjcf.yaml
scene: table
regions:
  start: {on: table, center: [0.5, 0.1], size: [0.1, 0.1]}
  goal: {on: table, center: [0.5, -0.12], size: [0.12, 0.12]}
objects:
  block: {library: blocks, kinds: [red_cube], region: start}
steps: [pick: block, place: {object: block, on: goal}]
success: [on: {object: block, support: goal}]
instructions: ["Put {block} elsewhere."]
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[mujoco.MjModel, mujoco.MjModel]:
    """Return the models that MuJoCo reads from the MJCF file of an unusual robot, and from the generated URDF."""
    path = tmp_path_factory.mktemp("mjcf") / "odd.xml"
    path.write_text(ODD)
    return mujoco.MjModel.from_xml_path(str(path)), mujoco.MjModel.from_xml_path(str(convert_to_urdf(path)))


@given(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4))
def test_bodies_are_where_they_are_in_mjcf_at_all_joint_positions(
    pair: tuple[mujoco.MjModel, mujoco.MjModel], values: list[float]
):
    places, tips = [], []
    for model in pair:
        data = mujoco.MjData(model)
        for name, value in zip("abcd", values, strict=True):
            data.joint(name).qpos[0] = value
        mujoco.mj_kinematics(model, data)
        places.append(np.append(data.body("two").xpos, data.body("two").xmat))
        tips.append(data.geom_xpos[-1])
    np.testing.assert_allclose(places[0], places[1], atol=1e-6)
    np.testing.assert_allclose(tips[0], tips[1], atol=1e-6)


def test_limits_and_ties_of_joints_come_along(pair: tuple[mujoco.MjModel, mujoco.MjModel], tmp_path: Path):
    for name in "abc":
        np.testing.assert_allclose(pair[1].joint(name).range, pair[0].joint(name).range, atol=1e-6)
    assert not pair[1].jnt_limited[pair[1].joint("d").id]
    (tmp_path / "odd.xml").write_text(ODD)
    joints = {
        joint.get("name", ""): joint for joint in read_urdf(convert_to_urdf(tmp_path / "odd.xml")).findall("joint")
    }
    assert ratio_of(joints["d"]) == 0.5 and limit_of(joints["a"], "effort") == 60.0


def test_a_robot_of_an_mjcf_file_picks_a_block_and_puts_it_elsewhere(tmp_path: Path):
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "of_mjcf.yaml").write_text(FILE)
    (tmp_path / "task.yaml").write_text(TASK)
    assert first_success(tmp_path / "task.yaml", layouts=2).outcome.success


def test_what_mujoco_cannot_read_is_one_line(tmp_path: Path):
    (tmp_path / "arm.xml").write_text(ARM.replace('type="slide"', 'type="screw"', 1))
    (tmp_path / "of_mjcf.yaml").write_text(FILE)
    told = refusal(load_robot, str(tmp_path / "of_mjcf.yaml"))
    assert "of_mjcf.yaml:2:7: urdf: not an MJCF that MuJoCo reads" in told


def test_a_full_disk_is_not_said_of_the_robot_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fill(*_: object, **__: object) -> None:
        raise full_disk(Path(tempfile.gettempdir(), "nimbus-mjcf-a"))

    monkeypatch.setattr(mjcf, "run_limited", fill)
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "of_mjcf.yaml").write_text(FILE)
    with pytest.raises(StorageError, match=f"^{tempfile.gettempdir()}: the disk of the folder of temporary files"):
        load_robot(str(tmp_path / "of_mjcf.yaml"))


def test_many_conversions_at_once_leave_whole_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 2 of 160 simultaneous conversions, one conversion removed the file that another was about to rename."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    made = _made(tmp_path / "made", {"odd.urdf": ODD, "mesh_0.stl": "a", "mesh_1.stl": "b"})
    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            found = {*pool.map(keep_urdf, [made] * 8)}
            assert len(found) == 1
            kept = {path.name: path.read_text() for path in (tmp_path / "cache/mjcf").glob("*/*")}
            assert kept == {"odd.urdf": ODD, "mesh_0.stl": "a", "mesh_1.stl": "b"}
            found.pop().unlink()


@pytest.mark.parametrize(
    "other",
    [
        {"arm.urdf": "<robot/>", "mesh_0.stl": "b", "mesh_1.stl": "a"},
        {"arm.urdf": "<robot/>", "mesh_2.stl": "a", "mesh_3.stl": "b"},
        {"arm.urdf": "<robot/>", "mesh_0.stl": "ab", "mesh_1.stl": ""},
        {"arm.urdf": "<robot />", "mesh_0.stl": "a", "mesh_1.stl": "b"},
    ],
)
def test_other_files_are_kept_in_another_folder(other: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The cached files of one robot would otherwise stand for another robot."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    first = _made(tmp_path / "first", {"arm.urdf": "<robot/>", "mesh_0.stl": "a", "mesh_1.stl": "b"})
    assert keep_urdf(first) == keep_urdf(first)
    assert keep_urdf(first) != keep_urdf(_made(tmp_path / "other", other))


def test_a_converter_that_leaves_no_urdf_is_one_line(tmp_path: Path):
    """A file may have taken over the parser."""
    with pytest.raises(InputError, match="arm.urdf: "):
        keep_urdf(_made(tmp_path / "made", {"mesh_0.stl": ""}).with_name("arm.urdf"))


def _made(folder: Path, contents: dict[str, str]) -> Path:
    """Write files into a new folder, and return the path of the first."""
    folder.mkdir()
    for name, text in contents.items():
        (folder / name).write_text(text)
    return folder / next(iter(contents))


def test_a_height_field_of_any_size_is_one_line(tmp_path: Path) -> None:
    field = '<hfield name="f" nrow="60000" ncol="60000" size="1 1 1 1"/>'
    (tmp_path / "arm.xml").write_text(f"<mujoco><asset>{field}</asset></mujoco>")
    with pytest.raises(InputError, match="not an MJCF that MuJoCo reads"):
        convert_to_urdf(tmp_path / "arm.xml")


def test_a_warning_about_a_foreign_model_is_written_to_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    private, foreign = tmp_path / "home/private", tmp_path / "foreign"
    private.parent.mkdir()
    foreign.mkdir()
    private.write_text("mine")
    (foreign / "MUJOCO_LOG.TXT").symlink_to(private)
    model = tmp_path / "arm.xml"
    model.write_text('<mujoco><compiler settotalmass="3"/>' + ARM.removeprefix("<mujoco>"))
    monkeypatch.chdir(foreign)
    pool = LimitedPool(1)  # a new server starts in this folder
    try:
        function = f"{convert_into.__module__}:convert_into"
        arguments = {"file": model, "target": f"{private.parent}/arm.urdf"}
        pool.run(function, arguments, where="arm", seconds=20, writes=[private.parent])
    finally:
        pool.close()
    assert private.read_text() == "mine"


INSIDE = '<mujoco><asset><mesh name="m" file="{}"/></asset><worldbody/></mujoco>'


@pytest.mark.parametrize(
    "text",
    [
        INSIDE.format("../private.stl"),
        INSIDE.format("link.stl"),
        '<mujoco><compiler meshdir=".."/><asset><mesh name="m" file="private.stl"/></asset></mujoco>',
        '<mujoco><compiler meshdir=".." strippath="true"/><asset><mesh file="x/private.stl"/></asset></mujoco>',
        '<mujoco><include file="../private.xml"/></mujoco>',
        '<mujoco><include file="part.xml"/></mujoco>',
        '<mujoco><asset><texture name="t" type="cube" fileright="../private.png"/></asset></mujoco>',
        '<mujoco><asset><model name="other" file="../private.xml"/></asset></mujoco>',
        '<mujoco><asset><model name="tool" file="tool/tool.xml"/></asset></mujoco>',
        INSIDE.format(r"..\private.stl"),
        r'<mujoco><compiler meshdir="tool\..\.."/><asset><mesh name="m" file="private.stl"/></asset></mujoco>',
    ],
)
def test_a_model_names_no_file_outside_of_its_folder(tmp_path: Path, text: str):
    """A model may come from another user, and is drawn into datasets."""
    for name in ("private.stl", "private.png", "private.xml"):
        (tmp_path / name).write_text("<mujoco/>")
    folder = tmp_path / "mine"
    (folder / "tool/parts").mkdir(parents=True)
    (folder / "tool/tool.xml").write_text('<mujoco><include file="parts/a.xml"/><worldbody/></mujoco>')
    (folder / "tool/parts/a.xml").write_text(INSIDE.format("../../private.stl"))
    (folder / "link.stl").symlink_to("../private.stl")
    (folder / "part.xml").write_text(INSIDE.format("../private.stl"))
    (folder / "mine.xml").write_text(text)
    with pytest.raises(InputError, match="is outside of the robot's folder"):
        check_mjcf_files(folder / "mine.xml")
    with pytest.raises(InputError, match="is outside of the robot's folder"):
        convert_to_urdf(folder / "mine.xml")


@pytest.mark.parametrize("name", ["../private.stl", r"..\private.stl", "{}/private.stl"])
def test_mujoco_opens_no_file_that_no_check_has_found(tmp_path: Path, name: str):
    """It reads a copy of the model, in which no name leads to another file."""
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "private.stl")
    model = tmp_path / "mine/mine.xml"
    model.parent.mkdir()
    geom = '<worldbody><geom type="mesh" mesh="m"/></worldbody>'
    model.write_text(INSIDE.replace("<worldbody/>", geom).format(name.format(tmp_path)))
    assert mujoco.MjModel.from_xml_path(str(model)).nmesh == 1
    copy = MjcfCopy(MjcfFiles(frozenset({model}), frozenset()), tmp_path / "copy")
    with pytest.raises(ValueError, match="Error opening file"):
        mujoco.MjModel.from_xml_path(str(copy.place(model)))
    with pytest.raises(InputError, match="is outside of the robot's folder"):
        convert_into(str(model), f"{tmp_path}/mine.urdf")


@pytest.mark.parametrize("angles", ["", "radian"])
def test_the_files_of_a_model_are_found_as_mujoco_finds_them(tmp_path: Path, angles: str):
    """They are included, attached, in folders of assets, or have absolute names."""
    (tmp_path / "tool/parts").mkdir(parents=True)
    (tmp_path / "more").mkdir()
    for number, place in enumerate(("tool/a.stl", "more/b.stl", "c.stl")):
        trimesh.creation.box((1, 1, 1 + number)).export(tmp_path / place)
    (tmp_path / "tool/tool.xml").write_text(
        '<mujoco model="t"><include file="parts/p.xml"/><worldbody><body name="w"><geom type="mesh" mesh="a"/></body>'
        "</worldbody></mujoco>"
    )
    (tmp_path / "tool/parts/p.xml").write_text('<mujoco><asset><mesh name="a" file="a.stl"/></asset></mujoco>')
    (tmp_path / "arm.xml").write_text(
        '<mujoco><compiler angle="radian" meshdir="tool/../more"/><include file="geoms.xml"/><asset>'
        f'<model name="t" file="tool/tool.xml"/><mesh name="b" file="b.stl"/><mesh name="c" file="{tmp_path}/c.stl"/>'
        "</asset></mujoco>"
    )
    (tmp_path / "geoms.xml").write_text(
        '<mujoco><worldbody><body name="k"><geom type="mesh" mesh="b"/><geom type="mesh" mesh="c"/><frame>'
        '<attach model="t" body="w" prefix="t_"/></frame></body></worldbody></mujoco>'
    )
    expected = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    (made := tmp_path / "made").mkdir()
    convert_into(str(tmp_path / "arm.xml"), f"{made}/arm.urdf", angles)
    meshes = made.glob("*.stl")
    heights = sorted(float(np.ptp(trimesh.load_mesh(mesh).vertices, axis=0).max()) for mesh in meshes)
    assert expected.nmesh == 3 and heights == pytest.approx([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE mujoco [<!ENTITY x "y">]><mujoco/>',
        INSIDE.format("a&#10;\nb.stl"),
        '<mujoco><compiler meshdir="a\n/.."/></mujoco>',
        '<mujoco><include xmlns="q" file="part.xml"/></mujoco>',
    ],
)
def test_an_unclear_model_is_refused(tmp_path: Path, text: str):
    (tmp_path / "mine.xml").write_text(text)
    with pytest.raises(InputError, match="has a document type, a namespace, or a line break in the name of a file"):
        check_mjcf_files(tmp_path / "mine.xml")
