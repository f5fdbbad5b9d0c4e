"""A model that can be no robot is one line that names the place in its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.robots.model_checks import check_model
from nimbus.datagen.robots.urdf import read_urdf

MODEL = """<robot name="two">
<link name="base"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
<link name="arm"><inertial><mass value="2"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.03"/></inertial></link>
<link name="tool0"/>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
  <limit lower="-2" upper="2" velocity="1" effort="10"/></joint>
<joint name="flange" type="fixed"><parent link="arm"/><child link="tool0"/></joint>
</robot>"""


def check(text: str, folder: Path) -> None:
    path = folder / "two.urdf"
    path.write_text(text)
    check_model(read_urdf(path), path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ('<limit lower="-2" upper="2" velocity="1" effort="10"/>', ""),
        ('izz="0.03"', 'izz="0.04001"'),
        ('<link name="tool0"/>', '<link name="tool0"><inertial><mass value="0"/></inertial></link>'),
    ],
    ids=["as it is", "no limit", "inertia rounded", "frame without mass"],
)
def test_what_is_legal_passes(old: str, new: str, tmp_path: Path):
    check(MODEL.replace(old, new), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('xyz="0 0 1"', 'xyz="0 0 0"', r":6: the axis of joint 'turn' is 0 0 0; write a direction"),
        ('xyz="0 0 1"', 'xyz="0 1"', r""":6: xyz="0 1" in <axis> of joint 'turn'; write 3 numbers"""),
        ('lower="-2"', 'lower="3"', r""":6: joint 'turn' has lower 3 above upper 2; write lower="2" upper="3\""""),
        ('lower="-2"', 'lower="low"', r""":6: lower="low" in <limit> of joint 'turn'; write 1 number"""),
        ('type="revolute"', 'type="hinge"', r":6: joint 'turn' has the type 'hinge'; known: "),
        ('child link="tool0"', 'child link="tool"', r":8: joint 'flange' names no link 'tool'; did you mean 'tool0'"),
        ('child link="tool0"', 'child link="base"', r":8: joint 'flange' closes a loop of links: base, arm; remove"),
        ('child link="tool0"', 'child link="arm"', r":8: link 'arm' hangs on two joints, 'turn' and 'flange'; remove"),
        ("</robot>", '<link name="alone"/></robot>', r":9: links 'base' and 'alone' both hang on no joint; join them"),
        ("</robot>", '<link name="arm"/></robot>', r":3: two links are called 'arm'; give each"),
        ('mass value="2"', 'mass value="-2"', r":3: link 'arm' has a mass of -2 kg; write"),
        ('ixx="0.02"', 'ixx="-0.02"', r":3: no body has the inertia of link 'arm': .*-0.02, 0.02, 0.03 kg m²; none"),
        ('izz="0.03"', 'izz="9"', r":3: no body has the inertia of link 'arm': .*; the largest is at most"),
        ("collision", "visual", r": no link has a <collision> shape: .*; write one for each link"),
        ('size="1 1 1"', 'size="1 1 0"', r""":2: the box of link 'base' has size="1 1 0"; write its size in metres"""),
    ],
)  # fmt: skip
def test_what_no_robot_can_have_is_one_line(old: str, new: str, said: str, tmp_path: Path):
    assert old in MODEL
    with pytest.raises(InputError, match=rf"two\.urdf{said}[^\n]*$"):
        check(MODEL.replace(old, new), tmp_path)
