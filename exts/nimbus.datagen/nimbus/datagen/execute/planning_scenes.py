"""Planning scene of a simulation: obstacles of an arm in the simulator's own geometry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.plan.scene import PlanningScene

if TYPE_CHECKING:
    from nimbus.datagen.simulate.newton import NewtonSimulation


def planning_scene(simulation: NewtonSimulation, arm: str = "") -> PlanningScene:
    """Build the planning scene of a loaded simulation for one arm, the first by default; other arms are obstacles."""
    model = simulation.rigid_model
    robot = simulation.robot.with_arm(arm or simulation.robot.arm_names[0])
    foreign = set(simulation.robot.joint_names) - set(robot.joint_names)
    base = model.body_rootid[model.body(robot.tool.link).id]
    links = [
        model.body(index).name
        for index in range(1, model.nbody)
        if model.body_rootid[index] == base and foreign.isdisjoint(_moved_by(model, index))
    ]
    return PlanningScene(
        model,
        arm_joints=robot.arm.joints,
        tool_body=robot.tool.link,
        body_T_tool=make_transform(robot.tool.position, robot.tool.wxyz),
        robot_bodies=links,
        gripper_bodies=robot.gripper.links,
        home=robot.arm.home,
    )


def _moved_by(model: Any, body: int) -> Iterator[str]:
    """Yield the names of the joints between the world and a body."""
    while body:
        first = model.body_jntadr[body]
        yield from (model.joint(joint).name for joint in range(first, first + model.body_jntnum[body]))
        body = int(model.body_parentid[body])
