"""Check of a plan directly before its execution."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.plan.verify import first_collision
from tests.support.panda_table import HOME, top_down


def posture(scene: PlanningScene, x: float, y: float, z: float) -> np.ndarray:
    q = scene.arm.solve(top_down(x, y, z), HOME)
    assert q is not None
    return q


def lift_of_the_can(scene: PlanningScene, *, sunk: float, height: float = 0.1) -> np.ndarray:
    """Return a motion (2, J) upwards from a posture in which the held can is ``sunk`` into the table [m]."""
    x, y, z = scene.body_pose("can")[:3, 3]
    tool_T_can = np.linalg.inv(top_down(x, y, z)) @ scene.body_pose("can")
    scene.hold("can", tool_T_can)
    return np.array([posture(scene, x, y, z - sunk), posture(scene, x, y, z + height)])


def test_a_plan_in_the_air_collides_with_nothing(scene: PlanningScene) -> None:
    assert first_collision(scene, np.array([HOME, HOME + 0.1])) is None
    assert scene.margin == 0.004


def test_what_a_plan_hits_on_its_way_is_named_with_depth_and_row(scene: PlanningScene) -> None:
    x, y, z = scene.body_pose("carton")[:3, 3]
    through = np.array([posture(scene, x, y + 0.02, z + height) for height in (0.2, 0.15, 0.0)])
    hit = first_collision(scene, through)
    assert hit is not None and "carton" in hit.bodies
    assert 1.0 < hit.row < 2.0 and 0.0 < hit.depth < 0.01
    assert "carton" in str(hit) and f"row {hit.row:.1f}" in str(hit)


def test_a_hit_between_two_rows_is_found(scene: PlanningScene) -> None:
    x, y, z = scene.body_pose("carton")[:3, 3]
    ends = np.array([posture(scene, x + dx, y, z + 0.02) for dx in (-0.15, 0.15)])
    assert not any(map(scene.touches, ends))
    assert first_collision(scene, ends) is not None


@pytest.mark.parametrize(("sunk", "collides"), [(0.0, False), (0.001, False), (0.003, True)])
def test_what_rests_on_the_table_may_be_lifted_unless_it_is_deep_inside(
    scene: PlanningScene, sunk: float, collides: bool
) -> None:
    hit = first_collision(scene, lift_of_the_can(scene, sunk=sunk))
    assert (hit is not None) == collides
    if hit:
        assert hit.row == 0.0 and hit.depth == pytest.approx(0.003, abs=4e-4)


def test_what_touches_at_the_start_may_touch_no_deeper_afterwards(scene: PlanningScene) -> None:
    hit = first_collision(scene, lift_of_the_can(scene, sunk=0.0005, height=-0.0015))
    assert hit is not None and set(hit.bodies) == {"world", "can"} and 0.0 < hit.row <= 1.0


def test_what_does_not_touch_at_the_start_may_not_touch_at_the_end(scene: PlanningScene) -> None:
    hit = first_collision(scene, lift_of_the_can(scene, sunk=0.0005)[::-1])
    assert hit is not None and hit.row > 0.5 and hit.depth < 0.001
