"""The interface of a policy: in an episode, it turns observations into chunks of actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import EpisodeKey
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.policies.signal_view import SignalView

DEFAULT_LIMIT = 200
"""Steps of an episode at most, where neither the policy nor its demonstrations state a length."""
TIMES_LONGEST = 2
"""Steps that an episode of a policy may take, in lengths of the longest demonstration."""

STILL = "still"
"""Activity of a robot whose arms have never left the start."""
ASKED_AGAIN = 50
"""At layouts whose index is divisible by this, a policy answers the first observation twice, from one seed."""
ANSWER_SPREAD = "answer_spread"
"""Plan statistic: largest difference between the two answers [unit of the action]."""
CLIPPED = "clipped_actions"
"""Plan statistic: number of carried out actions that had a command beyond the robot's limits."""
ANSWER_WAIT = "answer_wait"
"""Time of an attempt: until the answers came, over all of them [s of the wall]."""


class PolicyFault(Exception):
    """The policy did not answer as it must: a fault of the policy or of its server, no failure at the task."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


class WildAction(Exception):
    """An action of the right form that no arm could carry out: it comes again with each repetition."""


@dataclass(frozen=True, kw_only=True)
class PolicyTask:
    """Conventions of a task's observations and actions; the same in all of its episodes."""

    name: str
    robot: str
    rate: float
    """Actions a second [Hz]."""
    joint_names: tuple[str, ...]
    """Names of the entries of ``velocity``."""
    action_names: tuple[str, ...]
    action_low: FloatArray
    """(A,) smallest commands [rad or m]."""
    action_high: FloatArray
    """(A,) largest commands [rad or m]."""
    cameras: Mapping[str, tuple[int, int]]
    """Width and height [px] by name."""
    feature_names: tuple[str, ...] = ()
    """Names of the entries of ``environment_state``."""
    state_names: tuple[str, ...] = ()
    """Names of the entries of ``state``: those of the joints, where none are given."""
    control_mode: str = "joint"
    rotation: str = "6d"
    """Form of rotations, where the control mode has some."""

    def __post_init__(self) -> None:
        """Name the state."""
        if not self.state_names:
            object.__setattr__(self, "state_names", self.joint_names)


@dataclass(frozen=True, kw_only=True)
class PolicyEpisode:
    """Episode to begin."""

    key: EpisodeKey
    instruction: str
    seed: int
    """Seed for a policy that samples, the same in every evaluation of this episode."""

    @property
    def id(self) -> str:
        """Id of the episode."""
        return self.key.id


@dataclass(frozen=True, kw_only=True)
class PolicyObservation:
    """State of the scene when the policy is asked."""

    step: int
    """Record periods since the start."""
    state: FloatArray
    """(S,) joint positions, measured, or in the form of the policy's view [rad or m]."""
    velocity: FloatArray
    """(J,) [rad/s or m/s]"""
    images: Mapping[str, NDArray[np.uint8]]
    """(H, W, 3) sRGB by camera: those that the policy asks for."""
    environment_state: FloatArray
    """(F,) the scene in numbers, see :mod:`nimbus.datagen.policies.features`; empty unless asked for."""
    instruction: str


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Parts of an observation that a policy looks at; the others are not made."""

    cameras: Sequence[str] | None = None
    """Names of cameras; None: all that the task has."""
    environment_state: bool = False


class Policy(ABC):
    """Acts in episodes of one task.

    A policy in a Python file may derive from this class, or have the same methods.
    """

    needs: Needs = Needs()
    identity: str = ""
    """Text that differs between two policies: a hash of the weights. It enters the results."""
    limit: int = 0
    """Steps that an episode may take; 0: not known."""
    horizon: int = 0
    """Actions of an answer; 0: not known."""
    view: SignalView | None = None
    """Signals that it was trained on; None: not known, and taken for those that are stored."""
    trained_layouts: Mapping[str, Sequence[int]] = MappingProxyType({})
    """Indices of the layouts that it was trained on, by :func:`layout_source`; empty: not known."""

    def begin_task(self, task: PolicyTask) -> None:
        """Take the conventions of the task; called once, before the first episode.

        Raises:
            InputError: They are not those of the policy.
        """
        return

    def reset(self, episode: PolicyEpisode) -> None:
        """Begin an episode: forget the one before."""
        return

    @abstractmethod
    def act(self, observation: PolicyObservation) -> NDArray[np.floating]:
        """Choose the next actions.

        Returns:
            (K, A) commanded positions of all arms and grippers [rad or m], or actions of its view; the first for now.
        """

    def close(self) -> None:
        """Release the policy's resources."""
        return


def layout_source(task: str, split: str, seed: int) -> str:
    """Name the split that indices of layouts refer to."""
    return f"{task}:{split}:{seed}"


@dataclass(frozen=True, kw_only=True)
class CheckedAnswer:
    """A policy's answer, checked."""

    actions: FloatArray
    """(K, A) within the robot's limits."""
    clipped: int = 0
    """Rows with a command beyond the limits."""


_FURTHEST = 0.5
"""[rad or m] A first action further from the posture than this is a jump: the largest of our demonstrations is 0.2."""


def check_rows(answer: object, *, names: Sequence[str], execute: int) -> FloatArray:
    """Check and return the rows (K, M) of an answer.

    Args:
        answer: Answer of the policy.
        names: Names of its M entries.
        execute: Number of rows to execute.

    Raises:
        PolicyFault: It is not an array of that form, too short, or not finite.
    """
    width = len(names)
    try:
        rows = np.asarray(answer, dtype=float)
    except (TypeError, ValueError) as error:
        raise PolicyFault(Reason.BAD_ACTION, f"not an array of numbers: {error}") from None
    if rows.ndim != 2 or rows.shape[1] != width or not len(rows):
        raise PolicyFault(Reason.BAD_ACTION, f"shape {rows.shape}, expected (K, {width}): {', '.join(names)}")
    if len(rows) < execute:
        raise PolicyFault(Reason.BAD_ACTION, f"{len(rows)} actions, {execute} are to be executed: lower --execute")
    if not np.isfinite(rows).all():
        raise PolicyFault(Reason.BAD_ACTION, "an action is not finite")
    return rows


def check_actions(answer: object, *, task: PolicyTask, posture: FloatArray, execute: int, first: bool) -> CheckedAnswer:
    """Check commands that a policy answered.

    Args:
        answer: (K, A) commands, as the policy gave them.
        task: The task's conventions.
        posture: (A,) the action that asks for the present posture [rad or m].
        execute: Rows that are to be executed.
        first: They are the episode's first, which must begin near the posture.

    Raises:
        PolicyFault: It is not an array of that form, not finite, or in other units: the episode's first answer is
            beyond a joint's limits by more than its range.
        WildAction: The episode begins far from the posture, or a later answer is so far beyond the limits.
    """
    rows = check_rows(answer, names=task.action_names, execute=execute)
    limited = np.clip(rows, task.action_low, task.action_high)
    beyond = np.abs(rows - limited) > task.action_high - task.action_low
    if beyond.any():
        row, entry = np.argwhere(beyond)[0]
        limits = f"{task.action_low[entry]:.2f} to {task.action_high[entry]:.2f}"
        detail = f"{task.action_names[entry]} of {rows[row, entry]:.2f} is far beyond {limits}; expected rad and m"
        # An answer in other units is so from the first one on; what comes later is the policy's own.
        raise PolicyFault(Reason.BAD_ACTION, detail) if first else WildAction(detail)
    if first and (away := np.abs(rows[0] - posture)).max() > _FURTHEST:
        name = task.action_names[int(away.argmax())]
        raise WildAction(f"{name} starts {away.max():.2f} from the posture; expected absolute positions in rad and m")
    return CheckedAnswer(actions=limited, clipped=int((limited != rows).any(axis=1).sum()))
