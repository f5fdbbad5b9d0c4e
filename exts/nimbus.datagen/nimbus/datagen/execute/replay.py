"""A stored trajectory's actions, run in physics again."""

from __future__ import annotations

from functools import partial

from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.trajectory import Outcome, Trajectory
from nimbus.datagen.execute.interpreter import performer
from nimbus.datagen.execute.planner import evaluate_success, make_motion_planner
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.random_streams import generator
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.usd.stage import read_stage


def replay_actions(task: Task, layout: PhysicalLayout, stored: Trajectory) -> Trajectory:
    """Execute stored actions open loop from the stored start, and judge the end as the task does.

    Args:
        task: The task that the trajectory was made for.
        layout: Its physical layout.
        stored: The trajectory; its actions and its start state are used.
    """
    simulation = NewtonSimulation(read_stage(task.scene), load_robot(task.robot), rate=stored.rate)
    simulation.load(layout)
    simulation.restore(stored.start)
    planner = make_motion_planner("ompl", simulation.robot, rate=stored.rate)
    cell = SimulatedWorkcell(simulation, planner, layout, streams=partial(generator, 0), regions=task.regions)
    try:
        for action in stored.actions:
            cell.repeat(action)
    except SkillFailure as failure:
        return cell.finish(Outcome(success=False, reason=failure.reason, detail=failure.detail))
    return cell.finish(evaluate_success(task, performer(task, cell, layout), patience=0))
