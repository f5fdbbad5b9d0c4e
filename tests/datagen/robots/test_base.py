"""A driving base: its joints precede those of the arm, and plans and records contain them like any other joint."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.robots.robot import BASE_JOINTS, load_robot
from nimbus.datagen.robots.urdf import assemble, range_of
from tests.support.refusals import refusal

TIAGO = (scene_folder("robots") / "tiago_base.yaml").read_text()


def test_joints_of_the_base_come_first():
    robot = load_robot("tiago_base")
    assert robot.has_base and not load_robot("panda").has_base
    assert robot.action_names[:4] == (*BASE_JOINTS, "arm_left_1_joint")
    assert robot.home_action[:3] == (0.0, 0.0, 0.0)
    joints = {joint.get("name"): joint for joint in assemble(robot.pieces, robot="t").findall("joint")}
    assert range_of(joints["base_y"]) == (-0.8, 0.8) and robot.arm.acceleration_limits[0] == 1.0


def test_links_of_the_base_have_a_center_of_mass():
    """Without one, USD warned of each of them at every start."""
    model = assemble(load_robot("tiago_base").pieces, robot="t")
    links = {link.get("name"): link for link in model.findall("link")}
    for name in ("base_origin", "base_x_link", "base_y_link"):
        inertial = links[name].find("inertial")
        assert inertial is not None and inertial.find("origin") is not None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("x: [-0.3, 0.3]", "x: [0.1, 0.3]", "'x' must go from 0 or less to 0 or more"),
        ("arm:\n", "arm:\n  effort_limits: [1, 1, 1, 1, 1, 1, 1]\n", "leave out limits and gains of the arm"),
    ],
)
def test_a_base_that_does_not_do_is_one_line(old: str, new: str, said: str, tmp_path: Path):
    assert old in TIAGO
    (tmp_path / "mine.yaml").write_text(TIAGO.replace(old, new, 1))
    assert said in refusal(load_robot, str(tmp_path / "mine.yaml"))
