"""Labels of the rows of an attempt: skill, target and phase of each active arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class StepLabel(NamedTuple):
    """Skill step and phase of a row."""

    skill: str = ""
    target: str = ""
    """Name of the object that the skill manipulates."""
    phase: str = ""


class StepLabels:
    """Label of each active arm.

    Args:
        arms: Names of the robot's arms; their labels are joined in this order.
    """

    def __init__(self, arms: Sequence[str]) -> None:
        self._arms = arms
        self._present: dict[str, StepLabel] = {}

    def begin_step(self, arm: str, skill: str, target: str) -> None:
        """Set the skill step of an arm."""
        self._present[arm] = StepLabel(skill, target)

    def begin_phase(self, arm: str, phase: str) -> None:
        """Set the phase of an arm's skill step."""
        self._present[arm] = self.of(arm)._replace(phase=phase)

    def end_step(self, *arms: str) -> None:
        """Remove the labels of arms."""
        for arm in arms:
            self._present.pop(arm, None)

    def of(self, arm: str) -> StepLabel:
        """Return the label of one arm; empty when it is inactive."""
        return self._present.get(arm, StepLabel())

    @property
    def targets(self) -> set[str]:
        """Names of the objects that the skills of all arms manipulate."""
        return {label.target for label in self._present.values()}

    def joined(self) -> StepLabel:
        """Return one label for all active arms, with different values joined by ``+``."""
        present = [self._present[arm] for arm in self._arms if arm in self._present]
        return StepLabel(*("+".join(dict.fromkeys(filter(None, parts))) for parts in zip(*present, strict=True)))
