"""Skills that move parts of articulated objects, in physics."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.skills.close import Close
from nimbus.skills.open import Open
from nimbus.skills.press import Press
from nimbus.skills.turn import Turn
from tests.support.furniture import piece, workcell
from tests.support.one_can import make


def believable(cell: SimulatedWorkcell) -> bool:
    extremes = cell.contact_extremes()
    return extremes["held_penetration"] < 0.002 and extremes["table_penetration"] < 0.001


def test_open_pulls_a_drawer_out_and_lets_go() -> None:
    cell = workcell(piece("drawer_cabinet", x=0.7))
    assert cell.joint_fraction("thing_0") == pytest.approx(0.0, abs=1e-3)
    make(Open, object="thing_0", to=0.9).run(cell)
    assert cell.joint_fraction("thing_0") == pytest.approx(0.9, abs=0.05)
    assert cell.held is None and cell.opening == cell.robot.gripper.open
    assert not cell.meter.touched_by_gripper() and believable(cell)


def test_the_room_in_a_drawer_is_what_stands_out_of_the_case() -> None:
    cell = workcell(piece("drawer_cabinet", x=0.7, fractions={"drawer_0": 0.5}))
    frame, (low, high) = cell.cavity("thing_0")
    assert np.allclose(frame, cell.part_pose("thing_0", "drawer_0"))
    assert high[0] == pytest.approx(cell.joint_position("thing_0", "drawer_0"), abs=1e-4)
    assert np.all(high > low)


def test_close_pushes_a_door_shut() -> None:
    cell = workcell(piece("microwave", x=0.68, fractions={"door": 0.6}))
    make(Close, object="thing_0").run(cell)
    assert cell.joint_fraction("thing_0", "door") < 0.03
    assert believable(cell)


def test_turn_takes_a_handwheel_round() -> None:
    cell = workcell(piece("valve", x=0.5))
    make(Turn, object="thing_0", to=0.7).run(cell)
    assert cell.joint_fraction("thing_0") == pytest.approx(0.7, abs=0.05)
    assert believable(cell)


def test_press_goes_down_all_the_way_and_the_button_comes_back() -> None:
    cell = workcell(piece("button", x=0.5))
    make(Press, object="thing_0").run(cell)
    assert cell.largest_fraction("thing_0") > 0.95
    cell.wait(4)
    assert cell.joint_fraction("thing_0") < 0.1


def test_what_cannot_be_reached_is_said() -> None:
    cell = workcell(piece("button", x=1.4))
    with pytest.raises(SkillFailure) as failure:
        make(Press, object="thing_0").run(cell)
    assert failure.value.reason is Reason.NO_GRASP


def test_a_part_that_is_not_there_is_named() -> None:
    cell = workcell(piece("drawer_cabinet", x=0.7))
    with pytest.raises(SkillFailure, match="no part 'drawer_9'"):
        cell.part("thing_0", "drawer_9")
