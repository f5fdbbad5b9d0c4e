"""Skills in physics: the effect of each, and its reasons for failure."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.toolkit import contains, releases_inside, room_inside
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.plan.grasp import Grasp
from nimbus.datagen.tasks.statements import Skill, SkillFailure
from nimbus.skills.home import Home
from nimbus.skills.move import Move
from nimbus.skills.pick import Pick
from nimbus.skills.place import Place
from nimbus.skills.push import Push
from nimbus.skills.shake import Shake
from tests.support.one_can import assets, make, thing, workcell

DONE = Outcome(success=True)


@pytest.fixture(scope="module")
def holding() -> tuple[SimulatedWorkcell, float]:
    """Return a cell with a can after a pick, and its rise [m], for reading only."""
    cell = workcell(thing(), thing("items_1", kind="pear", x=0.6, y=-0.2))
    make(Pick, object="items_0").run(cell)
    return cell, cell.pose("items_0")[2, 3] - cell.start_poses["items_0"][2, 3]


def tool_error(cell: SimulatedWorkcell, to: tuple[float, float, float]) -> tuple[float, float]:
    """Measure the distance of the tool from a point [m], and its angle from pointing down [rad]."""
    cell.wait(4)
    tool = cell.tool_pose()
    return float(np.linalg.norm(tool[:3, 3] - to)), math.acos(min(1.0, -tool[2, 2]))


def test_pick_lifts_the_object_and_nothing_else(holding: tuple[SimulatedWorkcell, float]):
    cell, lifted = holding
    assert cell.held == "items_0"
    assert lifted == pytest.approx(0.07, abs=0.005)
    assert cell.meter.touching("items_0", cell.robot.gripper.fingers)
    assert np.linalg.norm((cell.pose("items_1") - cell.start_poses["items_1"])[:3, 3]) < 1e-4


def test_pick_holds_the_object_as_it_stood(holding: tuple[SimulatedWorkcell, float]):
    cell, _ = holding
    turned = cell.start_poses["items_0"][:3, :3].T @ cell.pose("items_0")[:3, :3]
    assert math.acos(min(1.0, (np.trace(turned) - 1) / 2)) < math.radians(8)


def test_what_is_carried_goes_high_over_the_rim(holding: tuple[SimulatedWorkcell, float]) -> None:
    cell, _ = holding
    room, low, high = room_inside(cell, "recycling")
    above, release = next(releases_inside(cell, "items_0", room, low, high, drop=0.02))
    vertices = cell.model("items_0").vertices
    heights = [
        float((vertices @ pose[2, :3] + pose[2, 3]).min())
        for pose in (above @ cell.tool_T_held(), release @ cell.tool_T_held())
    ]
    rim = float(room[2, 3] + high[2])
    assert heights[0] == pytest.approx(rim + 0.05, abs=1e-3) and heights[1] < rim


def test_spread_draws_among_the_grasps_of_pick() -> None:
    cell = workcell(thing())
    firmest = [grasp.world_T_tool.tobytes() for grasp in cell.grasps("items_0", canonical=False)]
    one, other = ([grasp.world_T_tool.tobytes() for grasp in drawn_grasps(cell)] for _ in range(2))
    assert one != other and sorted(one) == sorted(other) == sorted(firmest)
    assert set(one[: math.ceil(0.3 * len(one))]) == set(firmest[: math.ceil(0.3 * len(one))])


def drawn_grasps(cell: SimulatedWorkcell) -> list[Grasp]:
    return make(Pick, object="items_0", spread=0.3)._grasps(cell)


def test_fingers_that_hold_something_stay_together(holding: tuple[SimulatedWorkcell, float]):
    cell, _ = holding
    left, right = cell.simulation.joint_positions()[-2:]
    assert abs(left - right) < 2e-4 and left > 0.02


def test_a_hand_that_was_pushed_away_while_its_fingers_closed_goes_on_from_where_it_is():
    cell = workcell(thing(x=0.6, y=-0.2))
    make(Move, to=(0.45, 0.2, 0.016)).run(cell)
    pressed = cell.planner.plan_line(cell.look(), cell.arm_command, cell.tool_pose())
    below = cell.tool_pose() @ make_transform((0, 0, 0.011), (1, 0, 0, 0))
    cell.command(cell.scene.arm.solve(below, pressed.end))
    cell.wait(4)
    pushed = cell.arm_command - cell.simulation.joint_positions()[:7]
    with pytest.raises(SkillFailure) as failure:  # the table is at the commanded position
        cell.follow(replace(pressed, positions=np.array([cell.arm_command, cell.arm_command])))
    assert not cell.close_on("items_0")
    assert np.abs(pushed).max() > 1e-3
    assert failure.value.reason == Reason.PLAN_REJECTED and "world" in failure.value.detail
    np.testing.assert_allclose(cell.arm_command, cell.simulation.joint_positions()[:7], atol=1e-12)
    up = cell.tool_pose()
    up[2, 3] += 0.05
    cell.follow(cell.planner.plan_line(cell.look(), cell.arm_command, up))
    depths = cell.finish(DONE).plan_statistics["recheck_depth"]
    assert len(depths) == 3 and depths[0] == depths[2] == 0.0 < depths[1]


def test_pick_lifts_as_high_as_it_is_told():
    cell = workcell(thing(kind="pear"))
    make(Pick, object="items_0", lift=0.12).run(cell)
    assert cell.pose("items_0")[2, 3] - cell.start_poses["items_0"][2, 3] == pytest.approx(0.12, abs=0.01)


def test_a_tin_let_go_gently_falls():
    cell = workcell(thing(kind="tin"))
    make(Pick, object="items_0", lift=0.15).run(cell)
    cell.wait(20)
    cell.open(room=0.01, steps=4)
    cell.wait(4)
    assert cell.pose("items_0")[2, 3] < 0.05


def test_pick_of_something_out_of_reach_is_no_grasp_and_says_what_was_tried():
    cell = workcell(thing(x=0.86, y=0.5))
    with pytest.raises(SkillFailure) as failure:
        make(Pick, object="items_0").run(cell)
    assert failure.value.reason == Reason.NO_GRASP
    assert any(character.isdigit() for character in failure.value.detail)


def test_pick_of_something_that_was_moved_out_of_reach_is_knocked_over():
    from tests.support.one_can import make, put

    cell = workcell(thing())
    put(cell.simulation, "items_0", (0.86, 0.5, 0.06))
    with pytest.raises(SkillFailure) as failure:
        make(Pick, object="items_0").run(cell)
    assert failure.value.reason == Reason.KNOCKED_OVER and "items_0 was moved by" in failure.value.detail


@pytest.mark.parametrize("into", ["organic", "recycling"])
def test_place_puts_the_object_into_the_fixture_that_is_named(into: str):
    cell = workcell(thing(kind="pear"))
    make(Pick, object="items_0").run(cell)
    make(Place, object="items_0", into=into).run(cell)
    cell.wait(5)
    assert [name for name in assets().stage.fixtures if contains(cell, name, "items_0")] == [into]
    assert cell.is_at_rest("items_0") and cell.held is None and cell.released == {"items_0"}
    assert cell.simulation.joint_positions()[-2:] == pytest.approx([0.04, 0.04], abs=2e-3)
    rim = cell.fixture(into).bounds[1][2]
    assert cell.tool_pose()[2, 3] > rim


@pytest.mark.parametrize(
    ("skill", "held", "expected"),
    [
        (make(Place, object="items_0", into="recycling"), None, (Reason.MISSED_GRASP, "items_0 is not in the gripper")),
        (make(Place, object="items_0", into="recycling"), "items_0", None),
        (make(Pick, object="items_0"), "items_1", (Reason.GRIPPER_NOT_CLEAR, "items_1 is still in the gripper")),
        (make(Push, object="items_0", direction="left", by=0.1), "items_1", (Reason.GRIPPER_NOT_CLEAR, "items_1 is")),
        (make(Shake, object="items_0"), None, (Reason.MISSED_GRASP, "items_0 is not in the gripper")),
        (make(Home), "items_1", None),
    ],
)
def test_skills_need_their_gripper_state(skill: Skill, held: str | None, expected: tuple[Reason, str] | None):
    cell = workcell(thing())
    cell.meter.held = held
    if expected is None:
        return skill.check_gripper(cell)
    with pytest.raises(SkillFailure) as failure:
        skill.check_gripper(cell)
    assert failure.value.reason == expected[0] and failure.value.detail.startswith(expected[1])


def test_home_ends_at_home():
    cell = workcell()
    make(Move, to=(0.5, 0.2, 0.3)).run(cell)
    cell.wait(2)
    away = cell.simulation.joint_positions()[:7]
    Home().run(cell)
    cell.wait(4)
    assert np.abs(away - cell.robot.arm.home).max() > 0.2
    assert np.abs(cell.simulation.joint_positions()[:7] - cell.robot.arm.home).max() < 2e-3


@pytest.mark.parametrize("to", [(0.5, 0.2, 0.3), (0.4, -0.3, 0.15)])
def test_move_brings_the_tool_to_the_point_pointing_down(to: tuple[float, float, float]):
    cell = workcell()
    make(Move, to=to).run(cell)
    distance, tilt = tool_error(cell, to)
    assert distance < 1e-3 and tilt < math.radians(0.5)


def test_move_turns_to_the_heading_that_is_given():
    cell = workcell()
    make(Move, to=(0.5, 0.1, 0.25), yaw=0.5).run(cell)
    distance, tilt = tool_error(cell, (0.5, 0.1, 0.25))
    assert distance < 1e-3 and tilt < math.radians(0.5)
    x, y, _ = cell.tool_pose()[:3, 0]
    assert math.atan2(y, x) == pytest.approx(0.5, abs=math.radians(0.5))


def test_a_straight_move_keeps_to_the_line_and_the_orientation():
    cell = workcell()
    make(Move, to=(0.5, 0.1, 0.3)).run(cell)
    cell.wait(4)
    start = cell.tool_pose()
    first_row = len(cell.finish(DONE).time)
    make(Move, to=(0.5, -0.1, 0.2), straight=True).run(cell)
    distance, tilt = tool_error(cell, (0.5, -0.1, 0.2))
    assert distance < 1e-3 and tilt < math.radians(0.5)
    record = cell.finish(DONE)
    hand = record.body_positions[first_row:, record.body_names.index(cell.robot.tool.link)]
    tip = hand - (0, 0, cell.robot.tool.position[2])
    along = np.array((0.5, -0.1, 0.2)) - start[:3, 3]
    along /= np.linalg.norm(along)
    off = (tip - start[:3, 3]) - np.outer((tip - start[:3, 3]) @ along, along)
    assert np.linalg.norm(off, axis=1).max() < 0.004


@pytest.mark.parametrize("straight", [False, True])
def test_move_out_of_reach_is_refused(straight: bool):
    cell = workcell()
    with pytest.raises(SkillFailure) as failure:
        make(Move, to=(1.5, 0.0, 0.3), straight=straight).run(cell)
    assert failure.value.reason in ((Reason.NO_IK, Reason.NO_PATH) if straight else (Reason.NO_IK,))
    assert len(cell.finish(DONE).time) == 0


def test_move_into_the_table_is_refused():
    cell = workcell()
    with pytest.raises(SkillFailure) as failure:
        make(Move, to=(0.5, 0.0, -0.02)).run(cell)
    assert failure.value.reason == Reason.NO_IK
