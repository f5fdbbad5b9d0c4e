"""URDFs: assembly, locked joints, and masses."""

from __future__ import annotations

import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.robots import urdf
from nimbus.datagen.robots.defaults import compute_joint_inertias
from nimbus.datagen.robots.mjcf import is_mjcf
from nimbus.datagen.robots.robot import Adapter, Piece
from nimbus.datagen.robots.urdf import (
    assemble,
    child_of,
    limit_of,
    lock_joints,
    origin_of,
    parent_of,
    read_urdf,
    set_origin,
)

ARM = """<robot name="arm">
<link name="base"/>
<link name="upper"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
  <inertia ixx="0" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.25 0 0"/><mass value="1"/>
  <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>
  <visual><geometry><mesh filename="package://mine/part.stl"/></geometry></visual></link>
<joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="1 0 0"/><axis xyz="0 0 1"/>
  <limit lower="-2" upper="2" velocity="1" effort="10"/></joint>
</robot>"""


@pytest.fixture
def arm(tmp_path: Path) -> Piece:
    path = tmp_path / "mine" / "urdf" / "arm.urdf"
    path.parent.mkdir(parents=True)
    path.write_text(ARM)
    return Piece(urdf=str(path))


def joints(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {str(joint.get("name")): joint for joint in root.findall("joint")}


def test_the_inertia_about_a_joint_is_that_of_all_it_moves(arm: Piece):
    root = assemble([arm], robot="arm")
    straight = compute_joint_inertias(root, {"shoulder": 0.3, "elbow": 0.0})
    assert straight["shoulder"] == pytest.approx(0.1 + 2 * 0.5**2 + 1.25**2)
    assert straight["elbow"] == pytest.approx(0.25**2)
    folded = compute_joint_inertias(root, {"shoulder": 0.0, "elbow": np.pi / 2})
    assert folded["shoulder"] == pytest.approx(0.1 + 0.5 + 1 + 0.25**2)


def test_two_arms_share_a_base_and_no_name(arm: Piece):
    other = arm.model_copy(update={"prefix": "other_", "position": (0.0, 1.0, 0.0)})
    root = assemble([arm, other], robot="two")
    names = [element.get("name") for element in root if element.tag in ("link", "joint")]
    assert len(set(names)) == len(names)
    found = joints(root)
    assert parent_of(found["other_elbow"]) == "other_upper" and child_of(found["other_elbow"]) == "other_lower"
    assert np.allclose(origin_of(found["base_of_all_to_other_base"])[:3, 3], (0, 1, 0))


def test_a_part_is_taken_from_its_root_on(arm: Piece):
    hand = arm.model_copy(update={"prefix": "hand_", "root": "lower", "mount": "lower", "position": (0.5, 0.0, 0.0)})
    root = assemble([arm, hand], robot="handed")
    assert [link.get("name") for link in root.findall("link")] == ["base", "upper", "lower", "hand_lower"]
    assert parent_of(joints(root)["lower_to_hand_lower"]) == "lower"


def test_meshes_are_named_where_they_lie(arm: Piece):
    root = assemble([arm], robot="arm")
    mesh = root.find(".//mesh")
    assert mesh is not None and Path(str(mesh.get("filename"))) == Path(arm.urdf).parents[1] / "part.stl"


def test_a_joint_without_limits_gets_two_turns(arm: Piece):
    shoulder = joints(assemble([arm], robot="arm"))["shoulder"]
    assert limit_of(shoulder, "upper") == pytest.approx(2 * np.pi)
    assert limit_of(shoulder, "velocity") is None


@given(st.floats(-3, 3), st.floats(-2, 2))
def test_a_locked_joint_stays_where_it_was_put(shoulder: float, elbow: float):
    root = ElementTree.fromstring(ARM)
    before = compute_joint_inertias(root, {"shoulder": shoulder, "elbow": elbow})["shoulder"]
    lock_joints(root, {"elbow": elbow})
    assert joints(root)["elbow"].get("type") == "fixed" and joints(root)["elbow"].find("limit") is None
    assert compute_joint_inertias(root, {"shoulder": 0.0})["shoulder"] == pytest.approx(before, abs=1e-9)


def test_paths_of_meshes_and_textures_are_absolute(arm: Piece, monkeypatch: pytest.MonkeyPatch):
    path = Path(arm.urdf)
    text = path.read_text().replace(
        "</geometry>", '</geometry><material name="skin"><texture filename="skin.png"/></material>'
    )
    path.write_text(text)
    monkeypatch.chdir(path.parents[2])
    root = assemble([arm.model_copy(update={"urdf": "mine/urdf/arm.urdf"})], robot="arm")
    assert [mesh.get("filename") for mesh in root.iter("mesh")] == [str(path.parents[1] / "part.stl")]
    assert [texture.get("filename") for texture in root.iter("texture")] == [str(path.parent / "skin.png")]


@given(st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda axis: np.linalg.norm(axis) > 0.1), st.floats(-3, 3))
def test_an_origin_is_written_as_it_is_read(axis: tuple[float, float, float], angle: float):
    matrix = make_transform((0.1, -0.2, 0.3), quat_from_axis_angle(axis, angle))
    element = ElementTree.Element("joint")
    set_origin(element, matrix)
    assert np.allclose(origin_of(element), matrix, atol=1e-6)


@pytest.mark.parametrize("text", ["", "no xml", "<robot/>", "<sdf><link name='a'/></sdf>", "\x00\x01"])
def test_what_is_no_urdf_is_one_line(text: str, tmp_path: Path):
    path = tmp_path / "bad.urdf"
    path.write_text(text)
    with pytest.raises(InputError, match=r"bad\.urdf(:1:1)?: not a URDF: [^\n]+$"):
        read_urdf(path)


def test_a_model_of_too_many_elements_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(urdf, "_MOST_ELEMENTS", 100)
    (tmp_path / "a.urdf").write_text(f"<robot><link name='a'>{'<a/>' * 200}</link></robot>")
    with pytest.raises(InputError, match="not a URDF: more than 100 elements"):
        read_urdf(tmp_path / "a.urdf")


def test_a_long_token_takes_linear_time(tmp_path: Path):
    """The parser reads a token again in each call; in parts of 16 kB, this file took 8 s."""
    (tmp_path / "a.urdf").write_text(f"<robot name='{'x' * 8_000_000}'><link name='a'/></robot>")
    begin = time.process_time()
    assert not is_mjcf(tmp_path / "a.urdf")
    assert read_urdf(tmp_path / "a.urdf").tag == "robot"
    assert time.process_time() - begin < 2.0


def test_adapter_is_a_cylinder_on_the_mount(arm: Piece):
    """The hand of a second model is fixed to the first one with an adapter between them."""
    hand = arm.model_copy(update={"prefix": "hand_", "mount": "lower", "adapter": Adapter(radius=0.03, length=0.04)})
    root = assemble([arm, hand], robot="both")
    fixed = joints(root)["lower_to_hand_base_adapter"]
    assert (parent_of(fixed), child_of(fixed)) == ("lower", "hand_base_adapter")
    (link,) = (link for link in root.findall("link") if link.get("name") == "hand_base_adapter")
    for shape in (link.find("visual"), link.find("collision")):
        assert shape is not None and origin_of(shape)[2, 3] == pytest.approx(0.02), "it begins at the mount"
        assert [found.attrib for found in shape.iter("cylinder")] == [{"radius": "0.03", "length": "0.04"}]
