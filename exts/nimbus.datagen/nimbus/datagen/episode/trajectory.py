"""Trajectory of one executed attempt: motion of the robot and of all moving bodies, and the outcome."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from nimbus.datagen.arrays import FloatArray

_OWN_REASON = re.compile("[a-z_]{1,40}")


class Reason(StrEnum):
    """Reason of a failure. Every failed attempt has exactly one.

    The members are the reasons of Nimbus. ``Reason("no_nudge")`` is a reason that a plug-in declares: up to 40 letters
    from a to z and ``_``.
    """

    NONE = "none"
    NO_GRASP = "no_grasp"
    """No sampled grasp is reachable and collision-free."""
    NO_IK = "no_ik"
    NO_PATH = "no_path"
    COLLISION_AT_START = "collision_at_start"
    PLAN_REJECTED = "plan_rejected"
    """The plan collided when it was checked again in the simulator's geometry."""
    MISSED_GRASP = "missed_grasp"
    """The fingers closed without holding anything."""
    SLIPPED_AT_LIFT = "slipped_at_lift"
    SLIPPED_IN_TRANSIT = "slipped_in_transit"
    TRACKING_ERROR = "tracking_error"
    """The robot did not follow its commands, because it pushed against something."""
    KNOCKED_OVER = "knocked_over"
    """The robot moved an object that it was not handling."""
    WRONG_BIN = "wrong_bin"
    NOT_IN_BIN = "not_in_bin"
    ON_FLOOR = "on_floor"
    NOT_AT_REST = "not_at_rest"
    FIXTURE_MOVED = "fixture_moved"
    NO_ROOM = "no_room"
    """There is no free position where an object should be put."""
    OFF_TARGET = "off_target"
    """A moved object did not arrive at its target."""
    TOPPLED = "toppled"
    """An object fell over, or is not in the required orientation."""
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
    NOT_FOLDED = "not_folded"
    """A cloth is not folded: its corners are apart, or it lies in a heap."""
    NOT_ROUTED = "not_routed"
    """A cable does not pass through a gate."""
    UNWANTED = "unwanted"
    """A condition that must not hold does hold."""
    GIVEN_UP = "given_up"
    """A step of the task ended the attempt."""
    GRIPPER_NOT_CLEAR = "gripper_not_clear"
    UNBELIEVABLE_CONTACT = "unbelievable_contact"
    """A contact was implausible: it penetrated too deeply, or a held object crept too fast in the hand."""
    NO_SUCH_ARM = "no_such_arm"
    """The robot has no arm with that name."""
    TIME_LIMIT = "time_limit"
    """A policy did not succeed within its number of steps."""
    POLICY_ERROR = "policy_error"
    """The policy or its server failed; this is a fault, not a failure at the task."""
    POLICY_TIMEOUT = "policy_timeout"
    """The policy did not answer in time; this is a fault, not a failure at the task."""
    BAD_ACTION = "bad_action"
    """The policy's answer is not an action; this is a fault, not a failure at the task."""
    WILD_ACTION = "wild_action"
    """The policy requested an impossible motion in a valid action; this is a failure of the policy."""
    UNREACHABLE = "unreachable"
    """There is no path to the goal, or the path does not end there."""
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    TOO_STRAIGHT = "too_straight"
    TOO_CLOSE = "too_close"
    """The body comes nearer to an obstacle than allowed."""
    DUPLICATE = "duplicate"
    """Another path to the same goal already takes nearly this route."""
    UNGROUNDED = "ungrounded"
    """The instruction could name fewer objects on the way than requested."""
    OUTSIDE_CAPTURE = "outside_capture"
    """Views on the way show areas that no splat covers."""
    UNSTABLE = "unstable"
    """The simulation produced numbers that are not finite."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        """Return the reason of a plug-in; it is not added to the members, because files of others can name any."""
        if not (isinstance(value, str) and _OWN_REASON.fullmatch(value)):
            raise ValueError(f"{ascii(value)[:60]} is not a reason: write up to 40 letters from a to z and _")
        own = str.__new__(cls, value)
        own._name_, own._value_ = value.upper(), value
        return own


DISTURBED = "disturbed"
"""Skill of the rows from a push until the demonstrator plans again; these rows are not demonstrations."""
TELEOPERATION = "teleoperation"
"""Skill of the rows that an operator commands."""
TRAIN, RECOVERY = "train", "recovery"
"""Splits of stored episodes: demonstrations without a push, and demonstrations with one."""
FAULTS = (Reason.POLICY_ERROR, Reason.POLICY_TIMEOUT, Reason.BAD_ACTION)
"""Reasons that are faults of a policy or its server rather than failures at the task; the attempt is repeated."""


ACTIVITIES = {
    "still": "the arm did not move",
    "reach": "no object moved",
    "touch": "an object touched",
    "hold": "an object held",
    "after": "an object moved, none held",
}
"""State at the end of a failed rollout, by the phase of its outcome; phases of skills have several words."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Success, or the phase and reason of the failure."""

    success: bool
    phase: str = ""
    """Skill step in which the attempt failed, such as ``pick items_1``, or ``success``."""
    reason: Reason = Reason.NONE
    detail: str = ""

    def __post_init__(self) -> None:
        if type(self.reason) is str:  # as the conditions of plug-ins may write it
            object.__setattr__(self, "reason", Reason(self.reason))


@dataclass(frozen=True, kw_only=True)
class SkillSegment:
    """Steps ``[start, stop)`` of a trajectory that belong to one phase of one skill step."""

    start: int
    stop: int
    skill: str
    target: str
    """Object or position on which the skill acts; empty for none."""
    phase: str
    """Phase of the skill, such as ``approach``, ``grasp`` or ``lift``."""


@dataclass(frozen=True, kw_only=True, order=True)
class RelationSpan:
    """Relation of the scene graph, and the boundaries of skill steps between which it holds.

    The scene is evaluated at the start of each skill step, and at the end, whose index is the number of all steps.
    """

    start: int
    """First boundary at which the relation holds, as the index of a step."""
    stop: int
    """First boundary at which it does not hold any more; the number of all steps plus one if it holds at the end."""
    relation: str
    """Name, such as ``in``, ``on``, ``beside`` or ``open``; computed by ``execute.scene_graph``."""
    object: str
    target: str = ""
    """Other object; ``world`` for table and floor; empty for the state of a single object."""


@dataclass(frozen=True, kw_only=True)
class StartState:
    """Full state of physics at step 0, sufficient to execute the actions again."""

    joint_positions: FloatArray
    """All generalized positions of the simulator, in its order."""
    joint_velocities: FloatArray


@dataclass(frozen=True, kw_only=True)
class EndEffectors:
    """Poses of the tools of E arms in T steps, in the world frame."""

    names: tuple[str, ...]
    """Names of the arms, in the order of the robot file."""
    positions: FloatArray
    """(T, E, 3) positions [m]."""
    wxyz: FloatArray
    """(T, E, 4) unit quaternions, wxyz."""


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """States and actions at the record rate. Row ``t`` of ``actions`` is commanded in the state of row ``t``.

    ``T`` steps, ``J`` robot joints, ``A`` action entries, ``B`` bodies (robot links, objects).
    """

    rate: float
    """Rate of recording [Hz]."""
    time: FloatArray
    """(T,) time [s]."""
    joint_names: tuple[str, ...]
    joint_positions: FloatArray
    """(T, J) positions [rad or m]."""
    joint_velocities: FloatArray
    """(T, J) velocities [rad/s or m/s]."""
    action_names: tuple[str, ...]
    actions: FloatArray
    """(T, A) commanded joint positions [rad or m]; the last entry of each arm is its gripper, a finger's travel."""
    executed_actions: FloatArray | None = None
    """(T, A) executed positions [rad or m], which are ``actions`` plus execution noise; None without noise."""
    body_names: tuple[str, ...]
    body_positions: FloatArray
    """(T, B, 3) positions in the world frame [m]."""
    body_wxyz: FloatArray
    """(T, B, 4) unit quaternions, wxyz."""
    segments: tuple[SkillSegment, ...]
    outcome: Outcome
    start: StartState
    scene_graph: tuple[RelationSpan, ...] | None = None
    """Relations at the boundaries of skill steps, sorted; None in older episodes."""
    end_effectors: EndEffectors | None = None
    """Poses of the tools; None unless the task requests them."""
    contacts: dict[str, FloatArray] = field(default_factory=dict)
    """(T,) quality by name: ``held_penetration``, ``table_penetration``, ``held_slip`` [m], ``grip_force`` [N]."""
    signals: dict[str, FloatArray] = field(default_factory=dict)
    """(T,) quality measures of a driving body by name: ``clearance``, ``distance_to_goal``, ``progress`` [m]."""
    plan_statistics: dict[str, FloatArray] = field(default_factory=dict)
    """One row per executed motion: ``plan_time``, ``ik_time``, ``timing_time`` [CPU s], ``clearance`` [m], and
    ``recheck_depth`` [m], the depth of a collision in the simulator's own geometry, 0 for none."""

    @property
    def step_count(self) -> int:
        """Number of recorded steps."""
        return len(self.time)

    def relations_at(self, boundary: int) -> tuple[RelationSpan, ...]:
        """Return the relations that hold at the start of a skill step, or at the end, whose index is ``step_count``."""
        return tuple(span for span in self.scene_graph or () if span.start <= boundary < span.stop)
