"""Carrying a held object to where it can be let go, letting go gently, and drawing back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.motions.release import FIRST_OPENING, Release
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.objects.model import RestPose
    from nimbus.datagen.tasks.workcell_interface import Workcell


_BATCH = 4
_MOST_WAYS = 192
"""Releases that are planned for at most: a region has up to 81 spots, each with 8 headings."""
_BERTH = 0.012
"""[m] What is carried keeps so far from everything, where that is possible; less only where it is not."""
_BACK = 0.08
"""[m] Way of the hand after it let go."""
_OFF = 0.03
"""[m] An object that ends so far from where it was let go, was not put down."""
_TILTED = 0.3
"""[rad] An object that leans so far from its rest pose, fell over."""


def plan_release(cell: Workcell, ways: Iterable[Release], *, thorough: bool = False) -> tuple[MotionPlan, MotionPlan]:
    """A free motion to above the first release that can be reached, and a straight one down to it.

    Args:
        cell: The scene; it holds the object.
        ways: Most wanted first; of a few at a time the nearest is taken.
        thorough: Try the others of these, too, when there is no straight way down to the nearest.

    Raises:
        SkillFailure: None can be reached, or there is none.
    """
    failure: MotionPlan | None = None
    for some in _batches(itertools.islice(ways, _MOST_WAYS), _BATCH):
        while some:
            carry = _plan_carry(cell, [above for above, _ in some])
            if not carry:
                failure = carry
                break
            lower = cell.planner.plan_line(cell.look(), carry.end, some[carry.goal_index][1], speed=0.35)
            if lower:
                return carry, lower
            failure = lower
            some = some[: carry.goal_index] + some[carry.goal_index + 1 :] if thorough else []
    if failure is None:
        raise SkillFailure(Reason.NO_ROOM, f"no free spot for {cell.held}")
    raise SkillFailure.of_plan(failure)


def _plan_carry(cell: Workcell, goals: list[FloatArray]) -> MotionPlan:
    """A free motion with what is held, in a wide berth of everything unless there is none."""
    scene = cell.look()
    with scene.nearer(_BERTH):
        wide = cell.planner.plan_pose(scene, cell.arm_command, goals, rng=cell.rng())
    return wide or cell.planner.plan_pose(cell.look(), cell.arm_command, goals, rng=cell.rng())


def set_down(cell: Workcell, name: str, ways: Iterable[Release], *, rest: RestPose) -> None:
    """Put the held object down at rest, and check that it stands; where, is stored with the plan's statistics.

    Raises:
        SkillFailure: It cannot be put down there, went elsewhere or fell over.
    """
    carry, lower = plan_release(cell, ways, thorough=True)
    cell.begin("carry")
    place = cell.look().tool_pose(lower.end) @ cell.tool_T_held()
    cell.note(place_x=float(place[0, 3]), place_y=float(place[1, 3]))
    cell.follow_all(carry, lower)
    let_go = cell.pose(name)
    cell.begin("release")
    cell.open(room=FIRST_OPENING, steps=4)
    cell.begin("retreat")
    retreat(cell, name)
    now = cell.pose(name)
    moved = float(np.linalg.norm((now - let_go)[:3, 3]))
    if moved > _OFF:
        raise SkillFailure(Reason.OFF_TARGET, f"{name} went {moved * 100:.0f} cm when it was let go")
    tilt = float(np.arccos(np.clip((now[:3, :3] @ quat_to_matrix(rest.wxyz).T)[2, 2], -1.0, 1.0)))
    if tilt > _TILTED:
        raise SkillFailure(Reason.TOPPLED, f"{name} leans by {tilt:.2f} rad")


def retreat(
    cell: Workcell,
    name: str,
    *,
    ways: Sequence[FloatArray] | None = None,
    touching: Iterable[str] = (),
    among_released: bool = True,
    speed: float = 0.35,
) -> None:
    """Go the first straight way that is free, and open the fingers; the object just let go may be touched.

    Args:
        cell: The scene.
        name: The object just let go.
        ways: Displacements (3,) of the tool in the world [m], the best first: 8 cm back along the fingers, straight up
            or half of either, when not given.
        touching: Further bodies that may be touched.
        among_released: When no way is free, all objects that were let go in this attempt may be touched.
        speed: Largest speed of the tool [m/s].

    Raises:
        SkillFailure: There is no way back.
    """
    pose, scene = cell.tool_pose(), cell.look()
    if ways is None:
        back, up = -_BACK * pose[:3, 2], np.array([0.0, 0.0, _BACK])
        ways = (back, up, 0.6 * up, 0.5 * back)
    plan = MotionPlan(status=MotionStatus.NO_PATH)
    touched: set[str] = set()
    bodies = ({name, *touching}, cell.released) if among_released else ({name, *touching},)
    for touched, way in itertools.product(bodies, ways):
        goal = pose.copy()
        goal[:3, 3] += way
        with scene.allow(*touched):
            plan = cell.planner.plan_line(scene, cell.arm_command, goal, speed=speed)
        if plan:
            break
    cell.follow(plan, opening=cell.robot.gripper.open, touching=touched)


def _batches(items: Iterable[Release], size: int) -> Iterator[list[Release]]:
    iterator = iter(items)
    while some := list(itertools.islice(iterator, size)):
        yield some
