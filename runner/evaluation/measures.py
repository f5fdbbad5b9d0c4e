"""Measures of an evaluation's episodes apart from success: lag, clipped actions, contact depths, answer times."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nimbus.datagen.files.bounded import Count, Finite
from nimbus.datagen.policies.policy import ANSWER_WAIT, ARM_EXCESS, CLIPPED, CLIPPED_ARM, GRIPPER_EXCESS
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import FILE_NAME, Ledger

_HELD, _FIXED = "contacts/held_penetration", "contacts/table_penetration"


@dataclass(frozen=True, kw_only=True)
class EpisodeMeasures:
    """Measures of one episode, rounded to the digits that are printed."""

    lag: Finite = 0.0
    """Largest difference between an arm joint's command and its position one control period later [rad]."""
    clipped: Count = 0
    """Number of executed actions with a command beyond the robot's limits."""
    clipped_arm: Count = 0
    """Number of those with a command beyond the limits of an arm joint; the others exceed those of a gripper only."""
    arm_excess: Finite = 0.0
    """Largest excess of an arm joint's command over its limits [rad]."""
    gripper_excess: Finite = 0.0
    """Largest excess of a gripper's command over its limits [m, or rad for a jaw that turns]."""
    held_depth: Finite = 0.0
    """Largest penetration between the gripper and the held object [m]."""
    fixed_depth: Finite = 0.0
    """Largest penetration of a fixed thing, such as the table [m]."""

    @classmethod
    def of(cls, episode: EpisodeFile) -> EpisodeMeasures:
        """Measure an open episode."""
        names = (CLIPPED, CLIPPED_ARM, ARM_EXCESS, GRIPPER_EXCESS)  # absent in rollouts of the demonstrator
        clipped, clipped_arm, arm, gripper = (_largest(episode, f"plan_statistics/{name}") for name in names)
        held, fixed = (_largest(episode, path) for path in (_HELD, _FIXED))
        return cls(
            lag=_lag(episode),
            clipped=int(clipped),
            clipped_arm=int(clipped_arm),
            arm_excess=round(arm, 5),
            gripper_excess=round(gripper, 5),
            held_depth=round(held, 5),
            fixed_depth=round(fixed, 5),
        )

    @classmethod
    def over(cls, measures: Iterable[EpisodeMeasures]) -> EpisodeMeasures:
        """Combine measures of several episodes: the largest value of each, but the sums of the clipped actions."""
        all_of_them = list(measures)
        return cls(
            lag=max((one.lag for one in all_of_them), default=0.0),
            clipped=sum(one.clipped for one in all_of_them),
            clipped_arm=sum(one.clipped_arm for one in all_of_them),
            arm_excess=max((one.arm_excess for one in all_of_them), default=0.0),
            gripper_excess=max((one.gripper_excess for one in all_of_them), default=0.0),
            held_depth=max((one.held_depth for one in all_of_them), default=0.0),
            fixed_depth=max((one.fixed_depth for one in all_of_them), default=0.0),
        )


def _lag(episode: EpisodeFile) -> float:
    joints, actions = (list(episode.texts(f"names/{kind}")) for kind in ("joints", "actions"))
    arm = [name for name in actions if name in joints]
    path = "executed_action" if episode.has("executed_action") else "action"
    commands = episode.array(path)[:-1, [actions.index(name) for name in arm]]
    reached = episode.array("observations/qpos")[1:, [joints.index(name) for name in arm]]
    return round(float(np.abs(commands - reached).max(initial=0.0)), 4)


def _largest(episode: EpisodeFile, path: str) -> float:
    group, _, name = path.partition("/")
    return float(episode.array(path).max(initial=0.0)) if name in episode.members(group) else 0.0


@dataclass(frozen=True)
class AnswerTimes:
    """Time that an evaluation waited for the policy's answers in all attempts; it differs from run to run."""

    seconds: float = 0.0
    answers: int = 0

    @property
    def line(self) -> str:
        """Return the line for the terminal; empty if nothing was measured."""
        if not self.answers:
            return ""
        return f"{self.seconds:.1f} s for {self.answers} answers, {1000 * self.seconds / self.answers:.1f} ms each"


def read_answer_times(folder: Path, *, execute: int) -> AnswerTimes:
    """Read an evaluation's answer times from its ledger.

    Args:
        folder: Folder of the evaluation.
        execute: Number of executed actions per answer.
    """
    if not (folder / FILE_NAME).is_file():
        return AnswerTimes()
    with closing(Ledger(folder, read_only=True)) as ledger:
        asked = [one for one in ledger.attempts() if ANSWER_WAIT in one.times]
    answers = sum(-(-one.step_count // execute) for one in asked)
    return AnswerTimes(sum(one.times[ANSWER_WAIT] for one in asked), answers)
