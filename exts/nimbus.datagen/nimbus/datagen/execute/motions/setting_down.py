"""Placement of a held object: transport to a release pose, gentle release, retreat."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.execute.motions.pushing import plan_straight
from nimbus.datagen.execute.motions.release import FIRST_OPENING, Release
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.plan.ik import solve_ik
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.random_streams import generator
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.objects.model import RestPose
    from nimbus.datagen.tasks.workcell_interface import Workcell


_BATCH = 4
"""Number of releases in one planning query by default; the planner chooses the nearest of them."""
_MOST_WAYS = 192
"""Largest number of releases that are tried; a region has up to 81 spots with 8 headings each."""
_BERTH = 0.012
"""Preferred clearance of a carried object [m]; if no motion keeps this clearance, a closer one is accepted."""
_BACK = 0.08
"""Retreat of the hand after a release [m]."""
_OFF = 0.03
"""Displacement after the release at which a placement counts as failed [m]."""
_TILTED = 0.3
"""Tilt from its rest pose at which an object counts as fallen [rad]."""


def plan_release(
    cell: Workcell, ways: Iterable[Release], *, thorough: bool = False, at_once: int = _BATCH
) -> tuple[MotionPlan, MotionPlan]:
    """Plan a free motion to a pose above the first reachable release, and a straight descent to the release.

    Args:
        cell: The scene, with the object in the hand.
        ways: Releases in order of preference; they are tried in groups, the nearest of a group first.
        thorough: Also try the rest of a group if the nearest release has no straight descent.
        at_once: Number of releases in a group; 1 tries them one by one in their order.

    Raises:
        SkillFailure: There is no reachable release.
    """
    failure: MotionPlan | None = None
    for some in _batches(itertools.islice(ways, _MOST_WAYS), at_once):
        while some:
            carry = _plan_carry(cell, [above for above, _ in some])
            # None of this group can be reached; the next group may be in another place.
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


def plan_release_inside(cell: Workcell, ways: Iterable[Release]) -> tuple[MotionPlan, MotionPlan]:
    """Plan a free motion to a pose above a release in a container, and a straight descent to the release.

    Where hand and object have room at all releases of a group, the group is planned as by :func:`plan_release`. In a
    narrower container, the releases with room are tried one by one in their order of preference. The choice then does
    not depend on the posture of the arm or on random draws of the planner.

    Args:
        cell: The scene, with the object in the hand.
        ways: Releases in order of preference.

    Raises:
        SkillFailure: There is no reachable release.
    """
    failure: SkillFailure | None = None
    blocked = MotionPlan(status=MotionStatus.NO_PATH)
    for some in _batches(itertools.islice(ways, _MOST_WAYS), _BATCH):
        found = [_find_obstacle(cell, release) for _, release in some]
        blocked = next((MotionPlan(status=MotionStatus.NO_PATH, detail=one) for one in found if one), blocked)
        free = [way for way, one in zip(some, found, strict=True) if not one]
        if free:
            try:
                return plan_release(cell, free, at_once=_BATCH if len(free) == len(some) else 1)
            except SkillFailure as error:
                failure = error
    raise failure or SkillFailure.of_plan(blocked)


def _find_obstacle(cell: Workcell, world_T_tool: FloatArray) -> str:
    """Return the contact of the hand or of the held object at a pose (4, 4); empty if there is none, or no posture."""
    scene = cell.look()
    # The search starts at the home posture, because the arm's own posture depends on its last free motion; and its
    # restarts are the same in all attempts.
    found = solve_ik(
        scene,
        world_T_tool,
        seed_q=np.asarray(cell.robot.arm.home),
        rng=generator(0, "release"),
        solutions=1,
        accept=lambda _: True,
    )
    if not found or not scene.blocks_tool(found[0]):
        return ""
    return " touches ".join(scene.first_contact(found[0]) or ())


def _plan_carry(cell: Workcell, goals: list[FloatArray]) -> MotionPlan:
    """Plan a free motion with the held object, with a wide clearance if possible."""
    scene = cell.look()
    # The wide clearance is only preferred, because it may leave no motion in a crowded scene.
    with scene.nearer(_BERTH):
        wide = cell.planner.plan_pose(scene, cell.arm_command, goals, rng=cell.rng())
    return wide or cell.planner.plan_pose(cell.look(), cell.arm_command, goals, rng=cell.rng())


def set_down(cell: Workcell, name: str, ways: Iterable[Release], *, rest: RestPose, at_once: int = _BATCH) -> None:
    """Put the held object down and check that it stands; add its position to the statistics of the plan.

    Args:
        cell: The scene, with the object in the hand.
        name: The object.
        ways: Releases in order of preference.
        rest: Rest pose of the object after the release.
        at_once: Number of releases in a group, as in :func:`plan_release`.

    Raises:
        SkillFailure: No release is reachable, or the object slid away or fell over.
    """
    carry, lower = plan_release(cell, ways, thorough=True, at_once=at_once)
    cell.begin("carry")
    place = cell.look().tool_pose(lower.end) @ cell.tool_T_held()
    cell.note(place_x=float(place[0, 3]), place_y=float(place[1, 3]))
    cell.follow_all(carry, lower)
    # The reference is the pose before the fingers open, because opening them may already push the object.
    let_go = cell.pose(name)
    cell.begin("release")
    cell.open(room=FIRST_OPENING, steps=4)
    cell.begin("retreat")
    retreat(cell, name)
    now = cell.pose(name)
    moved = float(np.linalg.norm((now - let_go)[:3, 3]))
    if moved > _OFF:
        raise SkillFailure(Reason.OFF_TARGET, f"{name} went {moved * 100:.0f} cm when it was released")
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
    """Retreat along the first free straight line, and open the fingers; the released object may be touched.

    Args:
        cell: The scene.
        name: The released object.
        ways: Displacements (3,) of the tool in the world [m] in order of preference; by default 8 cm back along the
            fingers, 8 cm up, or half of either.
        touching: Further bodies that may be touched.
        among_released: When no line is free, allow contact with all objects released in this attempt.
        speed: Largest speed of the tool [m/s].

    Raises:
        SkillFailure: No line is free.
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


def release_upward(cell: Workcell, *, room: float, height: float) -> None:
    """Open the fingers slightly, move the tool straight up, and open the fingers fully.

    Args:
        cell: The scene, in the phase of the release.
        room: Travel of each finger at the release [m].
        height: Height of the tool after the retreat [m]; a higher tool stays at its height.

    Raises:
        SkillFailure: The way up is not free.
    """
    cell.open(room=room, steps=3)
    cell.wait(2)
    cell.begin("retreat")
    above = cell.tool_pose()
    above[2, 3] = max(above[2, 3], height)
    plan_straight(cell, above)
    cell.open()


def _batches(items: Iterable[Release], size: int) -> Iterator[list[Release]]:
    iterator = iter(items)
    while some := list(itertools.islice(iterator, size)):
        yield some
