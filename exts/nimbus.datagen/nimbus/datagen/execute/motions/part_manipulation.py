"""Manipulation of an object's jointed part: grasp its handle or press on it, and follow its joint."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.plan.curve import trace_curve
from nimbus.datagen.plan.ik import solve_ik, trace_line
from nimbus.datagen.plan.motion import MotionPlan, MotionStatus
from nimbus.datagen.tasks.statements import SkillFailure

if TYPE_CHECKING:
    from nimbus.datagen.arrays import FloatArray
    from nimbus.datagen.execute.articulation import JointedPart, PartGrasp
    from nimbus.datagen.plan.scene import PlanningScene
    from nimbus.datagen.tasks.workcell_interface import Workcell


_HANDLE_ROOM = 0.011
"""Clearance on each side of a handle as the fingers approach [m]."""
_FINGER_CLEARANCE = 5e-4
"""Clearance of the open fingers at the grasp [m]."""
_MOST_GAP = 0.06
"""Largest gap from which fingers may press [m]."""
_FEELS, _FELT = 5, 1e-4
"""Largest number of steps until fingers are in contact, and the gap that counts as contact [m]."""
_SHARES = (1.0, 0.5, 0.0)
"""Fractions of a part's rotation that a hand on a round handle copies."""
_MOST_GRIPS = 36
"""Number of grasps that are checked, both orientations included."""
_LEAST_STROKE = 0.25
"""Smallest fraction of the motion for which a stroke is executed; another grasp then continues the motion."""
_LENGTHS = (1.0, 0.85, 0.7, 0.5, 0.3)
"""Fractions of a stroke that are tried when the actual grasp differs from the planned one."""
_HALF_TURN = np.diag([-1.0, -1.0, 1.0, 1.0])


@dataclass(frozen=True, kw_only=True)
class _Stroke:
    """Reachable grasp with the extent of its motion."""

    grip: PartGrasp
    share: float
    way: tuple[MotionPlan, MotionPlan]
    """Free motion, and straight approach to the grasp."""
    end: float
    """Joint position at the end of the stroke [rad or m]."""


class PartManipulator:
    """Moves one part in one or several strokes.

    Args:
        cell: The scene.
        part: Part to move.
        approach: Length of the straight approach [m].
        speed: Speed of the hand [m/s].
    """

    def __init__(self, cell: Workcell, part: JointedPart, *, approach: float = 0.06, speed: float = 0.12) -> None:
        self._cell, self._part, self._approach, self._speed = cell, part, approach, speed
        self._attempts: Counter[str] = Counter()
        self._tried: list[PartGrasp] = []

    def by_handle(self, fraction: float, *, phase: str, strokes: int = 4, tolerance: float = 0.04) -> None:
        """Grasp the part by a handle and bring it to a fraction of its range.

        Raises:
            SkillFailure: No grasp is reachable, the fingers slip off, or the part does not move that far.
        """
        part, cell = self._part, self._cell
        goal = part.position_at(fraction)
        failure: SkillFailure | None = None
        for _ in range(strokes):
            if abs(part.fraction - fraction) <= tolerance:
                return
            cell.begin("reach")
            self._set_fingers(min(grip.width for grip in part.grips()))
            stroke = self._choose(part.grips(), goal)
            cell.follow_all(*stroke.way)
            cell.begin("grasp")
            failure = self._hold_and_move(stroke, phase)
            if failure is not None:
                self._tried.append(stroke.grip)
            cell.begin("release")
            cell.open(room=_HANDLE_ROOM, steps=2)
            cell.begin("retreat")
            self._retreat()
        if abs(part.fraction - fraction) > tolerance:
            detail = f"{part.label} is at {part.fraction:.0%} of its range, not {fraction:.0%}"
            raise failure or SkillFailure(Reason.NOT_MOVED, detail)

    def _hold_and_move(self, stroke: _Stroke, phase: str) -> SkillFailure | None:
        """Close the fingers and move; return a failure that another grasp may avoid."""
        cell, part = self._cell, self._part
        if not cell.close_on(part.label):
            return SkillFailure(Reason.MISSED_GRASP, f"the fingers closed next to {part.label}")
        cell.begin(phase)
        try:
            self._move(stroke)
        except SkillFailure as error:
            if error.reason not in (Reason.NO_PATH, Reason.NO_IK, Reason.PLAN_REJECTED):
                raise
            return error
        return None

    def by_pressing(self, fraction: float, *, phase: str, beyond: float = 0.004) -> None:
        """Press on the part with closed fingers up to a fraction of its range, then retreat.

        Args:
            fraction: Fraction of its range.
            phase: Label of the phase.
            beyond: Additional travel [m], because a spring pushes the arm back.

        Raises:
            SkillFailure: No point to press on is reachable.
        """
        part, cell = self._part, self._cell
        cell.begin("reach")
        self._close_fingers()
        stroke = self._choose(part.presses(), part.position_at(fraction))
        cell.follow_all(*stroke.way)
        cell.begin(phase)
        cell.expect_contact(part.label)
        self._touch(stroke)
        self._move(stroke, beyond=beyond)
        cell.expect_contact(None)
        cell.begin("retreat")
        self._retreat()

    # The phases

    def _set_fingers(self, width: float) -> None:
        """Open the fingers just wide enough for a handle, so that they fit behind it."""
        gripper = self._cell.robot.gripper
        wanted = (width / 2 + _HANDLE_ROOM) * gripper.travel_per_metre + gripper.closed
        low, high = sorted((gripper.open, gripper.closed))
        self._bring_fingers(float(np.clip(wanted, low, high)))

    def _close_fingers(self) -> None:
        self._bring_fingers(self._cell.robot.gripper.closed)

    def _bring_fingers(self, target: float) -> None:
        cell = self._cell
        if cell.held:
            raise SkillFailure(Reason.GRIPPER_NOT_CLEAR, f"{cell.held} is still in the gripper")
        if abs(cell.opening - target) > 1e-6:
            for value in np.linspace(cell.opening, target, 5)[1:]:
                cell.command(opening=float(value))
            cell.wait(2)

    def _choose(self, grips: list[PartGrasp], goal: float) -> _Stroke:
        """Return the first grasp that covers the whole motion, or else the one that covers most."""
        best: _Stroke | None = None
        start = self._part.position
        for stroke in self._strokes(grips, goal):
            if abs(stroke.end - goal) < 1e-9:
                return stroke
            # Grasps are sorted by comfort: a later one must be clearly better to replace an earlier one.
            if best is None or abs(stroke.end - start) > 1.05 * abs(best.end - start):
                best = stroke
        if best is None:
            counts = ", ".join(f"{count} {what}" for what, count in self._attempts.items())
            raise SkillFailure(Reason.NO_GRASP, counts or f"{self._part.label} has nothing to take hold of")
        return best

    def _strokes(self, grips: list[PartGrasp], goal: float) -> Iterator[_Stroke]:
        cell, part = self._cell, self._part
        rng, start = cell.rng(), part.position
        for grip in [grip for grip in grips if not any(map(grip.resembles, self._tried))][:_MOST_GRIPS]:
            # A half turn of the hand gives the same grasp with other joint positions.
            for pose in (grip.world_T_tool, grip.world_T_tool @ _HALF_TURN):
                one = replace(grip, world_T_tool=pose)
                reach = self._reach(one, rng)
                if reach is None:
                    continue
                for share in _SHARES if grip.round else (1.0,) if grip.width else _SHARES[::-1]:
                    end = self._furthest(one, reach.end, start, goal, share)
                    if abs(end - start) < _LEAST_STROKE * abs(goal - start):
                        self._attempts["out of reach on the way"] += 1
                        continue
                    free = cell.planner.plan_joints(cell.look(), cell.arm_command, reach.positions[0], rng=rng)
                    if not free:
                        self._attempts[f"reach: {free.status}"] += 1
                        break
                    yield _Stroke(grip=one, share=share, way=(free, reach), end=end)

    def _reach(self, grip: PartGrasp, rng: np.random.Generator) -> MotionPlan | None:
        """Plan the straight approach to a grasp at which the fingers are clear of everything."""
        scene = self._cell.look()

        def is_clear(q: FloatArray) -> bool:
            """Return True if the robot is clear of everything at a posture (J,) [rad or m]."""
            return min(scene.contacts(q).values(), default=np.inf) > _FINGER_CLEARANCE

        found = solve_ik(
            scene, grip.world_T_tool, seed_q=self._cell.arm_command, rng=rng, solutions=1, restarts=3, accept=is_clear
        )
        if not found:
            self._attempts["grip not reached"] += 1
            return None
        outwards = trace_line(scene, found[0], _backed(grip.world_T_tool, self._approach))
        if outwards is None or scene.in_collision(outwards[-1]):
            self._attempts["approach not reached"] += 1
            return None
        reach = self._cell.planner.plan_line(scene, outwards[-1], grip.world_T_tool)
        if not reach:
            self._attempts[f"approach: {reach.status}"] += 1
        return reach or None

    def _furthest(self, grip: PartGrasp, q: FloatArray, start: float, goal: float, share: float) -> float:
        """Return the joint position up to which a hand can move the part without touching anything else."""
        scene, part = self._cell.look(), self._part
        poses = part.hand_path(grip.world_T_tool, start, goal, share=share)
        with scene.allow(part.label):
            path = trace_curve(scene, q, poses)
            free = 0
            while free + 1 < len(path) and not scene.touches(path[free + 1]):
                free += 1
        # Two steps of margin before the first contact or unreachable pose.
        return goal if free == len(poses) else start + (goal - start) * max(free - 2, 0) / len(poses)

    def _touch(self, stroke: _Stroke) -> None:
        """Move the finger tips forward by the gaps that the planning scene measures, until they touch the part."""
        cell, part = self._cell, self._part
        scene, q, goal = cell.look(), cell.arm_command, cell.tool_pose()
        into = part.pose[:3, :3] @ stroke.grip.into
        for _ in range(_FEELS):
            gap = self._gap(scene, q)
            goal[:3, 3] += gap * into
            following = scene.arm.solve(goal, q)
            if following is None or gap < _FELT:
                break
            q = following
        with scene.allow(part.label):
            plan = cell.planner.plan_line(scene, cell.arm_command, goal, speed=self._speed)
        cell.follow(plan, touching=[part.label])

    def _gap(self, scene: PlanningScene, q: FloatArray) -> float:
        """Return the distance of the gripper from the part in a posture [m]."""
        with scene.nearer(_MOST_GAP):
            gaps = [
                gap
                for pair, gap in scene.contacts(q).items()
                if self._part.label in pair and scene.gripper_bodies.intersection(pair)
            ]
        if not gaps:
            raise SkillFailure(Reason.NO_GRASP, f"the fingers are beside {self._part.label}")
        return max(min(gaps), 0.0)

    def _move(self, stroke: _Stroke, *, beyond: float = 0.0) -> None:
        """Move along the joint from the actual poses of hand and part, as far as the arm can."""
        cell, part = self._cell, self._part
        start, plan = part.position, MotionPlan(status=MotionStatus.NO_PATH)
        end = stroke.end + np.sign(stroke.end - start) * self._as_joint(beyond)
        scene = cell.look()
        # The motion is planned again from the actual poses, because closing fingers move the hand or the part.
        for length in _LENGTHS:
            poses = part.hand_path(cell.tool_pose(), start, start + length * (end - start), share=stroke.share)
            with scene.allow(part.label):
                plan = cell.planner.plan_curve(scene, cell.arm_command, poses, speed=self._speed)
            if plan:
                break
        cell.follow(plan, touching=[part.label])
        cell.wait(2)

    def _as_joint(self, distance: float) -> float:
        """Convert a displacement of the hand [m] to a joint displacement [rad or m]."""
        if self._part.model.joint.kind == "slide":
            return distance
        # Arc over radius is the angle; the floor avoids huge angles for a hand close to the axis.
        return distance / max(float(np.linalg.norm(self._cell.tool_pose()[:3, 3] - self._part.pose[:3, 3])), 0.02)

    def _retreat(self) -> None:
        """Retreat along the fingers or upward until nothing is touched, and open them."""
        cell, part, chosen = self._cell, self._part, MotionPlan(status=MotionStatus.NO_PATH)
        here, scene = cell.tool_pose(), cell.look()
        for length, up in itertools.product((1.4, 1.0, 0.6, 0.3), (0.0, 1.0)):
            goal = _backed(here, length * self._approach)
            goal[2, 3] += up * length * self._approach
            with scene.allow(part.label):
                plan = cell.planner.plan_line(scene, cell.arm_command, goal)
            if plan and not scene.in_collision(plan.end):
                chosen = plan
                break
            chosen = chosen or plan
        # No straight retreat exists: a free motion home may still leave the contact.
        if not chosen:
            with scene.allow(part.label):
                chosen = cell.planner.plan_joints(scene, cell.arm_command, cell.robot.arm.home, rng=cell.rng())
        cell.follow(chosen, touching=[part.label], opening=cell.robot.gripper.open)


def _backed(pose: FloatArray, distance: float) -> FloatArray:
    """Move a tool pose back along its approach [m]."""
    backed = pose.copy()
    backed[:3, 3] -= distance * pose[:3, 2]
    return backed
