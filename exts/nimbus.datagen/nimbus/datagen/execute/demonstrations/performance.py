"""Execution of a demonstrated subtask: free motion to its start, then the motion near the object as demonstrated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.articulation import JointedPart
from nimbus.datagen.execute.demonstrations.candidates import Candidate, HeldNow, list_candidates
from nimbus.datagen.execute.demonstrations.demonstration_file import (
    HAND,
    ON,
    DemonstrationFile,
    GripperEvent,
    Take,
    Track,
    extents_of,
)
from nimbus.datagen.execute.demonstrations.retiming import time_postures
from nimbus.datagen.plan.curve import trace_curve
from nimbus.datagen.plan.ik import solve_ik
from nimbus.datagen.plan.motion import MotionPlan
from nimbus.datagen.plan.scene import PlanningScene
from nimbus.datagen.tasks.statements import SkillFailure
from nimbus.datagen.tasks.workcell_interface import Workcell

_MOST_TRIES = 10
"""Largest number of candidates whose kinematics are computed."""
_DEEPEST = 0.002
"""Penetration of other objects at which a motion is refused [m]."""
_LOOKED_AT = 3
"""Stride of the rows checked for collisions in a demonstrated motion."""
_CHOICE = 0.02
"""Mean of the random number that is added to a candidate's change [m], so that different attempts may try different
takes."""
_BLEND = 6
"""Record periods over which a hand returns to its path after closing fingers have pushed it aside."""
_YIELDS = 4
"""Largest number of times that an arm may yield to an obstacle between two gripper events."""
_ASIDE, _ASKEW = 0.006, 0.2
"""Largest deviation of a hand from its path where a joint is at its limit [m, rad]."""
_YIELD_STEPS, _YIELD_STEP = 6, 0.03
"""Iterations of inverse kinematics per row, and the largest joint step of an iteration [rad]."""
_FINGER_STEPS = 4
"""Record periods in which fingers move to their initial opening."""
_SAME_OPENING = 0.05
"""Difference between two openings up to which the fingers stay, as a fraction of the full opening."""


@dataclass(frozen=True, kw_only=True)
class ReachableTake:
    """A candidate that all arms can follow."""

    candidate: Candidate
    plans: Mapping[str, MotionPlan]
    """Free motion to the start of the path, by arm."""
    postures: Mapping[str, FloatArray]
    """Postures (N, J) along the path, by arm [rad or m]."""


class DemonstratedMotion:
    """Subtask of a demonstration, repeated in the current scene.

    Args:
        arm: Any arm of the robot.
        demonstration: The takes.
        on: Object in whose frame the takes are; empty for the world.
    """

    def __init__(self, arm: Workcell, demonstration: DemonstrationFile, on: str) -> None:
        unknown = [name for name in demonstration.arms if name not in arm.arms]
        if unknown and len(demonstration.arms) > 1:
            raise InputError(
                f"the demonstration of '{demonstration.subtask}' needs the arms {', '.join(demonstration.arms)}; "
                f"this robot has {', '.join(arm.arms)}",
                where="do",
                instead="record a demonstration with this robot",
            )
        # A robot with one arm, or a step of `parallel:`, accepts a demonstration of one arm of any name.
        only = len(demonstration.arms) == 1
        self._arms = {name: arm if only and unknown else arm.arm(name) for name in demonstration.arms}
        self._first, self._demonstration, self._on = arm, demonstration, on

    def run(self) -> None:
        """Choose a take, move to its start and repeat it.

        Raises:
            SkillFailure: No take can be reached, a grasp missed, or an arm did not follow.
        """
        self._check_hands()
        self._label("reach")
        self._set_fingers()
        chosen = self._choose()
        self._each({name: partial(self._arms[name].follow, plan) for name, plan in chosen.plans.items()})
        self._repeat(chosen)
        for name, arm in self._arms.items():
            self._finish(arm, chosen.candidate.take.tracks[name].events)

    # Before the motion

    def _check_hands(self) -> None:
        for name, arm in self._arms.items():
            wanted = {bool(take.tracks[name].held) for take in self._demonstration.takes}
            if arm.held and wanted == {False}:
                raise SkillFailure(Reason.GRIPPER_NOT_CLEAR, f"{arm.held} is still in the gripper")
            if not arm.held and wanted == {True}:
                kind = self._demonstration.takes[0].tracks[name].held
                raise SkillFailure(Reason.MISSED_GRASP, f"a {kind} should be in the gripper")
            if arm.held:
                arm.end_transport()

    def _set_fingers(self) -> None:
        """Move empty fingers to the opening at the start of most takes."""
        for name, arm in self._arms.items():
            gripper = arm.robot.gripper
            share = float(np.median([take.tracks[name].opening for take in self._demonstration.takes]))
            target = gripper.closed + share * (gripper.open - gripper.closed)
            if not arm.held and abs(arm.opening - target) > _SAME_OPENING * abs(gripper.open - gripper.closed):
                for value in np.linspace(arm.opening, target, _FINGER_STEPS + 1)[1:]:
                    arm.command(opening=float(value))

    def _frame(self) -> tuple[FloatArray, str, str]:
        """Return pose (4, 4), kind and symmetry of the object in whose frame the takes are."""
        pose, kind, symmetry = self._own_frame()
        if self._demonstration.axes == "thing":
            return pose, kind, symmetry
        # With the axes of the world, the object only shifts the motion; its heading does not turn it.
        upright = np.eye(4)
        upright[:3, 3] = pose[:3, 3]
        return upright, kind, "none"

    def _own_frame(self) -> tuple[FloatArray, str, str]:
        cell, name = self._first, self._on
        if not name:
            return np.eye(4), "", "none"
        if name in cell.regions:
            region, pose = cell.regions[name], np.eye(4)
            pose[:3, 3] = (*region.center, cell.stage.surfaces[region.on].upper[2])
            return pose, "", "none"
        if name in cell.objects:
            kind, symmetry, part = cell.objects[name].kind, cell.model(name).symmetry, self._demonstration.part
            if not part:
                return cell.pose(name), kind, symmetry
            return JointedPart(cell, name, part).pose, kind, "none"
        return cell.pose(name), "", "none"

    def _candidates(self) -> list[Candidate]:
        pose, kind, symmetry = self._frame()
        held = {
            name: HeldNow(
                kind=arm.objects[arm.held].kind,
                symmetry=arm.model(arm.held).symmetry,
                tool_T_held=arm.tool_T_held(),
                size=extents_of(arm.model(arm.held).vertices),
            )
            for name, arm in self._arms.items()
            if arm.held and arm.held in arm.objects
        }
        lead = next(iter(self._first.arms.values()))  # takes are stored relative to the first arm of the robot
        base = lead.pose(lead.base_link())[:3, 3]
        found = list_candidates(
            self._demonstration,
            world_T_frame=pose,
            base=base,
            kind=kind,
            symmetry=symmetry,
            held=held,
            size=extents_of(lead.model(self._on).vertices) if self._on in lead.objects else None,
        )
        extra = self._first.rng().exponential(_CHOICE, size=len(found))
        order = np.argsort([candidate.change for candidate in found] + extra, kind="stable")
        return [found[int(place)] for place in order]

    def _choose(self) -> ReachableTake:
        """Return the first candidate that every arm can reach and follow."""
        reasons: Counter[str] = Counter()
        for candidate in self._candidates()[:_MOST_TRIES]:
            plans: dict[str, MotionPlan] = {}
            postures: dict[str, FloatArray] = {}
            # A candidate needs a path for every arm; the first arm without one excludes it.
            for name, arm in self._arms.items():
                found = self._reach(arm, candidate, name)
                if isinstance(found, str):
                    reasons[found] += 1
                    break
                plans[name], postures[name] = found
            else:
                self._first.note(change=candidate.change)
                return ReachableTake(candidate=candidate, plans=plans, postures=postures)
        counts = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        raise SkillFailure(Reason.NO_IK, f"{self._demonstration.subtask}: {counts}")

    def _partners(self, candidate: Candidate, name: str) -> set[str]:
        """Return the objects that an arm touches in a take."""
        targets = {self._thing(event.on) for event in candidate.take.tracks[name].events if event.on}
        held = {arm.held for arm in self._arms.values() if arm.held}
        return {thing.split(".")[0] for thing in targets | held | {self._on} if thing}

    def _reach(self, arm: Workcell, candidate: Candidate, name: str) -> tuple[MotionPlan, FloatArray] | str:
        """Return the free motion to a path and the postures along it, or the reason why none exists.

        A path whose last part, after the last gripper event, is out of reach ends earlier.
        """
        path, partners, rng = candidate.paths[name], self._partners(candidate, name), arm.rng()
        scene, needed, reason = arm.look(), _needed_rows(candidate.take), "starts out of reach"
        for start in self._starts(arm, scene, path[0], candidate.take.tracks[name].posture, rng):
            postures = trace_curve(scene, start, list(path[1:]))
            # An exact path may end at a joint limit that a path with small deviations passes.
            if len(postures) < len(path):
                postures = _trace_nearly(scene, start, path[1:])
            if len(postures) < needed:
                reason = "out of reach on the way"
                continue
            if blocked := self._collision(arm, postures, partners):
                reason = f"against {blocked}"
                continue
            plan = arm.planner.plan_joints(scene, arm.arm_command, start, rng=rng)
            if plan:
                return plan, postures
            reason = f"reach {plan.status}"
        return reason

    def _starts(
        self,
        arm: Workcell,
        scene: PlanningScene,
        pose: FloatArray,
        shown: tuple[float, ...] | None,
        rng: np.random.Generator,
    ) -> list[FloatArray]:
        """Return postures at the start of a path.

        Postures like the demonstrated one come first, because the demonstrated arm could follow the path from there.
        """
        found = list[FloatArray]()
        if shown is not None and len(shown) == len(arm.arm_command):
            found += solve_ik(scene, pose, seed_q=shown, rng=rng, solutions=1, restarts=3)
        return [*found, *solve_ik(scene, pose, seed_q=arm.arm_command, rng=rng, solutions=2, restarts=6)]

    def _collision(self, arm: Workcell, postures: FloatArray, partners: set[str]) -> str:
        """Return the name of an object that a path collides with, except for ``partners``; empty for none."""
        scene = arm.look()
        robot = {*arm.robot.gripper.links, *arm.robot.gripper.fingers}
        for posture in postures[::_LOOKED_AT]:
            for pair, distance in scene.contacts(posture).items():
                things = {body.split(".")[0] for body in pair}
                if distance < -_DEEPEST and not things & partners:
                    return next((thing for thing in sorted(things) if thing not in robot), sorted(things)[0])
        return ""

    # The motion

    def _repeat(self, chosen: ReachableTake) -> None:
        """Follow the postures of all arms in step, and perform the gripper events at their rows."""
        take = chosen.candidate.take
        count = min(map(len, chosen.postures.values()))
        rows = sorted({0, count - 1, *(min(e.row, count - 1) for track in take.tracks.values() for e in track.events)})
        done: set[int] = set()
        for begin, end in zip(rows, (*rows[1:], rows[-1]), strict=True):
            self._events(take.tracks, begin, done, is_last=begin == count - 1)
            if end > begin:
                self._label("follow")
                self._stretch(chosen, begin, end, take.rate)

    def _stretch(self, chosen: ReachableTake, begin: int, end: int, rate: float) -> None:
        names = list(self._arms)
        paths = time_postures(
            [chosen.postures[name][begin : end + 1] for name in names],
            rate=rate,
            period=1.0 / self._first.simulation.rate,
            limits=[self._arms[name].robot.arm.velocity_limits for name in names],
        )
        works = {}
        for name, path in zip(names, paths, strict=True):
            arm = self._arms[name]
            works[name] = partial(_follow_rows, arm, chosen.postures[name][begin], path)
        self._each(works)

    def _events(self, tracks: Mapping[str, Track], begin: int, done: set[int], *, is_last: bool) -> None:
        works = {}
        for name, track in tracks.items():
            # The last reachable row also performs the events of later rows.
            events = [event for event in track.events if id(event) not in done and (event.row <= begin or is_last)]
            done.update(map(id, events))
            if events:
                works[name] = partial(self._handle, self._arms[name], events)
        if works:
            self._each(works)

    def _handle(self, arm: Workcell, events: Sequence[GripperEvent]) -> None:
        gripper = arm.robot.gripper
        for event in events:
            if event.action == "close":
                arm.begin("grasp")
                thing = self._thing(event.on)
                if not arm.close_on(thing):
                    raise SkillFailure(Reason.MISSED_GRASP, f"the fingers closed next to {thing}")
            elif event.action == "open":
                arm.begin("release")
                arm.open()
            else:
                arm.begin("fingers")
                target = gripper.closed + event.opening * (gripper.open - gripper.closed)
                for value in np.linspace(arm.opening, target, _FINGER_STEPS + 1)[1:]:
                    arm.command(opening=float(value))

    def _thing(self, role: str) -> str:
        """Return the name of the object in a role of the demonstration."""
        if role.startswith(HAND):
            giver = self._first.arm(role.removeprefix(HAND))
            if giver.held is None:
                raise SkillFailure(Reason.NOT_HELD, f"nothing is in the hand of {giver.name}")
            return giver.held
        return self._on + role.removeprefix(ON)

    def _finish(self, arm: Workcell, events: Sequence[GripperEvent]) -> None:
        """Check the grip at the end; from now on the object is in transport."""
        if arm.held is None:
            return
        if not arm.is_gripping(arm.held):
            raise SkillFailure(Reason.SLIPPED_AT_LIFT, f"{arm.held} slipped out of the fingers")
        others = {other.held for other in arm.arms.values() if other.name != arm.name}
        if events and arm.held in arm.objects and arm.held not in others:
            arm.carry()

    def _label(self, phase: str) -> None:
        for arm in self._arms.values():
            arm.begin(phase)

    def _each(self, works: Mapping[str, Callable[[], object]]) -> None:
        """Run a function for each arm, in parallel for several."""
        if len(self._arms) == 1:
            next(iter(works.values()))()
        else:
            self._first.together({self._arms[name].name: partial(_call, work) for name, work in works.items()})


def _trace_nearly(scene: PlanningScene, start: FloatArray, poses: FloatArray) -> FloatArray:
    """Return postures (N, J) that approximate the poses (4, 4) within joint limits, up to the first that deviates.

    The operator's arm also deviated at joint limits, for example while a tilted hand pulled a drawer.
    """
    path = [start]
    for pose in poses:
        posture = scene.arm.approach(pose, path[-1], iterations=_YIELD_STEPS, max_step=_YIELD_STEP)
        actual = scene.arm.tool_pose(posture)
        cosine = (np.trace(actual[:3, :3].T @ pose[:3, :3]) - 1) / 2
        turned = np.arccos(np.clip(cosine, -1.0, 1.0))
        if np.linalg.norm(actual[:3, 3] - pose[:3, 3]) > _ASIDE or turned > _ASKEW:
            break
        path.append(posture)
    return np.array(path)


def _needed_rows(take: Take) -> int:
    """Return the number of rows that an arm must reach: all up to the middle of the retreat."""
    tracks = take.tracks.values()
    count = len(next(iter(tracks)).poses)
    last = max((event.row for track in tracks for event in track.events), default=count)
    return min(count, last + (count - last + 1) // 2)


def _call(work: Callable[[], object]) -> None:
    work()


def _follow_rows(arm: Workcell, start: FloatArray, path: FloatArray) -> None:
    """Command postures (M, J), and reduce the arm's initial offset from them to zero.

    A blocked arm yields a few times: it accepts its actual posture and continues the path with this offset.
    """
    shift, kept, yields = arm.arm_command - start, np.zeros(len(start)), 0
    for row, posture in enumerate(path, start=1):
        try:
            arm.command(posture + kept + shift * max(0.0, 1.0 - row / _BLEND))
        except SkillFailure as failure:
            yields += 1
            if failure.reason is not Reason.TRACKING_ERROR or yields > _YIELDS:
                raise
            actual = np.array([arm.simulation.data.joint(name).qpos[0] for name in arm.robot.arm.joints])
            # Catching up with the path would press harder against the obstacle.
            shift, kept = np.zeros(len(start)), actual - posture
