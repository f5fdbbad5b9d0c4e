"""The default simulator: home posture, rest, tracking of references, and repeatability."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.planner import settle
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import STEP_RATE, NewtonSimulation
from nimbus.datagen.usd.stage import read_stage
from tests.support.one_can import home_action, layout, put, simulation, thing

NEAR, ASIDE = thing(x=0.36, y=0.12), thing("items_1", kind="pear", x=0.62, y=-0.18)


def advance(made: NewtonSimulation, actions: np.ndarray) -> np.ndarray:
    """Return the positions (T, nq) after each action."""
    rows = []
    for action in actions:
        made.advance(action)
        rows.append(made.data.qpos.copy())
    return np.array(rows)


def swing(made: NewtonSimulation, *, count: int = 45) -> np.ndarray:
    """Return smooth commands (T, 8) of all joints, up to about 1 rad/s."""
    phase = np.linspace(0, 2 * np.pi, count)[:, None]
    actions = np.tile(home_action(made), (count, 1))
    actions[:, :7] += 0.4 * np.sin(phase) * np.sin(phase / 2) * [1, -0.5, 1, 0.5, -1, 1, 1]
    return actions


def sweep(made: NewtonSimulation) -> np.ndarray:
    """Return commands (T, 8) that lower the hand beside the near can and push it over."""
    actions = np.tile(home_action(made), (40, 1))
    actions[:20, :7] += np.linspace(0, 1, 20)[:, None] * [0, 1.1, 0, -0.15, 0, 0.1, 0]
    actions[20:, :7] = actions[19, :7]
    actions[20:, 0] += np.linspace(0, 0.5, 20)
    return actions


@pytest.fixture(scope="module")
def settled() -> NewtonSimulation:
    """Return a simulation of a can and a pear at rest, for reading only."""
    made = simulation(NEAR, ASIDE)
    settle(made)
    return made


def test_joints_start_at_home_with_the_fingers_open():
    made = simulation(NEAR)
    assert made.joint_names == (*made.robot.arm.joints, *made.robot.gripper.joints)
    home = [*made.robot.arm.home, made.robot.gripper.open, made.robot.gripper.open]
    assert np.allclose(made.joint_positions(), home, atol=1e-6)
    assert np.all(made.joint_velocities() == 0)
    assert np.array_equal(made.reference, made.joint_positions())


def test_bodies_are_the_fixtures_the_robots_links_and_the_objects(settled: NewtonSimulation):
    names = settled.body_names
    assert names[:3] == tuple(settled.stage.fixtures)
    assert names[-2:] == settled.object_names == ("items_0", "items_1")
    assert set(settled.robot.gripper.links) <= set(names[3:-2])
    assert len(set(names)) == len(names)
    assert settled.action_names == (*settled.robot.arm.joints, "gripper")


def test_poses_are_those_of_the_layout(settled: NewtonSimulation):
    made = simulation(NEAR, ASIDE)
    for item in (NEAR, ASIDE):
        row = made.body_names.index(item.name)
        assert np.allclose(made.body_positions()[row], item.position, atol=1e-6)
        assert abs(np.dot(made.body_wxyz()[row], item.wxyz)) == pytest.approx(1, abs=1e-6)
        assert np.allclose(made.body_pose(item.name)[:3, 3], item.position, atol=1e-6)
    for name, fixture in made.stage.fixtures.items():
        assert np.allclose(made.body_positions()[made.body_names.index(name)], fixture.position, atol=1e-6)


def test_bodies_have_the_mass_and_friction_of_the_layout():
    heavy = replace(NEAR, mass=0.3, friction=0.35)
    made = simulation(heavy)
    body = made.model.body("items_0")
    assert body.mass[0] == pytest.approx(0.3)
    light = simulation(NEAR).model.body("items_0")
    assert np.allclose(body.inertia / light.inertia, 0.3 / NEAR.mass, rtol=1e-4)


def test_what_slides_comes_to_rest_sooner_the_higher_its_friction_is():
    sponge = thing(kind="sponge", x=0.36, y=0.12)
    travels = []
    for factor in (0.25, 0.5, 1.0):
        made = simulation(replace(sponge, friction=sponge.friction * factor))
        settle(made)
        start = made.body_pose("items_0")[:3, 3]
        joint = made.model.body("items_0").jntadr[0]
        made.data.qvel[made.model.jnt_dofadr[joint]] = 0.4
        advance(made, np.tile(home_action(made), (10, 1)))
        travels.append(float(np.linalg.norm((made.body_pose("items_0")[:3, 3] - start)[:2])))
    # Distance v² / 2 µ g: µ is 1 for the fingers, the table, and an object without a drawn friction.
    assert travels == pytest.approx([0.4**2 / (2 * 9.81 * mu) for mu in (0.25, 0.5, 1.0)], rel=0.25)


def test_objects_rest_and_do_not_creep(settled: NewtonSimulation):
    made = simulation(NEAR, ASIDE)
    made.restore(settled.state())
    rows = []
    for _ in range(30):
        made.advance(home_action(made))
        rows.append(made.body_positions()[-2:])
        assert max(made.body_speed("items_0")[0], made.body_speed("items_1")[0]) < 2e-3  # a can vibrates in place
    speeds = np.linalg.norm(np.diff(rows, axis=0), axis=2) * made.rate
    assert speeds.max() < 1e-4
    assert np.linalg.norm(rows[-1] - rows[0], axis=1).max() < 2e-5


def test_objects_lie_on_the_table_and_not_in_it(settled: NewtonSimulation):
    contact = settled.data.contact
    assert len(contact.dist) and np.min(contact.dist) > -2e-4
    for item in (NEAR, ASIDE):
        sunk = item.position[2] - settled.body_pose(item.name)[2, 3]
        assert 0 <= sunk < 0.002


def test_gravity_is_compensated():
    made = simulation()
    action = home_action(made)
    action[:7] = [0.4, 0.5, -0.3, -1.6, 0.2, 2.0, 0.5]  # stretched out
    made.data.qpos[made.qpos_index[:7]] = action[:7]
    mujoco.mj_forward(made.model, made.data)
    made.restart_controller()
    rows = advance(made, np.tile(action, (30, 1)))
    assert np.abs(rows[:, made.qpos_index[:7]] - action[:7]).max() < 1e-3


def test_a_smooth_motion_is_tracked():
    made = simulation()
    actions, lag, speed = swing(made), [], []
    for action in actions:
        made.advance(action)
        lag.append(np.abs(made.joint_positions() - made.reference).max())
        speed.append(np.abs(made.joint_velocities()).max())
    assert max(speed) > 0.5
    assert max(lag) < 0.03


def test_the_reference_is_a_uniform_quadratic_b_spline_of_the_commands():
    made = simulation()
    actions, ends = swing(made), []
    for action in actions:
        made.advance(action)
        ends.append(made.reference[:7].copy())
    commands = np.concatenate([np.tile(home_action(made)[:7], (1, 1)), actions[:, :7]])
    assert np.allclose(ends, (commands[:-1] + commands[1:]) / 2, atol=1e-7)


def test_the_fingers_move_together_when_one_is_pushed():
    made = simulation()
    action = home_action(made)
    action[-1] = 0.02
    gaps = []
    for _ in range(15):
        made.data.qfrc_applied[made.dof_index[-1]] = 10.0
        made.advance(action)
        left, right = made.joint_positions()[-2:]
        gaps.append(abs(left - right))
    assert max(gaps) < 2e-4
    assert abs(np.mean(made.joint_positions()[-2:]) - 0.02) > 1e-3  # the push was felt


def test_a_can_that_is_pushed_falls_and_the_one_aside_stays(settled: NewtonSimulation):
    made = simulation(NEAR, ASIDE)
    made.restore(settled.state())
    advance(made, sweep(made))
    assert np.linalg.norm(made.body_pose("items_0")[:3, 3] - settled.body_pose("items_0")[:3, 3]) > 0.03
    assert np.linalg.norm(made.body_pose("items_1")[:3, 3] - settled.body_pose("items_1")[:3, 3]) < 1e-5


def test_a_restored_start_and_the_same_actions_give_the_same_states_to_the_last_bit(settled: NewtonSimulation):
    first, start = simulation(NEAR, ASIDE), settled.state()
    first.restore(start)
    rows = advance(first, sweep(first))
    # The same again, in a simulation in which other objects have moved, and in a new simulation.
    advance(first, swing(first))
    put(first, "items_1", (0.4, -0.3, 0.3))
    advance(first, swing(first, count=5))
    for again in (first, simulation(NEAR, ASIDE)):
        again.restore(start)
        assert np.array_equal(advance(again, sweep(again)), rows)


def test_objects_that_lie_still_sleep_until_they_are_touched(settled: NewtonSimulation):
    made = simulation(NEAR, ASIDE)
    made.restore(settled.state())
    pear = int(made.model.body_treeid[made.model.body("items_1").id])
    advance(made, np.tile(home_action(made), (4, 1)))
    assert made.data.tree_asleep[pear] >= 0
    put(made, "items_0", made.body_pose("items_1")[:3, 3] + (0.01, 0, 0.2))
    awake = []
    for _ in range(6):
        made.advance(home_action(made))
        awake.append(bool(made.data.tree_asleep[pear] < 0))
    assert not awake[0] and any(awake)
    assert not np.array_equal(made.body_pose("items_1"), settled.body_pose("items_1"))


def test_loading_again_starts_anew():
    made = simulation(NEAR)
    fresh = made.state()
    advance(made, sweep(made))
    made.load(layout(ASIDE, NEAR))
    assert made.object_names == ("items_1", "items_0")
    made.load(layout(NEAR))
    assert np.array_equal(made.state().joint_positions, fresh.joint_positions)
    assert np.all(made.state().joint_velocities == 0)


def test_numbers_that_are_not_finite_are_noticed():
    made = simulation(NEAR)
    made.advance(home_action(made))
    assert made.is_stable
    made.data.qvel[0] = np.nan
    made.advance(home_action(made))
    assert not made.is_stable
    made.load(layout(NEAR))
    assert made.is_stable


@pytest.mark.parametrize("rate", [15, 30, 60, 120, 12.5])
def test_rates_that_divide_the_steps_are_taken(rate: float):
    made = NewtonSimulation(read_stage("tabletop"), load_robot("panda"), rate=rate)
    assert made.steps_per_period * rate == STEP_RATE


@pytest.mark.parametrize("rate", [7, 14.3, 2401, 0.01])
def test_a_rate_that_does_not_divide_the_steps_is_refused(rate: float):
    with pytest.raises(InputError, match=f"{rate:g} Hz does not divide"):
        NewtonSimulation(read_stage("tabletop"), load_robot("panda"), rate=rate)


def test_time_passes_at_the_record_rate():
    made = simulation(rate=30)
    advance(made, np.tile(home_action(made), (15, 1)))
    assert made.data.time == pytest.approx(0.5)


def test_a_start_of_another_layout_is_refused():
    made = simulation(NEAR)
    state = made.state()
    with pytest.raises(InputError, match="positions and velocities; its layout has"):
        made.restore(replace(state, joint_positions=state.joint_positions[:-1]))
