"""``nimbus robot check``: its report on a robot, and refusals in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.doctor import robot as robot_check
from nimbus.datagen.doctor import robot_report
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.usd.stage import read_stage
from nimbus.runner.cli import main
from tests.support.six_joint_robot import robot_file

ARM = """<robot name="two">
<link name="base"><inertial><mass value="1"/>
  <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  <collision><geometry><box size="0.1 0.1 0.1"/></geometry><origin xyz="0 0 0.05"/></collision></link>
{links}{joints}
</robot>"""
LINK = """<link name="{name}"><inertial><origin xyz="0 0 0.1"/><mass value="{mass}"/>
  <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  <visual><origin xyz="0 0 {half}"/><geometry><box size="{size}"/></geometry></visual>
  <collision><origin xyz="0 0 {half}"/><geometry><box size="{size}"/></geometry></collision></link>"""
JOINT = """<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
  <origin xyz="{at}"/><axis xyz="{axis}"/><limit lower="{low}" upper="{high}" velocity="2" effort="60"/></joint>"""
FILE = robot_file("mine", model="models/mine.urdf")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a user's robot with six joints and two sliding fingers, beside its URDF."""
    sizes = {"a": "0.07 0.07 0.2", "b": "0.06 0.06 0.36", "c": "0.06 0.06 0.3", "d": "0.05 0.05 0.1"}
    sizes |= {
        "e": "0.05 0.05 0.08",
        "palm": "0.05 0.14 0.04",
        "finger_l": "0.02 0.01 0.05",
        "finger_r": "0.02 0.01 0.05",
    }
    links = "".join(
        LINK.format(name=name, mass=0.5, size=size, half=float(size.split()[2]) / 2) for name, size in sizes.items()
    )
    chain = [("j1", "base", "a", "0 0 0.12", "0 0 1"), ("j2", "a", "b", "0 0 0.25", "0 1 0")]
    chain += [("j3", "b", "c", "0 0 0.42", "0 1 0"), ("j4", "c", "d", "0 0 0.34", "0 0 1")]
    chain += [("j5", "d", "e", "0 0 0.14", "0 1 0"), ("j6", "e", "palm", "0 0 0.12", "0 0 1")]
    joints = "".join(
        JOINT.format(name=n, kind="revolute", parent=p, child=c, at=at, axis=axis, low=-2.9, high=2.9)
        for n, p, c, at, axis in chain
    )
    for name, side, sign in (("left", "finger_l", 1), ("right", "finger_r", -1)):
        way = {"at": f"0 {0.005 * sign} 0.05", "axis": f"0 {sign} 0", "low": 0.0, "high": 0.04}
        joints += JOINT.format(name=name, kind="prismatic", parent="palm", child=side, **way)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.urdf").write_text(ARM.format(links=links, joints=joints))
    file = tmp_path / "mine.yaml"
    file.write_text(FILE)
    return file


def test_a_robot_of_ones_own_is_described_and_drawn(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    picture, model = tmp_path / "new" / "mine.png", mine.parent / "models" / "mine.urdf"
    model.write_text(re.sub(r'(<link name="e">)<inertial>.*?</inertial>', r"\1", model.read_text(), flags=re.S))
    assert main(["robot", "check", str(mine), "--picture", str(picture), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (arm,) = told["arms"]
    assert [joint["name"] for joint in arm["joints"]] == ["j1", "j2", "j3", "j4", "j5", "j6"]
    assert arm["joints"][0]["upper"] == pytest.approx(2.9) and arm["joints"][0]["velocity"] == 2
    assert told["notes"] == ["link 'e' has no mass in its model: simulated with 0.20 kg"]
    assert arm["opening"] == pytest.approx(0.08) and arm["reach"][1] > 0.5
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size > 5000


@pytest.mark.slow
@pytest.mark.long
def test_unchanged_robot_is_checked_once(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    checked, check = [], robot_check.check_robot
    monkeypatch.setattr(robot_check, "check_robot", lambda *args, **to: checked.append(args) or check(*args, **to))
    told, drawn = [], []
    for _ in range(2):
        picture = tmp_path / "p.png"
        assert main(["robot", "check", str(mine), "--picture", str(picture)]) == 0
        told.append(capsys.readouterr().out)
        drawn.append(picture.read_bytes())
        picture.unlink()
    assert len(checked) == 1 and told[0] == told[1] and drawn[0] == drawn[1]
    model = mine.parent / "models" / "mine.urdf"
    model.write_text(model.read_text().replace('effort="60"', 'effort="50"'))
    assert main(["robot", "check", str(mine), "--picture", str(tmp_path / "p.png")]) == 0
    assert len(checked) == 2 and capsys.readouterr().out != told[0]
    monkeypatch.setattr(robot_report, "CHECK_VERSION", 10**6)
    assert main(["robot", "check", str(mine), "--picture", str(tmp_path / "p.png")]) == 0
    assert len(checked) == 3


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("link: palm,", "link: plam,", "mine.yaml:4:14: tool.link: its URDF has no link 'plam'; did you mean 'palm'?"),
        ("[j1, j2,", "[j1, j9,", "mine.yaml:3:20: arm.joints[1]: its URDF has no joint 'j9'; did you mean"),
        ("urdf: models/mine.urdf", "urdf: none.urdf", "mine.yaml:2:7: urdf: no such file:"),
        ("urdf: models/mine.urdf", "urdf: mine.yaml", "mine.yaml:1:1: not a URDF: syntax error;"),
        ("[0, 0.4, 1.3", "[0, 4.0, 1.3", "mine.yaml:3:51: arm.home[1]: 4 rad is beyond the limits of 'j2'; write"),
        ("[0, 0.4, 1.3", "[0, 90, 1.3", "of 'j2'; write -2.9 to 2.9; 90 degrees are 1.57 rad"),
        ("[0, 0.4, 1.3", "[0, 1.9, 0.6", "mine.yaml:3:47: arm.home: in the home posture, "),
        ("[0, 0.4, 1.3, 0, ", "[0, 0.4, 1.3, ", "mine.yaml:3:47: arm.home: home has 5 entries for 6 joints"),
        ("open: 0.04", "open: 40", "40 m is beyond the limits of 'left'; write 0 to 0.04; 40 mm are 0.04 m"),
        ("finger_depth: 0.05", "finger_depth: 70", "expected at most 0.5 m, found 70; did you mean '70 mm'?"),
        ("pad_width: 0.02", "pad_width: 20 kg", "expected a length such as 0.05 or '5 cm' (units: m, cm, mm)"),
        ("gripper:", "hand: {of: panda, mount: e}\ngripper:", "give a 'tool' and a 'gripper', or a 'hand'"),
        ("effort_limit: 15.0", "grip: 15.0", "unknown"),
    ],
)  # fmt: skip
def test_a_robot_that_is_wrong_is_one_line(
    old: str, new: str, said: str, mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert FILE.count(old) == 1
    mine.write_text(FILE.replace(old, new))
    assert main(["robot", "check", str(mine), "--picture", str(tmp_path / "p.png")]) == 2
    told = capsys.readouterr()
    assert said in told.err and told.err.count("\n") == 1 and "Traceback" not in told.err
    assert not (tmp_path / "p.png").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('velocity="2"', 'velocity="0"', "arm.joints[0]: 'j1' has velocity 0 rad/s in its model; write"),
        ('effort="60"', 'effort="0"', "mine.yaml:3:16: arm.joints[0]: 'j1' has effort 0 N m in its model; write"),
        ('<limit lower="0.0" upper="0.04"', "<limit", "gripper.joints[0]: 'left' cannot move: its model gives"),
        ('<link name="e">', '<link name="e"/><link name="x">', "mine.yaml:2:7: urdf: link 'e' moves, but has neither"),
        ('parent link="a"', 'parent link="z"', "models/mine.urdf:30: joint 'j2' refers to the unknown link 'z'; "),
    ],
)  # fmt: skip
def test_a_model_that_is_wrong_is_one_line(
    old: str, new: str, said: str, mine: Path, capsys: pytest.CaptureFixture[str]
):
    model = mine.parent / "models" / "mine.urdf"
    assert old in model.read_text()
    join = '<joint name="jx" type="fixed"><parent link="base"/><child link="x"/></joint></robot>'
    text = model.read_text().replace(old, new)
    model.write_text(text.replace("</robot>", join) if 'name="x"' in text else text)
    assert main(["robot", "check", str(mine)]) == 2
    told = capsys.readouterr()
    assert said in told.err and told.err.count("\n") == 1


def test_a_joint_without_limits_has_two_turns_and_lengths_have_units(mine: Path):
    model = mine.parent / "models" / "mine.urdf"
    model.write_text(re.sub(r'(<axis xyz="0 0 1"/>)<limit[^>]*>', r"\1", model.read_text()))
    mine.write_text(FILE.replace("pad_width: 0.02", "pad_width: 2 cm"))
    robot = load_robot(str(mine))
    assert robot.gripper.pad_width == pytest.approx(0.02) and robot.arm.velocity_limits[0] == 2.0
    simulation = NewtonSimulation(read_stage("table"), robot, rate=15.0)
    simulation.load(PhysicalLayout(objects=()))
    assert simulation.model.joint("j1").range[1] == pytest.approx(2 * np.pi)


def test_a_robot_without_a_gripper_is_told_what_to_write(mine: Path, capsys: pytest.CaptureFixture[str]):
    mine.write_text(FILE[: FILE.index("tool:")])
    assert main(["robot", "check", str(mine)]) == 2
    assert "give a 'tool' and a 'gripper', or a 'hand' of another robot" in capsys.readouterr().err


def test_an_unknown_robot_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str]):
    assert main(["robot", "check", "ur11"]) == 2
    assert "unknown robot 'ur11'; did you mean 'ur10'?" in capsys.readouterr().err


def test_every_robot_that_comes_with_nimbus_is_short():
    for file in sorted(scene_folder("robots").glob("*.yaml")):
        lines = file.read_text().splitlines()
        assert len(lines) <= 40 and max(map(len, lines)) <= 120, file.name
