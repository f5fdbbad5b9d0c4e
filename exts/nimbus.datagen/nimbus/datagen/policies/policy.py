"""Interface of a policy, which maps the observations of an episode to chunks of actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import EpisodeKey
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.policies.signal_view import SignalView

DEFAULT_LIMIT = 200
"""Largest number of steps of an episode when neither the policy nor its demonstrations give a length."""
TIMES_LONGEST = 2
"""Largest number of steps of a policy's episode, as a multiple of the longest demonstration."""

STILL = "still"
"""Activity of a robot whose arms have never left the start."""
ASKED_AGAIN = 50
"""At layouts whose index is divisible by this, the first observation is answered twice with the same seed."""
ANSWER_SPREAD = "answer_spread"
"""Plan statistic: largest difference between the two answers [unit of the action]."""
CLIPPED = "clipped_actions"
"""Plan statistic: number of executed actions that had a command beyond the robot's limits."""
CLIPPED_ARM = "clipped_arm_actions"
"""Plan statistic: number of those with a command beyond the limits of an arm joint, not only of a gripper."""
ARM_EXCESS, GRIPPER_EXCESS = "clipped_arm_excess", "clipped_gripper_excess"
"""Plan statistics: largest excess of a command over the limits of an arm joint and of a gripper [rad or m]."""
ANSWER_WAIT = "answer_wait"
"""Name of an attempt's total time of waiting for answers [s, wall clock]."""


class PolicyFault(Exception):
    """Raised when a policy or its server gives no valid answer; this is a fault, not a failure at the task."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


class WildAction(Exception):
    """Raised for a valid action that no arm can execute; a retry would only repeat it."""


@dataclass(frozen=True, kw_only=True)
class PolicyTask:
    """Conventions of a task's observations and actions; they are the same in all of its episodes."""

    name: str
    robot: str
    rate: float
    """Actions per second [Hz]."""
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
    """Names of the entries of ``state``; by default those of the joints."""
    control_mode: str = "joint"
    rotation: str = "6d"
    """Form of rotations, for control modes that have rotations."""

    def __post_init__(self) -> None:
        """Set the default names of the state."""
        if not self.state_names:
            object.__setattr__(self, "state_names", self.joint_names)


@dataclass(frozen=True, kw_only=True)
class PolicyEpisode:
    """Episode to begin."""

    key: EpisodeKey
    instruction: str
    seed: int
    """Seed for policies that sample; it is the same in every evaluation of this episode."""

    @property
    def id(self) -> str:
        """Id of the episode."""
        return self.key.id


@dataclass(frozen=True, kw_only=True)
class PolicyObservation:
    """State of the scene when the policy is queried."""

    step: int
    """Number of record periods since the start."""
    state: FloatArray
    """(S,) measured joint positions, or the state in the form of the policy's view [rad or m]."""
    velocity: FloatArray
    """(J,) [rad/s or m/s]"""
    images: Mapping[str, NDArray[np.uint8]]
    """(H, W, 3) sRGB by camera, for the cameras that the policy requests."""
    environment_state: FloatArray
    """(F,) features of the scene, see :mod:`nimbus.datagen.policies.features`; empty unless requested."""
    instruction: str


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Parts of an observation that a policy requests; the others are not computed."""

    cameras: Sequence[str] | None = None
    """Names of cameras; None for all cameras of the task."""
    environment_state: bool = False


class Policy(ABC):
    """Base of policies; a policy acts in episodes of one task.

    A policy in a Python file may derive from this class or just have the same methods.
    """

    needs: Needs = Needs()
    identity: str = ""
    """Text that identifies the policy in results, such as a hash of the weights."""
    files: Sequence[str | Path] = ()
    """Files and folders that the policy has read, such as weights; their contents enter the identity. A relative path
    begins in the folder of the policy's Python file."""
    limit: int = 0
    """Largest number of steps of an episode; 0 if unknown."""
    horizon: int = 0
    """Number of actions of an answer; 0 if unknown."""
    view: SignalView | None = None
    """Signals that the policy was trained on; None if unknown, in which case the stored signals are assumed."""
    trained_layouts: Mapping[str, Sequence[int]] = MappingProxyType({})
    """Indices of the layouts that the policy was trained on, by :func:`layout_source`; empty if unknown."""

    def begin_task(self, task: PolicyTask) -> None:
        """Receive the conventions of the task; this method is called once, before the first episode.

        Raises:
            InputError: They differ from the conventions of the policy.
        """
        return

    def reset(self, episode: PolicyEpisode) -> None:
        """Begin an episode, and discard the state of the previous one."""
        return

    @abstractmethod
    def act(self, observation: PolicyObservation) -> NDArray[np.floating]:
        """Choose the next actions.

        Returns:
            (K, A) commanded positions of all arms and grippers [rad or m], or actions of the policy's view; the first
            row is the next action.
        """

    def close(self) -> None:
        """Release the policy's resources."""
        return


def layout_source(task: str, split: str, seed: int) -> str:
    """Name the split that indices of layouts refer to."""
    return f"{task}:{split}:{seed}"


@dataclass(frozen=True, kw_only=True)
class CheckedAnswer:
    """Checked answer of a policy."""

    actions: FloatArray
    """(K, A) within the robot's limits."""
    clipped: int = 0
    """Number of rows with a command beyond the limits."""
    clipped_arm: int = 0
    """Number of rows with a command beyond the limits of an arm joint."""
    arm_excess: float = 0.0
    """Largest excess of a command over the limits of an arm joint [rad or m]."""
    gripper_excess: float = 0.0
    """Largest excess of a command over the limits of a gripper [rad or m]."""


_MOST_ROWS = 10_000
"""Largest number of actions of an answer: ten minutes at 15 Hz, far beyond any horizon. A frame of small integers can
hold millions, which take gigabytes once they are converted."""
_FURTHEST = 0.5
"""Largest distance of the first action from the posture [rad or m]; a larger one is a jump. In our demonstrations the
largest distance is 0.2."""


def check_length(answer: object) -> None:
    """Refuse an answer that is too long, before it is converted.

    Raises:
        PolicyFault: The answer has too many actions.
    """
    if isinstance(answer, np.ndarray) and answer.ndim and len(answer) > _MOST_ROWS:
        raise PolicyFault(Reason.BAD_ACTION, f"the answer has {len(answer)} actions; at most {_MOST_ROWS} are allowed")


def check_rows(answer: object, *, names: Sequence[str], execute: int) -> FloatArray:
    """Check and return the rows (K, M) of an answer.

    Args:
        answer: Answer of the policy.
        names: Names of its M entries.
        execute: Number of rows to execute.

    Raises:
        PolicyFault: The answer is not an array of that form, is too short, or is not finite.
    """
    width = len(names)
    check_length(answer)
    try:
        rows = np.asarray(answer, dtype=float)
    except (TypeError, ValueError) as error:
        raise PolicyFault(Reason.BAD_ACTION, f"not an array of numbers: {error}") from None
    if rows.ndim != 2 or rows.shape[1] != width or not len(rows):
        raise PolicyFault(Reason.BAD_ACTION, f"shape {rows.shape}, expected (K, {width}): {', '.join(names)}")
    if len(rows) < execute:
        raise PolicyFault(
            Reason.BAD_ACTION, f"the answer has {len(rows)} actions, but {execute} must be executed: lower --execute"
        )
    if not np.isfinite(rows).all():
        raise PolicyFault(Reason.BAD_ACTION, "an action is not finite")
    return rows


def check_actions(answer: object, *, task: PolicyTask, posture: FloatArray, execute: int, first: bool) -> CheckedAnswer:
    """Check the commands in a policy's answer.

    Args:
        answer: (K, A) commands from the policy.
        task: The task's conventions.
        posture: (A,) action for the current posture [rad or m].
        execute: Number of rows to execute.
        first: True for the first answer of the episode, which must begin near the posture.

    Raises:
        PolicyFault: The answer is not an array of that form, is not finite, or has other units, which is assumed when
            the first answer exceeds a joint's limits by more than the joint's range.
        WildAction: The first answer begins far from the posture, or a later answer exceeds the limits by that much.
    """
    rows = check_rows(answer, names=task.action_names, execute=execute)
    limited = np.clip(rows, task.action_low, task.action_high)
    beyond = np.abs(rows - limited) > task.action_high - task.action_low
    if beyond.any():
        row, entry = np.argwhere(beyond)[0]
        limits = f"{task.action_low[entry]:.2f} to {task.action_high[entry]:.2f}"
        detail = f"{task.action_names[entry]} of {rows[row, entry]:.2f} is far beyond {limits}; expected rad and m"
        # Wrong units would show in the first answer, so a later excess is a failure of the policy.
        raise PolicyFault(Reason.BAD_ACTION, detail) if first else WildAction(detail)
    if first and (away := np.abs(rows[0] - posture)).max() > _FURTHEST:
        name = task.action_names[int(away.argmax())]
        raise WildAction(f"{name} starts {away.max():.2f} from the posture; expected absolute positions in rad and m")
    excess = np.abs(rows - limited)
    is_arm = np.array([name in task.joint_names for name in task.action_names])  # grippers have names of their own
    return CheckedAnswer(
        actions=limited,
        clipped=int((excess > 0).any(axis=1).sum()),
        clipped_arm=int((excess[:, is_arm] > 0).any(axis=1).sum()),
        arm_excess=float(excess[:, is_arm].max(initial=0.0)),
        gripper_excess=float(excess[:, ~is_arm].max(initial=0.0)),
    )
