"""By hand: a scripted operator that shows a task as a person would with a teleoperation device.

It sends one target of the tool per period: smooth strokes at 0.1 to 0.2 m/s, with trembling, lost periods, pauses, a
clutch that is let go after a long stroke, imprecise grasps, and a button that closes or opens the gripper. It plans
nothing and knows no labels: rows of its episodes are those of one skill from beginning to end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from nimbus.datagen.execute.toolkit import JointedPart, find_frame, make_handover_grasps
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.plugin import Field, FloatArray, ObjectsReference, Reason, Skill, SkillFailure, Workcell, register

_SPEED = (0.10, 0.20)
"""Range of the speed of a stroke [m/s]."""
_TREMBLING, _TREMBLING_TURN = 0.0012, 0.008
"""Standard deviation of the trembling [m, rad]."""
_LOST = 0.12
"""Share of the periods whose target is lost: the tool stays."""
_PAUSES = (0.15, 0.5)
"""Range of a pause [s]."""
_CLUTCH = 0.3
"""Length of a stroke after which the clutch is let go [m]."""
_IMPRECISE = 0.003
"""Standard deviation of the place of a grasp along the fingers' flat side [m]."""
_STEP = 0.12
"""Largest move of a joint in a period [rad]: what a person sees as a jump is refused."""


class HandOperator:
    """One hand of the operator.

    Args:
        arm: The arm that it moves.
        rng: Its randomness.
    """

    def __init__(self, arm: Workcell, rng: np.random.Generator) -> None:
        self.arm, self._rng = arm, rng
        self._target = arm.tool_pose()
        self._noise = np.zeros(6)

    def stroke(self, goal: FloatArray, *, speed: float | None = None, arc: float = 0.0) -> None:
        """Move the target to a pose (4, 4), over an arc of a height [m]."""
        start, goal = self._target.copy(), np.asarray(goal)
        pace = float(self._rng.uniform(*_SPEED)) if speed is None else speed
        length, turn = np.linalg.norm(goal[:3, 3] - start[:3, 3]), _turn(start, goal)
        count = max(2, round(max(length / pace, float(np.linalg.norm(turn)) / 1.2) * self.arm.simulation.rate))
        share = np.arange(1, count + 1) / count
        for part in 10 * share**3 - 15 * share**4 + 6 * share**5:
            self._target[:3, 3] = start[:3, 3] + part * (goal[:3, 3] - start[:3, 3])
            self._target[2, 3] += arc * np.sin(np.pi * part)
            self._target[:3, :3] = start[:3, :3] @ _rotation(part * turn)
            self._send()
        if length > _CLUTCH:
            self.pause()

    def pause(self) -> None:
        """Hold still, as people do before a grasp."""
        for _ in range(round(float(self._rng.uniform(*_PAUSES)) * self.arm.simulation.rate)):
            self._send()

    def button(self, *, closed: bool) -> None:
        """Press the gripper's button and wait until the fingers stand."""
        gripper = self.arm.robot.gripper
        for value in np.linspace(self.arm.opening, gripper.closed if closed else gripper.open, 6)[1:]:
            self._send(opening=float(value))
        for _ in range(5):
            self._send()

    def _send(self, *, opening: float | None = None) -> None:
        """Send the target of one period."""
        draw = self._rng.normal(size=6) * np.repeat([_TREMBLING, _TREMBLING_TURN], 3)
        self._noise = 0.7 * self._noise + 0.7 * draw
        target = self._target.copy()
        target[:3, 3] += self._noise[:3]
        target[:3, :3] = target[:3, :3] @ _rotation(self._noise[3:])
        here = self.arm.arm_command
        posture = None if self._rng.random() < _LOST else self.arm.look().arm.solve(target, here)
        if posture is not None:
            posture = here + np.clip(posture - here, -_STEP, _STEP)
        self.arm.command(posture, opening=opening)

    # What a person does with it

    def take(self, name: str, *, side: float = 0.0, lift: float = 0.1) -> None:
        """Take an object from above, roughly where one would.

        Args:
            name: The object.
            side: Smallest y of the grasp from the object's middle, in the direction of its sign [m]; 0 for anywhere.
            lift: Height of the lift [m].
        """
        pose = self._grasp(name, side)
        pose[:3, 3] += self._rng.normal() * _IMPRECISE * pose[:3, 0]
        self._come(pose)
        self.button(closed=True)
        if lift:
            self.stroke(_shifted(self._target, (0, 0, lift)))

    def put(self, world_T_thing: FloatArray, name: str, *, above: float = 0.1) -> None:
        """Bring a held object to a pose from above, let go and leave upwards."""
        goal = world_T_thing @ np.linalg.inv(self.arm.pose(name)) @ self.arm.tool_pose()
        self.stroke(_shifted(goal, (0, 0, above)), arc=0.03)
        self.pause()
        # A look at where it hangs now: the hand corrects as it sees.
        goal = world_T_thing @ np.linalg.inv(self.arm.pose(name)) @ self.arm.tool_pose()
        self.stroke(_shifted(goal, (0, 0, 0.02)), speed=0.08)
        self.stroke(goal, speed=0.05)
        self.button(closed=False)
        self.stroke(_shifted(self._target, (0, 0, 0.12)))

    def pull(self, part: JointedPart, fraction: float) -> None:
        """Take a part by its handle, move it to a fraction of its range and let go."""
        for grip in part.grips():
            if self.arm.look().arm.solve(grip.world_T_tool, self.arm.arm_command) is not None:
                break
        else:
            raise SkillFailure(Reason.NO_GRASP, "no handle in reach of a hand")
        self._come(grip.world_T_tool)
        self.button(closed=True)
        path = part.hand_path(self._target, part.position, part.position_at(fraction))
        self.stroke(path[len(path) // 2], speed=0.12)
        self.stroke(path[-1], speed=0.12)
        self.button(closed=False)
        self.stroke(self._target @ make_transform((0, 0, -0.12), (1, 0, 0, 0)))

    def _come(self, pose: FloatArray) -> None:
        """Come to a grasp straight along the fingers."""
        self.stroke(pose @ make_transform((0, 0, -0.1), (1, 0, 0, 0)), arc=0.05)
        self.pause()
        self.stroke(pose, speed=0.08)

    def _grasp(self, name: str, side: float) -> FloatArray:
        arm = self.arm
        middle = (np.sum(arm.bounds(name), axis=0)) / 2
        for grasp in arm.grasps(name, limit=200):
            pose = grasp.world_T_tool
            aside = float(pose[1, 3] - middle[1]) * np.sign(side)
            if (side and aside < abs(side)) or grasp.tilt > 0.35:
                continue
            for turned in sorted((pose, pose @ np.diag([-1.0, -1, 1, 1])), key=partial(self._effort)):
                if arm.look().arm.solve(turned, arm.arm_command) is not None:
                    return turned.copy()
        raise SkillFailure(Reason.NO_GRASP, "nothing to take in reach of a hand")

    def _effort(self, pose: FloatArray) -> float:
        return float(np.linalg.norm(_turn(self._target, pose)))


@register("skill", "by_hand")
class ByHand(Skill):
    """Show a task by hand; fails with ``no_grasp`` where a person would find no way."""

    main = "about"
    about: ObjectsReference = Field(description="The things that are shown.")
    show: Literal["insert", "open", "handover", "together", "beside", "stack", "put_on"] = Field(
        description="What to show."
    )

    def run(self, arm: Workcell) -> None:
        """Show it."""
        _SHOWS[self.show](arm)


def _hand(arm: Workcell) -> HandOperator:
    return HandOperator(arm, arm.rng())


def _insert(arm: Workcell) -> None:
    hand = _hand(arm)
    hand.take("peg_0", lift=0.12)
    mouth = arm.pose("board_0") @ find_frame(arm, "board_0", "hole")
    low, high = arm.model("board_0").cavities["hole"]
    tip = find_frame(arm, "peg_0", "tip")
    peg, end = arm.pose("peg_0"), np.eye(4)
    end[:3, :3] = peg[:3, :3]
    # Its tip, which points down, goes to the bottom of the hole.
    place = mouth[:3, 3] - mouth[:3, 2] * (high[2] - low[2] - 0.001)
    end[:3, 3] = place - end[:3, :3] @ tip[:3, 3]
    hand.put(end, "peg_0", above=0.12)


def _open(arm: Workcell) -> None:
    _hand(arm).pull(JointedPart(arm, "cabinet_0"), 0.9)


def _beside(arm: Workcell) -> None:
    hand = _hand(arm)
    hand.take("block_0")
    goal = arm.pose("block_0")
    (low, high), (own_low, own_high) = arm.bounds("target_0"), arm.bounds("block_0")
    goal[:2, 3] = (low + high)[:2] / 2
    goal[1, 3] = high[1] + 0.03 + (own_high - own_low)[1] / 2
    goal[2, 3] += 0.001 - own_low[2]
    hand.put(goal, "block_0")


def _stack(arm: Workcell) -> None:
    hand = _hand(arm)
    for upper, lower in (("cubes_1", "cubes_0"), ("cubes_2", "cubes_1")):
        hand.take(upper)
        _put_on(hand, upper, lower)


def _put_on(hand: HandOperator, upper: str, lower: str) -> None:
    arm = hand.arm
    goal, below = arm.pose(upper), arm.bounds(lower)
    goal[:2, 3] = (below[0] + below[1])[:2] / 2
    goal[2, 3] += below[1][2] + 0.001 - arm.bounds(upper)[0][2]
    hand.put(goal, upper)


def _put_on_goal(arm: Workcell) -> None:
    hand = _hand(arm)
    hand.take("block_0")
    goal = arm.pose("block_0")
    goal[:2, 3] = arm.regions["goal"].center
    goal[2, 3] += 0.001 - arm.bounds("block_0")[0][2]
    hand.put(goal, "block_0")


def _handover(arm: Workcell) -> None:
    giver, receiver = _hand(arm.arm("left")), _hand(arm.arm("right"))
    giver.take("block_0", side=0.02)
    middle = giver.arm.tool_pose()
    middle[:3, 3] = (0.45, 0.03, 0.3)
    giver.stroke(middle, arc=0.02)
    giver.pause()
    poses = make_handover_grasps(giver.arm, receiver.arm, "block_0")
    for pose in poses:
        if receiver.arm.look().arm.solve(pose, receiver.arm.arm_command) is not None:
            break
    else:
        raise SkillFailure(Reason.NO_GRASP, "no way to hand it over")
    receiver._come(pose)
    receiver.button(closed=True)
    giver.button(closed=False)
    giver.stroke(giver._target @ make_transform((0, 0, -0.12), (1, 0, 0, 0)))
    giver.stroke(_shifted(giver._target, (0, 0.15, 0.0)))
    goal = receiver.arm.pose("block_0")
    goal[:2, 3] = receiver.arm.regions["right"].center
    goal[2, 3] += 0.002 - receiver.arm.bounds("block_0")[0][2]
    receiver.put(goal, "block_0")


def _together(arm: Workcell) -> None:
    hands = {name: _hand(arm.arm(name)) for name in ("left", "right")}
    length = float(np.diff(arm.bounds("tray_0"), axis=0)[0, 1]) / 2

    def grasp(name: str) -> None:
        """Take one end."""
        hands[name].take("tray_0", side=(0.6 if name == "left" else -0.6) * length, lift=0.0)

    def lift(name: str) -> None:
        """Lift one end at a common speed."""
        hands[name].stroke(_shifted(hands[name]._target, (0, 0, 0.13)), speed=0.08)

    for work in (grasp, lift):
        works: dict[str, Callable[[], None]] = {name: partial(work, name) for name in hands}
        arm.together(works)


_SHOWS: dict[str, Callable[[Workcell], None]] = {
    "insert": _insert,
    "open": _open,
    "beside": _beside,
    "stack": _stack,
    "put_on": _put_on_goal,
    "handover": _handover,
    "together": _together,
}


def _shifted(pose: FloatArray, shift: tuple[float, float, float]) -> FloatArray:
    moved = pose.copy()
    moved[:3, 3] += shift
    return moved


def _turn(one: FloatArray, other: FloatArray) -> FloatArray:
    """Rotation vector (3,) from one pose to another, in the frame of the first [rad]."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(one[:3, :3].T @ other[:3, :3]).as_rotvec()


def _rotation(vector: FloatArray) -> FloatArray:
    angle = float(np.linalg.norm(vector))
    return np.eye(3) if angle < 1e-12 else quat_to_matrix(quat_from_axis_angle(vector, angle))
