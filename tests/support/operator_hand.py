"""One hand of a scripted operator: it sends a target of the tool in each control period, as a person does.

It simulates smooth strokes at 0.1 to 0.2 m/s, trembling, lost periods, pauses, a clutch that is released after a long
stroke, imprecise grasps, and a button that closes or opens the gripper. Nothing is planned: the hand sees the scene and
steers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.articulation import JointedPart
from nimbus.datagen.execute.motions.grasps import grasp_axes
from nimbus.datagen.execute.observed_scene import ObservedScene
from nimbus.datagen.execute.toolkit import shift_pose
from nimbus.datagen.geometry.transforms import make_transform
from nimbus.datagen.plan.arm import ArmKinematics, arm_model
from nimbus.datagen.plan.grasp_ranking import rank_grasps
from nimbus.datagen.teleoperate.operator_input import OperatorInput, PoseTarget, ToolCommand
from nimbus.datagen.teleoperate.session import TeleoperationSession

_SPEED = (0.10, 0.20)
"""Range of the speed of a stroke [m/s]."""
_TURN_SPEED = 1.2
"""Speed of the hand's rotation [rad/s]."""
_TREMBLING, _TREMBLING_TURN = 0.0004, 0.003
"""Standard deviation of the trembling of a hand at rest [m, rad]: physiological tremor."""
_SWAY = 0.01
"""Deviation of a moving hand for each unit of its speed [s]: noise grows with speed (Harris and Wolpert 1998)."""
_LOST = 0.12
"""Fraction of the periods whose target is lost; the tool then keeps the previous target."""
_PAUSES = (0.15, 0.5)
"""Range of a pause [s]."""
_CLUTCH = 0.3
"""Length of a stroke after which the clutch is released [m]."""
_IMPRECISE = 0.003
"""Standard deviation of the place of a grasp along the fingers' flat side [m]."""
_FINGERS = 0.7
"""Time in which the fingers have closed or opened [s]."""
_STEEP = 0.35
"""Largest tilt of a hand that grasps an object from above [rad]."""

_GRASPS = 300
"""Number of grasps among which a person chooses."""
_PULLS = 3
"""Largest number of pulls at a handle."""

Commands = Iterator[ToolCommand]
Cost = Callable[[FloatArray], float | None]


class NoWayError(Exception):
    """Raised if a person would find no motion and start again with another layout."""


class OperatorHand:
    """Hand that steers one arm of a session.

    Args:
        session: The session, at the start of a layout.
        arm: Name of the arm.
        rng: Its randomness.
    """

    def __init__(self, session: TeleoperationSession, arm: str, rng: np.random.Generator) -> None:
        scene = session.environment.scene
        self.view: ObservedScene = scene.arms[arm]
        self._rng, self._rate = rng, session.task.rate
        self._noise = np.zeros(6)
        self.target: FloatArray = self.view.tool_pose()
        self._before = self.target.copy()
        robot, model = self.view.robot, session.environment.simulation.model
        tool = make_transform(robot.tool.position, robot.tool.wxyz)
        self._arm = ArmKinematics(
            arm_model(model, arm_joints=robot.arm.joints, tool_body=robot.tool.link, body_T_tool=tool)
        )

    def reaches(self, pose: FloatArray) -> bool:
        """Return True if the arm reaches a pose (4, 4) of the tool from its posture."""
        here = self.view.simulation.joint_positions()[self.view.arm_joints]
        return self._arm.solve(pose, here) is not None

    def fits(self, pose: FloatArray) -> bool:
        """Return True if the arm reaches a pose (4, 4) of the tool, and its open hand touches nothing there."""
        simulation = self.view.simulation
        posture = self._arm.solve(pose, simulation.joint_positions()[self.view.arm_joints])
        if posture is None:
            return False
        data = copy.copy(simulation.data)
        for name, position in zip(self.view.robot.arm.joints, posture, strict=True):
            data.joint(name).qpos[0] = position
        mujoco.mj_kinematics(simulation.model, data)
        mujoco.mj_collision(simulation.model, data)
        return not any(
            contact.dist < 0 and self._is_own(contact.geom[0]) != self._is_own(contact.geom[1])
            for contact in data.contact
        )

    def _is_own(self, geom: int) -> bool:
        model = self.view.simulation.model
        root = model.body_rootid[model.body(self.view.robot.tool.link).id]
        return bool(model.body_rootid[model.geom_bodyid[geom]] == root)

    def stroke(self, goal: FloatArray, *, speed: float | None = None, arc: float = 0.0) -> Commands:
        """Move the target to a pose (4, 4), over an arc of a height [m]."""
        start, goal = self.target.copy(), np.asarray(goal)
        pace = float(self._rng.uniform(*_SPEED)) if speed is None else speed
        length, turn = float(np.linalg.norm(goal[:3, 3] - start[:3, 3])), rotation_between(start, goal)
        count = max(2, round(max(length / pace, float(np.linalg.norm(turn)) / _TURN_SPEED) * self._rate))
        share = np.arange(1, count + 1) / count
        for part in 10 * share**3 - 15 * share**4 + 6 * share**5:
            self.target[:3, 3] = start[:3, 3] + part * (goal[:3, 3] - start[:3, 3])
            self.target[2, 3] += arc * np.sin(np.pi * part)
            self.target[:3, :3] = start[:3, :3] @ Rotation.from_rotvec(part * turn).as_matrix()
            yield self._command()
        if length > _CLUTCH:
            yield from self.pause()

    def pause(self) -> Commands:
        """Pause, as people do before a grasp."""
        yield from self.hold(float(self._rng.uniform(*_PAUSES)))

    def hold(self, seconds: float) -> Commands:
        """Hold still for a time [s]."""
        for _ in range(round(seconds * self._rate)):
            yield self._command()

    def button(self, *, closed: bool) -> Commands:
        """Press the button of the gripper, and wait until the fingers stop."""
        yield self._command(opening=0.0 if closed else 1.0)
        yield from self.hold(_FINGERS)

    def _command(self, *, opening: float | None = None) -> ToolCommand:
        speed = float(np.linalg.norm(self.target[:3, 3] - self._before[:3, 3])) * self._rate
        turning = float(np.linalg.norm(rotation_between(self._before, self.target))) * self._rate
        self._before = self.target.copy()
        sizes = [_TREMBLING + _SWAY * speed, _TREMBLING_TURN + _SWAY * turning]
        self._noise = 0.7 * self._noise + 0.7 * self._rng.normal(size=6) * np.repeat(sizes, 3)
        pose = self.target.copy()
        pose[:3, 3] += self._noise[:3]
        pose[:3, :3] = pose[:3, :3] @ Rotation.from_rotvec(self._noise[3:]).as_matrix()
        motion = None if self._rng.random() < _LOST else PoseTarget(world_T_tool=pose)
        return ToolCommand(motion=motion, opening=opening)

    # Actions of a person

    def take(self, name: str, *, cost: Cost = lambda _: 0.0, lift: float = 0.1) -> Commands:
        """Grasp an object from above, at about the position that a person would use.

        Args:
            name: The object.
            cost: Discomfort of a pose (4, 4) of the tool; None for one that is not wanted.
            lift: Height of the lift [m].
        """
        pose = self._grasp(name, cost)
        pose[:3, 3] += self._rng.normal() * _IMPRECISE * pose[:3, 0]
        yield from self.come(pose)
        yield from self.button(closed=True)
        if lift:
            yield from self.stroke(shift_pose(self.target, np.array([0, 0, lift])))

    def put(self, world_T_thing: FloatArray, name: str, *, above: float = 0.1) -> Commands:
        """Bring a held object to a pose from above, release it and retreat upwards."""
        yield from self.stroke(shift_pose(self._for(world_T_thing, name), np.array([0, 0, above])), arc=0.03)
        yield from self.pause()
        # The current pose of the object is read, so the hand corrects errors.
        yield from self.stroke(shift_pose(self._for(world_T_thing, name), np.array([0, 0, 0.02])), speed=0.08)
        yield from self.stroke(self._for(world_T_thing, name), speed=0.05)
        yield from self.button(closed=False)
        yield from self.stroke(shift_pose(self.target, np.array([0, 0, 0.12])))

    def pull(self, part: JointedPart, fraction: float) -> Commands:
        """Grasp a part by its handle, move it to a fraction of its range and release it."""
        grip = next((one.world_T_tool for one in part.grips() if self.fits(one.world_T_tool)), None)
        if grip is None:
            raise NoWayError("no handle in reach of a hand")
        yield from self.come(grip)
        yield from self.button(closed=True)
        for _ in range(_PULLS):  # a person would see that the part is not open yet
            if part.fraction > fraction - 0.05:
                break
            path = part.hand_path(self.target, part.position, part.position_at(fraction))
            yield from self.stroke(path[len(path) // 2], speed=0.1)
            yield from self.stroke(path[-1], speed=0.1)
        yield from self.button(closed=False)
        yield from self.stroke(self.target @ make_transform((0, 0, -0.12), (1, 0, 0, 0)))

    def come(self, pose: FloatArray) -> Commands:
        """Approach a grasp straight along the fingers."""
        yield from self.stroke(pose @ make_transform((0, 0, -0.1), (1, 0, 0, 0)), arc=0.05)
        yield from self.pause()
        yield from self.stroke(pose, speed=0.08)

    def _for(self, world_T_thing: FloatArray, name: str) -> FloatArray:
        """Return the pose of the tool that brings the held object, in its current grasp, to a pose."""
        return world_T_thing @ np.linalg.inv(self.view.pose(name)) @ self.view.tool_pose()

    def _grasp(self, name: str, cost: Cost) -> FloatArray:
        view = self.view
        axes = grasp_axes(view.objects[name], view.robot.gripper.shape)
        ranked = rank_grasps(axes, view.pose(name), table_height=view.lowest_point(name), limit=_GRASPS)
        costs = [(cost(grasp.world_T_tool), grasp.world_T_tool) for grasp in ranked if grasp.tilt < _STEEP]
        wanted = [(size, pose) for size, pose in costs if size is not None]
        for _, pose in sorted(wanted, key=lambda one: one[0]):
            ways = (pose, pose @ np.diag([-1.0, -1, 1, 1]))
            for way in sorted(ways, key=lambda one: float(np.linalg.norm(rotation_between(self.target, one)))):
                if self.reaches(way):
                    return way.copy()
        raise NoWayError(f"nothing to take of {name} in reach of a hand")


def at_once(works: Mapping[str, Commands]) -> Iterator[OperatorInput]:
    """Yield the input of several hands that work at the same time; a hand that is done stays at its last pose."""
    busy = dict(works)
    while busy:
        given = {arm: next(commands, None) for arm, commands in busy.items()}
        busy = {arm: commands for arm, commands in busy.items() if given[arm] is not None}
        if busy:
            yield OperatorInput(arms={arm: command for arm, command in given.items() if command is not None})


def rotation_between(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the rotation vector (3,) from one pose to another, in the frame of the first [rad]."""
    return Rotation.from_matrix(one[:3, :3].T @ other[:3, :3]).as_rotvec()
