"""Robot files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.doctor.cameras import still_pose
from nimbus.datagen.episode.layout import Camera
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_folder, scene_names
from nimbus.datagen.geometry.cameras import is_in_picture, project
from nimbus.datagen.robots import robot_file
from nimbus.datagen.robots.robot import Piece, load_robot
from nimbus.datagen.robots.urdf import assemble, model_path, range_of
from nimbus.datagen.tasks.task import load_task
from tests.support.refusals import refusal
from tests.support.shipped_robots import load_shipped_robot

PANDA = (scene_folder("robots") / "panda.yaml").read_text()


@pytest.fixture
def load(tmp_path: Path):
    """Load a changed robot file."""

    def changed(old: str, new: str):
        assert PANDA.count(old) == 1
        path = tmp_path / "mine.yaml"
        path.write_text(PANDA.replace(old, new))
        return load_robot(str(path))

    return changed


def test_the_panda_is_known_by_name():
    panda = load_robot("panda")
    assert panda.name == "panda"
    assert len(panda.arm.joints) == len(panda.arm.home) == 7
    assert panda.gripper.shape.opening == pytest.approx(0.08)


def test_home_is_within_the_limits_of_the_model():
    from nimbus.datagen.robots.urdf import package_folder

    panda = load_robot("panda")
    from xml.etree import ElementTree

    root = ElementTree.parse(package_folder(panda.pieces[0].package) / panda.pieces[0].urdf).getroot()
    limits = {joint.get("name"): joint.find("limit") for joint in root.findall("joint")}
    for joint, home, speed, effort in zip(
        panda.arm.joints, panda.arm.home, panda.arm.velocity_limits, panda.arm.effort_limits, strict=True
    ):
        limit = limits[joint]
        assert limit is not None
        assert float(limit.attrib["lower"]) < home < float(limit.attrib["upper"])
        assert speed <= float(limit.attrib["velocity"]) and effort <= float(limit.attrib["effort"])


@pytest.mark.parametrize("name", scene_names("robots"))
def test_a_drawn_start_is_within_the_limits_of_plans(name: str):
    """Plans keep 0.02 rad from limits and cannot begin beyond that; the level medium draws up to 5 degrees."""
    robot = load_shipped_robot(name)
    ranges = {joint.get("name"): range_of(joint) for joint in assemble(robot.pieces, robot=name).findall("joint")}
    for arm in robot.arms:
        for joint, home in zip(arm.arm.joints, arm.arm.home, strict=True):
            low, high = ranges[joint] or (-np.inf, np.inf)
            assert low + 0.02 + np.radians(5) <= home <= high - 0.02 - np.radians(5), joint


@given(st.sampled_from(["hand", "panda_hand", ""]))
def test_a_camera_on_the_hand_is_on_the_link_of_the_tool(mount: str):
    camera = Camera(name="c", mount=mount, position=(0, 0, 0), wxyz=(1, 0, 0, 0), vertical_fov=1, width=8, height=8)
    mounted = load_robot("panda").mounted(camera)
    assert mounted.mount == ("panda_hand" if mount else "")
    assert np.array_equal(mounted.wxyz, camera.wxyz)


@pytest.mark.parametrize("name", scene_names("robots"))
def test_the_camera_on_a_hand_sees_between_the_fingers(name: str):
    robot, settings = load_shipped_robot(name), load_task("near_block").cameras["wrist"]
    for arm in robot.arms:
        camera = robot.with_arm(arm.name).mounted(settings.camera("wrist"))
        seen = project(camera, still_pose(camera), np.array([arm.tool.position]))
        assert camera.mount == arm.tool.link and is_in_picture(camera, seen)


def test_links_for_cameras_are_the_tools_and_the_listed_ones(load):
    assert load("name: panda", "name: panda\ncameras: [panda_link0]").camera_links == ("panda_hand", "panda_link0")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("home: [0.0, ", "home: [", "home has 6 entries for 7 joints"),
        ("effort_limit: 15.0", "effort_limit: 0", "effort_limit: "),
        ("armature: 0.2", "armature: -1", "armature: "),
        ("  open: 0.04", "  opened: 0.04", "opened"),
        ("  link: panda_hand\n", "", "link"),
        ("package: example-robot-data\n", "", "urdf"),
        ("package: example-robot-data\n", "package: arm; rm -r x\n", "package: "),
    ],
)
def test_a_mistake_in_a_robot_file_is_one_line_with_its_place(old: str, new: str, said: str, load):
    told = refusal(load, old, new)
    assert said in told and "mine.yaml:" in told


def test_an_unknown_robot_is_answered_with_the_known_ones():
    told = refusal(load_robot, "pand", where="task.yaml:1:8: robot")
    assert told.startswith("task.yaml:1:8: robot: unknown robot 'pand'; did you mean 'panda'? known: ")


@pytest.mark.parametrize("name", ["../../mine", "/etc/mine", "a/b", "..", ".hidden", "", "a b", "x" * 65, '"a\\nb"'])
def test_robot_name_is_no_path(load, name: str):
    """The converted model is kept in a folder with the robot's name."""
    with pytest.raises(InputError, match="name"):
        load("name: panda", f"name: {name or repr('')}")


@pytest.mark.parametrize("robot", scene_names("robots"))
def test_shipped_robots_have_such_names(robot: str):
    assert load_shipped_robot(robot).name == robot


def test_a_model_name_of_any_length_is_one_line() -> None:
    with pytest.raises(InputError, match="no such file: xxx"):
        model_path(Piece(urdf="x" * 5000), robot="arm")


def test_links_are_cut_as_in_the_file_of_the_borrowed_arm_or_hand(tmp_path: Path):
    pair = tmp_path / "pair.yaml"
    pair.write_text("name: pair\narms: {left: {of: z1}, right: {of: z1, place: {position: [0, 1, 0]}}}\n")
    ur5 = (scene_folder("robots") / "ur5.yaml").read_text()
    assert load_robot(str(pair)).decompose == tuple(
        f"{arm}_{link}" for arm in ("left", "right") for link in ("gripperStator", "gripperMover")
    )
    other = tmp_path / "other.yaml"
    other.write_text(ur5.replace("name: ur5", "name: other").replace("of: panda", "of: z1"))
    assert load_robot(str(other)).decompose == ("gripperStator", "gripperMover")


def test_arms_and_the_links_of_all_models_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def arms(count: int) -> str:
        places = "".join(f"  a{n}: {{of: z1, place: {{position: [0, {n}, 0]}}}}\n" for n in range(count))
        (tmp_path / "many.yaml").write_text(f"name: many\narms:\n{places}")
        return str(tmp_path / "many.yaml")

    with pytest.raises(InputError, match="arms: .*at most 16"):
        load_robot(arms(17))
    monkeypatch.setattr(robot_file, "MOST_LINKS", 12)
    with pytest.raises(InputError, match=r"\d+ links of all its models; the limit is 12"):
        load_robot(arms(2))
