"""Models are read from wheels as archives, without installing them."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from nimbus.datagen.robots.robot import Robot, load_robot
from nimbus.datagen.robots.robot_file import list_wheels
from nimbus.datagen.robots.wheels import download_wheel, find_wheel
from nimbus.runner.cli import main
from tests.support.refusals import refusal

MODEL = """<mujoco>
  <asset><mesh name="m" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1"/>
    <mesh name="m" vertex="0 0 0 .2 0 0 0 .2 0 0 0 .2"/></asset>
  <worldbody><body name="left/base"><geom type="mesh" mesh="m"/>
    <body name="left/a" pos="0 0 0.1"><joint name="left/j" axis="0 0 1" range="-1.5 1.5" limited="true"/>
      <geom size="0.02"/>
      <body name="tip" pos="0 0 0.1"><geom size="0.02"/></body>
      <body name="l" pos="0 0.01 0.1"><joint name="fl" type="slide" axis="0 1 0" range="0 0.04" limited="true"/>
        <geom size="0.01"/></body>
      <body name="r" pos="0 -0.01 0.1"><joint name="fr" type="slide" axis="0 -1 0" range="0 0.04" limited="true"/>
        <geom size="0.01"/></body></body></body>
    <body name="box" pos="1 0 0"><freejoint/><geom size="0.1"/></body>
  </worldbody></mujoco>"""
HAND = """<mujoco><worldbody><body name="palm"><geom size="0.02"/>
  <body name="l" pos="0 0.01 0.1"><joint name="fl" type="slide" axis="0 1 0" range="0 0.04" limited="true"/>
    <geom size="0.01"/></body>
  <body name="r" pos="0 -0.01 0.1"><joint name="fr" type="slide" axis="0 -1 0" range="0 0.04" limited="true"/>
    <geom size="0.01"/></body></body></worldbody></mujoco>"""
FILE = """name: mine
wheel: other-arms==1.0
urdf: other_arms/assets/arm.xml
angles: radian
part: left_base
without: [tip]
arm: {joints: [left_j], home: [0.3]}
tool: {link: left_a, position: [0, 0, 0.1]}
gripper: {joints: [fl, fr], links: [left_a, l, r], fingers: [l, r], open: 0.04, closed: 0.0, effort_limit: 15,
  stiffness: 1500, damping: 40, pad_width: 0.02, pad_height: 0.02, finger_thickness: 0.01, finger_depth: 0.05}
"""


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of wheels; a robot file ``mine.yaml`` is beside the cache."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine.yaml").write_text(FILE)
    (tmp_path / "cache" / "wheels").mkdir(parents=True)
    return tmp_path / "cache" / "wheels"


def make(wheels: Path, *members: str) -> str:
    """Write a wheel with the model and other members, and return the path of the robot file."""
    with zipfile.ZipFile(wheels / "other_arms-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("other_arms/assets/arm.xml", MODEL)
        archive.writestr("other_arms/assets/hand.xml", HAND)
        for name in members:
            archive.writestr(name, "")
    return str(wheels.parents[1] / "mine.yaml")


def links(robot: Robot) -> set[str]:
    from nimbus.datagen.robots.urdf import assemble

    return {link.get("name", "") for link in assemble(robot.pieces, robot=robot.name).findall("link")}


def test_a_part_of_a_model_in_a_wheel_becomes_a_robot(wheels: Path):
    """Slashes in names become underscores. If two assets have the same name, the first one is used."""
    robot = load_robot(make(wheels, "other_arms/__init__.py"))
    assert links(robot) == {"left_base", "left_a", "l", "r"}
    assert not list(wheels.glob("*/*/__init__.py"))


def test_a_hand_has_a_model_of_its_own(wheels: Path):
    path = Path(make(wheels))
    hand = "{wheel: other-arms==1.0, urdf: other_arms/assets/hand.xml, part: palm, mount: left_a, turn: 45 deg}"
    text = FILE.replace("[tip]", "[tip, l, r]").replace("arm: {", f"hand: {hand}\narm: {{")
    path.write_text(text.replace("link: left_a", "link: palm").replace("links: [left_a", "links: [palm"))
    robot = load_robot(str(path))
    assert links(robot) == {"left_base", "left_a", "palm", "l", "r"}
    assert robot.tool.link == "palm" and robot.pieces[1].mount == "left_a"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "==1.0",
            "==2.0",
            "wheel: the wheel other-arms==2.0 is not on this machine; download it with 'nimbus robot fetch",
        ),
        ("==1.0", "", "wheel: "),
        ("==1.0", "==1.0.tar.gz", "wheel: expected the name and version of a wheel, such as gym-aloha==0.1.5"),
        ("==1.0", "==1.0+a.zip", "wheel: expected the name and version of a wheel"),
        ("assets/arm.xml", "assets/leg.xml", "the wheel other-arms==1.0 has no file 'other_arms/assets/leg.xml'"),
        ("other_arms/assets", "../assets", "'../assets/arm.xml' is not a path in a wheel"),
        ("part: left_base", "part: left_bas", "part: its URDF has no link 'left_bas'; did you mean 'left_base'"),
        ("[tip]", "[tup]", "without: its URDF has no link 'tup'"),
        ("wheel:", "package: numpy\nwheel:", "give either 'package' or 'wheel'"),
    ],
)
def test_a_wheel_that_does_not_do_is_one_line(wheels: Path, old: str, new: str, said: str):
    path = Path(make(wheels))
    path.write_text(FILE.replace(old, new))
    assert said in refusal(load_robot, str(path))


def test_a_member_outside_of_the_folder_is_refused(wheels: Path):
    path = make(wheels, "other_arms/assets/../../../evil.stl")
    assert "leads out of the archive" in refusal(load_robot, path)
    assert not list(wheels.parent.rglob("evil.stl"))


def test_a_damaged_wheel_is_one_line(wheels: Path):
    path = make(wheels)
    (wheels / "other_arms-1.0-py3-none-any.whl").write_bytes(b"PK broken")
    assert "cannot be unpacked" in refusal(load_robot, path)


def test_fetch_names_wheels_that_are_there(wheels: Path, capsys: pytest.CaptureFixture[str]):
    path = make(wheels)
    assert list(list_wheels(path)) == ["other-arms==1.0"] and list(list_wheels("panda")) == []
    assert main(["robot", "fetch", path]) == 0
    assert capsys.readouterr().out == f"other-arms==1.0  {wheels / 'other_arms-1.0-py3-none-any.whl'}\n"


def test_a_file_of_the_current_folder_is_no_wheel(wheels: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """pip would build an archive of this name, which runs the archive's code."""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    backend = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    with tarfile.open(tmp_path / "arm==1.0.tar.gz", "w:gz") as archive:
        for name, text in {"arm-1.0/pyproject.toml": project, "arm-1.0/backend.py": backend}.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert "pip cannot download" in refusal(download_wheel, "arm==1.0.tar.gz", where="mine.yaml")
    assert not (tmp_path / "ran").exists()


def test_a_longer_version_is_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("nimbus.datagen.robots.wheels.cache_folder", lambda name: tmp_path)
    (tmp_path / "gym_aloha-0.1.5-py3-none-any.whl").touch()
    assert find_wheel("gym-aloha==0.1.5") is not None
    assert find_wheel("gym-aloha==0.1") is None
