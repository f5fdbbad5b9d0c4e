"""Shipped tasks as a scripted operator shows them through teleoperation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.execute.articulation import JointedPart
from nimbus.datagen.execute.motions.alignment import find_frame
from nimbus.datagen.execute.motions.grasps import make_handover_grasps
from nimbus.datagen.execute.toolkit import shift_pose
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.tasks.task import load_task
from nimbus.datagen.teleoperate.operator_input import IDLE, OperatorInput
from nimbus.datagen.teleoperate.recording import RecordingFolder
from nimbus.datagen.teleoperate.session import TeleoperationSession
from tests.support.operator_hand import NoWayError, OperatorHand, at_once, rotation_between

_PATIENCE = 20
"""Number of periods for which the operator waits for *success* after the last motion."""
_MOST_TRIES = 4
"""Largest number of tried layouts per kept demonstration, because people discard failures."""
_LEVEL = 0.5
"""Vertical component of an axis below which it counts as horizontal."""
_END, _TIP = 0.5, 0.6
"""Positions of grasps toward an end of a long object, as fractions of half its length: for one hand, and for two."""
_BETWEEN = 0.025
"""Smallest distance between two hands at one object [m]."""
_FROM_SIDE = 0.3
"""Smallest sideward component of the direction in which a hand approaches the other one."""
Hands = dict[str, OperatorHand]
Inputs = Iterator[OperatorInput]


def show(name: str, folder: Path, *, count: int, seed: int = 0) -> dict[int, str]:
    """Record demonstrations of a task; those that do not succeed are discarded.

    Args:
        name: A key of :data:`SHOWS`, or the path of a task file with such a name.
        folder: Dataset of the demonstrations; the recordings are stored beside it.
        count: Number of demonstrations.
        seed: Seed of the hands.

    Returns:
        Reasons of the discarded ones by number of their layout.
    """
    task = load_task(name)
    session = TeleoperationSession(task, load_assets(task), operator="script", device="script")
    recordings, discarded = RecordingFolder.beside(folder), dict[int, str]()
    for index in range(count * _MOST_TRIES):
        if len(recordings.indices()) == count:
            break
        session.reset(index)
        session.record()
        if reason := _perform(session, task.name, np.random.default_rng([seed, index])):
            discarded[index] = reason
        else:
            recordings.keep(session.recording())
    return discarded


def _perform(session: TeleoperationSession, name: str, rng: np.random.Generator) -> str:
    """Demonstrate a task; return the reason for a failure, or an empty text for success."""
    hands = {arm: OperatorHand(session, arm, rng) for arm in session.assets.robot.arm_names}
    try:
        for given in SHOWS[name](hands):
            session.step(given)
    except NoWayError as reason:
        return str(reason)
    state = session.state()
    for _ in range(_PATIENCE):
        if (state := session.step(IDLE)).is_success:
            return ""
    return state.failure


def _insert(hands: Hands) -> Inputs:
    hand = hands["arm"]
    view = hand.view
    yield from at_once({"arm": hand.take("peg_0", lift=0.12)})
    mouth = view.pose("board_0") @ find_frame(view, "board_0", "hole")
    low, high = view.model("board_0").cavities["hole"]
    tip = find_frame(view, "peg_0", "tip")
    end = np.eye(4)
    end[:3, :3] = _upright(view.pose("peg_0"))
    # Its tip, which points down, goes to the bottom of the hole.
    place = mouth[:3, 3] - mouth[:3, 2] * (high[2] - low[2] - 0.001)
    end[:3, 3] = place - end[:3, :3] @ tip[:3, 3]
    yield from at_once({"arm": hand.put(end, "peg_0", above=0.12)})


def _upright(pose: FloatArray) -> FloatArray:
    """Return the nearest rotation (3, 3) with z straight up, as a person corrects a tilted peg."""
    x = pose[:3, 0] * [1, 1, 0]
    x /= np.linalg.norm(x)
    z = np.array([0.0, 0.0, 1.0])
    return np.stack([x, np.cross(z, x), z], axis=1)


def _open(hands: Hands) -> Inputs:
    hand = hands["arm"]
    yield from at_once({"arm": hand.pull(JointedPart(hand.view, "cabinet_0"), 0.98)})


def _beside(hands: Hands) -> Inputs:
    hand = hands["arm"]
    yield from at_once({"arm": hand.take("block_0")})
    goal = hand.view.pose("block_0")
    (low, high), (own_low, own_high) = hand.view.bounds("target_0"), hand.view.bounds("block_0")
    goal[:2, 3] = (low + high)[:2] / 2
    goal[1, 3] = high[1] + 0.03 + (own_high - own_low)[1] / 2
    yield from at_once({"arm": hand.put(_resting(hand, "block_0", goal, 0.001), "block_0")})


def _stack(hands: Hands) -> Inputs:
    hand = hands["arm"]
    for upper, lower in (("cubes_1", "cubes_0"), ("cubes_2", "cubes_1")):
        yield from at_once({"arm": hand.take(upper)})
        goal, below = hand.view.pose(upper), hand.view.bounds(lower)
        goal[:2, 3] = (below[0] + below[1])[:2] / 2
        yield from at_once({"arm": hand.put(_resting(hand, upper, goal, below[1][2] + 0.001), upper)})


def _resting(hand: OperatorHand, name: str, goal: FloatArray, height: float) -> FloatArray:
    """Return a pose with the lowest point of the object at a height [m]."""
    moved = goal.copy()
    moved[2, 3] = height + hand.view.pose(name)[2, 3] - hand.view.bounds(name)[0][2]
    return moved


def _to_goal(hands: Hands) -> Inputs:
    hand = hands["arm"]
    yield from at_once({"arm": hand.take("cube_0")})
    goal = hand.view.pose("cube_0")
    goal[:2, 3] = hand.view.regions["goal"].center
    yield from at_once({"arm": hand.put(_resting(hand, "cube_0", goal, 0.001), "cube_0")})


def _handover(hands: Hands) -> Inputs:
    giver, receiver = hands["left"], hands["right"]
    yield from at_once({"left": giver.take("block_0", cost=partial(_end_cost, giver, "block_0"))})
    middle = _turned(giver, "block_0")
    middle[:3, 3] = (0.45, 0.05, 0.3)
    yield from at_once({"left": giver.stroke(middle, arc=0.02)})
    yield from at_once({"left": giver.pause()})
    poses = make_handover_grasps(giver.view, receiver.view, "block_0", limit=200)  # pyright: ignore[reportArgumentType]
    right_of = giver.view.tool_pose()[1, 3] - _BETWEEN
    from_its_side = [one for one in poses if one[1, 2] > _FROM_SIDE and one[1, 3] < right_of and receiver.reaches(one)]
    if not from_its_side:
        raise NoWayError("no way to hand it over")
    pose = min(from_its_side, key=lambda one: float(np.linalg.norm(rotation_between(receiver.target, one))))
    yield from at_once({"right": receiver.come(pose)})
    yield from at_once({"right": receiver.button(closed=True)})
    yield from at_once({"left": giver.button(closed=False)})
    back = giver.target @ make_transform((0, 0, -0.12), (1, 0, 0, 0))
    yield from at_once({"left": giver.stroke(back)})
    yield from at_once({"left": giver.stroke(shift_pose(back, np.array([0, 0.15, 0.0])))})
    goal = receiver.view.pose("block_0")
    goal[:2, 3] = receiver.view.regions["right"].center
    yield from at_once({"right": receiver.put(_resting(receiver, "block_0", goal, 0.002), "block_0")})


def _long_axis(hand: OperatorHand, name: str) -> FloatArray:
    """Return half of the longest horizontal extent of an object as a vector (3,) [m]."""
    pose, vertices = hand.view.pose(name), hand.view.model(name).vertices
    sizes = np.ptp(vertices, axis=0) / 2
    axes = [sizes[place] * pose[:3, place] for place in range(3) if abs(pose[2, place]) < _LEVEL]
    return max(axes, key=lambda axis: float(np.linalg.norm(axis)))


def _end_cost(hand: OperatorHand, name: str, pose: FloatArray) -> float | None:
    """Return the cost of a grasp at one end of a long object, which leaves the other end for another hand."""
    axis = _long_axis(hand, name)
    along = abs(float((pose[:3, 3] - hand.view.pose(name)[:3, 3]) @ axis)) / float(axis @ axis)
    return abs(along - _END) if along > _END / 2 else None


def _side_cost(hand: OperatorHand, name: str, side: float, pose: FloatArray) -> float | None:
    """Return the cost of a grasp at the middle of the end of a long object toward one side (1 left, -1 right)."""
    axis = _long_axis(hand, name)
    axis *= np.sign(axis[1]) * side
    offset = pose[:3, 3] - hand.view.pose(name)[:3, 3]
    along = float(offset @ axis / (axis @ axis))
    aside = offset[:2] - along * axis[:2]
    return float(np.linalg.norm(aside)) if along > _TIP else None


def _turned(hand: OperatorHand, name: str) -> FloatArray:
    """Return the hand's pose turned about the vertical so that the free end of a held object points to the right."""
    free = hand.view.pose(name)[:2, 3] - hand.view.tool_pose()[:2, 3]
    angle = float(np.arctan2(-free[0], -free[1]))
    for share in (1.0, 0.6, 0.3):
        pose = hand.target.copy()
        pose[:3, :3] = quat_to_matrix(quat_from_axis_angle((0, 0, 1), share * angle)) @ pose[:3, :3]
        if hand.reaches(pose):
            return pose
    return hand.target.copy()


def _lift_together(hands: Hands) -> Inputs:
    left, right = hands["left"], hands["right"]
    takes = {"left": left.take("tray_0", cost=partial(_side_cost, left, "tray_0", 1.0), lift=0.0)}
    takes["right"] = right.take("tray_0", cost=partial(_side_cost, right, "tray_0", -1.0), lift=0.0)
    yield from at_once(takes)
    up = np.array([0, 0, 0.13])
    lifts = {name: hand.stroke(shift_pose(hand.target, up), speed=0.08) for name, hand in hands.items()}
    yield from at_once(lifts)


SHOWS: dict[str, Callable[[Hands], Inputs]] = {
    "insert_peg": _insert,
    "open_drawer": _open,
    "handover_block": _handover,
    "lift_tray_together": _lift_together,
    "place_beside": _beside,
    "stack_blocks": _stack,
    "cube_to_goal": _to_goal,
}
"""Motions that show each task."""
