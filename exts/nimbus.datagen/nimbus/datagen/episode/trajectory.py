"""Trajectory of one executed attempt: the robot's motion, all moving bodies, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from nimbus.datagen.arrays import FloatArray


class Reason(StrEnum):
    """Why an attempt failed. Every failed attempt has exactly one."""

    NONE = "none"
    NO_GRASP = "no_grasp"
    """No sampled grasp is reachable and free of collision."""
    NO_IK = "no_ik"
    NO_PATH = "no_path"
    COLLISION_AT_START = "collision_at_start"
    PLAN_REJECTED = "plan_rejected"
    """The plan touched something when it was re-checked in the simulator's geometry."""
    MISSED_GRASP = "missed_grasp"
    """The fingers closed and held nothing."""
    SLIPPED_AT_LIFT = "slipped_at_lift"
    SLIPPED_IN_TRANSIT = "slipped_in_transit"
    TRACKING_ERROR = "tracking_error"
    """The robot did not follow its commands: it pushed against something."""
    KNOCKED_OVER = "knocked_over"
    """An object that was not being handled moved."""
    WRONG_BIN = "wrong_bin"
    NOT_IN_BIN = "not_in_bin"
    ON_FLOOR = "on_floor"
    NOT_AT_REST = "not_at_rest"
    FIXTURE_MOVED = "fixture_moved"
    NO_ROOM = "no_room"
    """There is no free spot where something should be put."""
    OFF_TARGET = "off_target"
    """A moved object did not arrive at its target."""
    TOPPLED = "toppled"
    """An object fell over, or does not lie as required."""
    SPILLED = "spilled"
    """Poured or swept objects did not arrive at their target."""
    NOT_INSERTED = "not_inserted"
    NOT_HANGING = "not_hanging"
    NOT_WIPED = "not_wiped"
    NOT_ON = "not_on"
    """An object does not rest on its required support."""
    NOT_OPEN = "not_open"
    NOT_CLOSED = "not_closed"
    NOT_ALIGNED = "not_aligned"
    NOT_MOVED = "not_moved"
    NOT_HELD = "not_held"
    UNWANTED = "unwanted"
    """A condition holds that must not."""
    GIVEN_UP = "given_up"
    """The steps end the attempt."""
    GRIPPER_NOT_CLEAR = "gripper_not_clear"
    UNBELIEVABLE_CONTACT = "unbelievable_contact"
    """A contact sank deeper, or a held object crept faster in the hand, than an expert would believe."""
    NO_SUCH_ARM = "no_such_arm"
    """The robot has no arm of that name."""
    TIME_LIMIT = "time_limit"
    """A policy did not reach success in the steps that it had."""
    POLICY_ERROR = "policy_error"
    """The policy or its server failed; a fault, no failure at the task."""
    POLICY_TIMEOUT = "policy_timeout"
    """The policy did not answer in time; a fault, no failure at the task."""
    BAD_ACTION = "bad_action"
    """The policy answered with something that is no action; a fault, no failure at the task."""
    WILD_ACTION = "wild_action"
    """The policy asked for a motion that no arm makes, in an action of the right form: a failure of its own."""
    UNREACHABLE = "unreachable"
    """There is no path to such a goal, or it does not end there."""
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    TOO_STRAIGHT = "too_straight"
    TOO_CLOSE = "too_close"
    """The body comes nearer to something than it may."""
    DUPLICATE = "duplicate"
    """A path to the same goal runs as near as that already."""
    UNGROUNDED = "ungrounded"
    """Its instruction could name fewer things on the way than were asked for."""
    OUTSIDE_CAPTURE = "outside_capture"
    """Views on the way show what no splat covers."""
    UNSTABLE = "unstable"
    """The simulation left finite numbers."""


DISTURBED = "disturbed"
"""Skill of the rows from a push until the demonstrator plans again: no demonstration."""
TELEOPERATION = "teleoperation"
"""Skill of the rows that an operator commands."""
TRAIN, RECOVERY = "train", "recovery"
"""Splits of stored episodes: demonstrations as planned, and those in which something was pushed on the way."""
FAULTS = (Reason.POLICY_ERROR, Reason.POLICY_TIMEOUT, Reason.BAD_ACTION)
"""Reasons without meaning for the task: the attempt is repeated."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Success, or the phase and reason of the failure."""

    success: bool
    phase: str = ""
    """The skill step in which it failed, for example ``pick items_1`` or ``success``."""
    reason: Reason = Reason.NONE
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class SkillSegment:
    """Steps ``[start, stop)`` of a trajectory belong to one skill step and one phase of it."""

    start: int
    stop: int
    skill: str
    target: str
    """The object or place it acts on, or empty."""
    phase: str
    """Part of the skill, for example ``approach``, ``grasp``, ``lift``."""


@dataclass(frozen=True, kw_only=True, order=True)
class RelationSpan:
    """A relation of the scene graph, and the boundaries of skill steps at which it holds.

    The scene is looked at where each skill step begins, and at the end, whose number is that of all steps.
    """

    start: int
    """First boundary at which it holds, a step."""
    stop: int
    """Boundary at which it holds no longer; one more than all steps where it holds at the end."""
    relation: str
    """Name, such as ``in``, ``on``, ``beside`` or ``open``; ``execute.scene_graph`` computes them."""
    object: str
    target: str = ""
    """The other thing, ``world`` for table and floor; empty for a state of one thing."""


@dataclass(frozen=True, kw_only=True)
class StartState:
    """Full physics state at step 0: enough to run the actions again, with nothing else."""

    joint_positions: FloatArray
    """All generalized positions of the simulator, in its own order."""
    joint_velocities: FloatArray


@dataclass(frozen=True, kw_only=True)
class EndEffectors:
    """Poses of the tool frames of E arms in T steps, world frame."""

    names: tuple[str, ...]
    """Arms, in the order of the robot file"""
    positions: FloatArray
    """(T, E, 3) [m]"""
    wxyz: FloatArray
    """(T, E, 4) unit quaternions"""


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """States and actions at the record rate; row ``t`` of ``actions`` is commanded from row ``t`` of the states.

    ``T`` steps, ``J`` robot joints, ``A`` action entries, ``B`` bodies (robot links, objects).
    """

    rate: float
    """Rate of recording [Hz]."""
    time: FloatArray
    """(T,) [s]"""
    joint_names: tuple[str, ...]
    joint_positions: FloatArray
    """(T, J) [rad or m]"""
    joint_velocities: FloatArray
    """(T, J)"""
    action_names: tuple[str, ...]
    actions: FloatArray
    """(T, A) commanded joint positions [rad or m]; the last entry is the gripper's, one finger's travel."""
    executed_actions: FloatArray | None = None
    """(T, A) executed positions [rad or m]: ``actions`` with execution noise; None without noise."""
    body_names: tuple[str, ...]
    body_positions: FloatArray
    """(T, B, 3) [m], world frame"""
    body_wxyz: FloatArray
    """(T, B, 4) unit quaternions"""
    segments: tuple[SkillSegment, ...]
    outcome: Outcome
    start: StartState
    scene_graph: tuple[RelationSpan, ...] | None = None
    """Relations at the boundaries of skill steps, sorted; None in episodes of before."""
    end_effectors: EndEffectors | None = None
    """Poses of the tools; None unless the task asks for them."""
    contacts: dict[str, FloatArray] = field(default_factory=dict)
    """(T,) measures by name: ``held_penetration``, ``table_penetration``, ``held_slip`` [m], ``grip_force`` [N]."""
    signals: dict[str, FloatArray] = field(default_factory=dict)
    """(T,) what a body that drives would be judged by: ``clearance``, ``distance_to_goal``, ``progress`` [m]."""
    plan_statistics: dict[str, FloatArray] = field(default_factory=dict)
    """One row per executed motion: ``plan_time``, ``ik_time``, ``timing_time`` [s CPU], ``clearance`` [m],
    ``recheck_depth`` [m]: collision depth in the simulator's own geometry, 0 for none."""

    @property
    def step_count(self) -> int:
        """Number of recorded steps."""
        return len(self.time)

    def relations_at(self, boundary: int) -> tuple[RelationSpan, ...]:
        """Relations that hold where a skill step begins, or at the end, whose number is ``step_count``."""
        return tuple(span for span in self.scene_graph or () if span.start <= boundary < span.stop)
