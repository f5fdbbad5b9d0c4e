"""Labels of the rows of an attempt: skill, target and phase of each arm that does something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class StepLabel(NamedTuple):
    """Skill step that a row belongs to, and the part of it."""

    skill: str = ""
    target: str = ""
    """Name of the object that the skill works on."""
    phase: str = ""


class StepLabels:
    """Label of each arm that does something now.

    Args:
        arms: Names of the robot's arms; labels of several are joined in this order.
    """

    def __init__(self, arms: Sequence[str]) -> None:
        self._arms = arms
        self._present: dict[str, StepLabel] = {}

    def begin_step(self, arm: str, skill: str, target: str) -> None:
        """Label what an arm does from now on as one skill step."""
        self._present[arm] = StepLabel(skill, target)

    def begin_phase(self, arm: str, phase: str) -> None:
        """Name the part of its skill step that an arm is in from now on."""
        self._present[arm] = self.of(arm)._replace(phase=phase)

    def end_step(self, *arms: str) -> None:
        """Remove the labels of arms."""
        for arm in arms:
            self._present.pop(arm, None)

    def of(self, arm: str) -> StepLabel:
        """Label of one arm; empty where it does nothing."""
        return self._present.get(arm, StepLabel())

    @property
    def targets(self) -> set[str]:
        """Names of the objects that the skills of all arms work on."""
        return {label.target for label in self._present.values()}

    def joined(self) -> StepLabel:
        """One label for all arms that do something: different ones joined with ``+``."""
        present = [self._present[arm] for arm in self._arms if arm in self._present]
        return StepLabel(*("+".join(dict.fromkeys(filter(None, parts))) for parts in zip(*present, strict=True)))
