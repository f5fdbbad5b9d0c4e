"""An impossible robot model causes one line that names the position in its file."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.robots.model_checks import MOST_LINKS, check_model
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
        ('name="two"', 'name="../../two"', r":1: the <robot> is called '../../two'; write letters"),
        ('xyz="0 0 1"', 'xyz="0 0 0"', r":6: the axis of joint 'turn' is 0 0 0; write a direction"),
        ('xyz="0 0 1"', 'xyz="0 1"', r""":6: xyz="0 1" in <axis> of joint 'turn'; write 3 numbers"""),
        ('lower="-2"', 'lower="3"', r""":6: joint 'turn' has lower 3 above upper 2; write lower="2" upper="3\""""),
        ('lower="-2"', 'lower="low"', r""":6: lower="low" in <limit> of joint 'turn'; write 1 number"""),
        ('type="revolute"', 'type="hinge"', r":6: joint 'turn' has the type 'hinge'; known: "),
        ('child link="tool0"', 'child link="tool"', r":8: joint 'flange' refers to the unknown link 'tool'; did"),
        ('child link="tool0"', 'child link="base"', r":8: joint 'flange' closes a loop of links: base, arm; remove"),
        ('child link="tool0"', 'child link="arm"', r":8: link 'arm' is the child of two joints, 'turn' and .*; remove"),
        ("</robot>", '<link name="alone"/></robot>', r":9: links 'base' and 'alone' both lack a parent; join them"),
        ("</robot>", '<link name="arm"/></robot>', r":3: two links are called 'arm'; give each"),
        ('type="revolute"', 'type="floating"', r":6: joint 'turn' is floating, which planners do not support; make it"),
        ('type="revolute"', 'type="planar"', r":6: joint 'turn' is planar, which planners do not support; make it"),
        ("</joint>", '<mimic joint="turn"/></joint>', r":6: joints mimic each other in a circle: turn; remove one"),
        ("</joint>", '<mimic joint="trun"/></joint>', r":6: joint 'turn' mimics 'trun', which is not a .*'turn'"),
        ("</joint>", "<mimic/></joint>", r":6: joint 'turn' mimics '', which is not a joint"),
        ("</joint>", '<mimic joint="flange"/></joint>', r":6: joint 'turn' mimics 'flange', which is fixed; fix"),
        ('mass value="2"', 'mass value="1e300"', r':3: value="1e300" in <mass> of link .* is far too large'),
        ('lower="-2"', 'lower="-1e9"', r':6: lower="-1e9" in <limit> .* too large; .* type="continuous" for a'),
        ('xyz="0 0 1"', 'xyz="0 0 1e300"', r':6: xyz="0 0 1e300" in <axis> of joint \'turn\' is far too large'),
        ('mass value="2"', 'mass value="-2"', r":3: link 'arm' has a mass of -2 kg; write"),
        ('ixx="0.02"', 'ixx="-0.02"', r":3: the inertia of link 'arm' is impossible: .*-0.02, 0.02, 0.03 kg m²; none"),
        ('izz="0.03"', 'izz="9"', r":3: the inertia of link 'arm' is impossible: .*; the largest may not"),
        ("collision", "visual", r": no link has a <collision> shape: .*; write one for each link"),
        ('size="1 1 1"', 'size="1 1 0"', r""":2: the box of link 'base' has size="1 1 0"; write its size in meters"""),
    ],
)  # fmt: skip
def test_what_no_robot_can_have_is_one_line(old: str, new: str, said: str, tmp_path: Path):
    assert old in MODEL
    with pytest.raises(InputError, match=rf"two\.urdf{said}[^\n]*$"):
        check(MODEL.replace(old, new), tmp_path)


def chain(count: int) -> str:
    """Return the model with a chain of further links after its last one."""
    links = "".join(
        f'<link name="x{number}"/><joint name="f{number}" type="fixed">'
        f'<parent link="{f"x{number - 1}" if number else "tool0"}"/><child link="x{number}"/></joint>'
        for number in range(count)
    )
    return MODEL.replace("</robot>", f"{links}</robot>")


def test_a_long_chain_is_checked_in_a_moment(tmp_path: Path) -> None:
    """The time once grew with the cube of the chain's length: a minute for this one."""
    begin = time.process_time()
    check(chain(MOST_LINKS - 3), tmp_path)
    assert time.process_time() - begin < 5.0


def test_far_too_many_links_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3003 links; the limit is 1000"):
        check(chain(3000), tmp_path)


def test_a_circle_of_mimics_is_refused(tmp_path: Path) -> None:
    slide = '<limit lower="0" upper="1" velocity="1" effort="1"/>'
    more = "".join(
        f'<link name="s{number}"/><joint name="m{number}" type="prismatic"><parent link="tool0"/>'
        f'<child link="s{number}"/>{slide}<mimic joint="m{(number + 1) % 3}"/></joint>'
        for number in range(3)
    )
    with pytest.raises(InputError, match="mimic each other in a circle: m0, m2, m1; remove one"):
        check(MODEL.replace("</robot>", f"{more}</robot>"), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("</robot>", "<a>" * 20_000 + "</a>" * 20_000 + "</robot>", "nested too deeply"),
        ('<robot name="two">', '<?xml version="1.0" encoding="utf-32"?><robot name="two">', "not a URDF"),
        ('<robot name="two">', '<?xml version="1.0" encoding="klingon"?><robot name="two">', "not a URDF"),
    ],
    ids=["deep", "utf-32", "unknown encoding"],
)
def test_xml_that_leads_astray_is_one_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        check(MODEL.replace(old, new), tmp_path)


def test_a_model_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "two.urdf")
    with pytest.raises(InputError, match="is not a regular file"):
        read_urdf(tmp_path / "two.urdf")
