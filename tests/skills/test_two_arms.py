"""Joint skills of two arms, in physics."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.load.scene_loader import UsdSceneLoader, load_assets
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import TabletopRandomizer
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.stages import Chain, Request
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.task import load_task
from nimbus.runner.checks.replay import replay_actions

discover_components()


@pytest.mark.parametrize("name", ["handover_block", "lift_tray_together", "hold_and_stack"])
def test_two_arms_do_their_task_and_do_it_again_from_their_actions(name: str):
    task = load_task(name)
    assets = load_assets(task)
    with Chain([UsdSceneLoader(task, assets), TabletopRandomizer(task, 0)]) as chain:
        (drawn,) = chain.run(iter([Request(index=0)]))
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    layout = drawn.layouts[0].physical
    done = run_attempt(task, simulation, layout, streams=partial(generator, 0, 0, "attempt", 0), planner="ompl")
    assert done.outcome.success, done.outcome
    assert done.action_names[7::8] == ("left_gripper", "right_gripper") and done.actions.shape[1] == 16
    moved = np.ptp(done.joint_positions, axis=0)
    assert moved[:7].max() > 0.2 and moved[9:16].max() > 0.2
    again = replay_actions(task, layout, done)
    assert again.outcome == done.outcome
    assert np.array_equal(again.body_positions, done.body_positions)


def test_an_arm_alone_leaves_the_other_where_it_is():
    robot = load_robot("dual_panda")
    assert robot.arm_names == ("left", "right") and len(robot.joint_names) == 18
    assert robot.with_arm("right").arm.joints[0] == "right_panda_joint1"
    task = load_task("handover_block")
    simulation = NewtonSimulation(load_assets(task).stage, robot, rate=15)
    simulation.load(PhysicalLayout(objects=()))
    action = np.array(robot.home_action)
    action[0] += 0.05
    for _ in range(10):
        simulation.advance(action)
    off = np.abs(simulation.joint_positions() - robot.home_joints)
    assert off[0] == pytest.approx(0.05, abs=2e-3) and off[9:].max() < 2e-3
