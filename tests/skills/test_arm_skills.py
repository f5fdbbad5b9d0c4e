"""Skills that move only the arm and the fingers."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from nimbus.datagen.episode.trajectory import Outcome
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.skills.go_to_joints import GoToJoints
from nimbus.skills.go_to_pose import GoToPose
from nimbus.skills.gripper import SetGripper
from nimbus.skills.pick import Pick
from nimbus.skills.place import Place
from nimbus.skills.push import Push
from nimbus.skills.shake import Shake
from nimbus.skills.wait import Wait
from tests.support.one_can import make, thing, workcell


@pytest.fixture(scope="module")
def cell() -> SimulatedWorkcell:
    """Return a shared cell with a can on the table; each test begins with the arm's last posture."""
    return workcell(thing())


def rows(cell: SimulatedWorkcell) -> int:
    return len(cell.finish(Outcome(success=True)).time)


def test_wait_takes_the_time_that_is_asked_for(cell: SimulatedWorkcell):
    before = rows(cell)
    make(Wait, time=0.4).run(cell)
    assert rows(cell) - before == round(0.4 * cell.simulation.rate)


@pytest.mark.parametrize(("to", "width"), [("closed", 0.0), (0.03, 0.03), ("open", 0.08)])
def test_the_gripper_comes_to_the_distance_that_is_asked_for(cell: SimulatedWorkcell, to: object, width: float):
    make(SetGripper, to=to).run(cell)
    cell.wait(6)
    assert cell.simulation.joint_positions()[-2:].sum() == pytest.approx(width, abs=2e-3)


def test_go_to_joints_ends_in_the_posture(cell: SimulatedWorkcell):
    posture = (0.3, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8)
    make(GoToJoints, posture=posture).run(cell)
    cell.wait(4)
    assert np.abs(cell.simulation.joint_positions()[:7] - posture).max() < 2e-3


def test_go_to_joints_refuses_a_posture_of_another_arm(cell: SimulatedWorkcell):
    with pytest.raises(SkillFailure, match="6 joint values for an arm of 7"):
        make(GoToJoints, posture=(0.0,) * 6).run(cell)


def test_go_to_pose_brings_the_tool_to_a_place_in_the_frame_of_a_thing(cell: SimulatedWorkcell):
    make(GoToPose, position=(0.0, 0.0, 0.2), of="items_0").run(cell)
    cell.wait(4)
    above = np.linalg.inv(cell.pose("items_0")) @ cell.tool_pose()
    np.testing.assert_allclose(above[:3, 3], (0.0, 0.0, 0.2), atol=2e-3)
    np.testing.assert_allclose(above[:3, 2], (0.0, 0.0, -1.0), atol=5e-3)


def test_shake_comes_back_to_where_it_began_with_the_object_in_the_hand():
    cell = workcell(thing())
    make(Pick, object="items_0").run(cell)
    start = cell.tool_pose()
    make(Shake, object="items_0", times=2).run(cell)
    cell.wait(3)
    np.testing.assert_allclose(cell.tool_pose()[:3, 3], start[:3, 3], atol=2e-3)
    record = cell.finish(Outcome(success=True))
    way = record.body_positions[:, record.body_names.index("items_0"), 1]
    assert np.ptp(way) > 0.09 and cell.held == "items_0"


@pytest.mark.parametrize(
    ("skill", "parameters"),
    [
        (Place, {}),
        (Place, {"into": "bin", "on": "table"}),
        (Place, {"on": "table", "side": "left"}),
        (Push, {}),
        (Push, {"to": "goal", "direction": "left", "by": 0.1}),
        (Push, {"direction": "left"}),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(skill: type, parameters: dict[str, object]):
    with pytest.raises(ValidationError):
        skill(object="items_0", **parameters)
