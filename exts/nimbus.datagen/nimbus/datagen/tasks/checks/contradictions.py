"""Check for steps that contradict each other in every episode, as far as this can be decided without physics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nimbus.datagen.tasks.references import Expression, MemberRef, NameRef, parse_reference
from nimbus.datagen.tasks.statements import Skill
from nimbus.datagen.tasks.steps import Composite, Step, Steps

if TYPE_CHECKING:
    from nimbus.datagen.tasks.task import Task


@dataclass(frozen=True)
class _Holding:
    """Content of the gripper: the text of a reference, or empty."""

    text: str


_Hand = _Holding | None
"""State of a hand; None when unknown."""
_EMPTY = _Holding("")


def check_contradictions(task: Task) -> None:
    """Track the content of the gripper through a task's steps.

    After a branch, a loop, or a skill with an undeclared effect on the gripper, the state is unknown, unless all
    branches lead to the same state.

    Raises:
        InputError: A step contradicts the steps before it, or names one thing twice; the first such step is reported.
    """
    _Follower(task).follow(task.steps, _EMPTY, {name: name for name in task.objects})


class _Follower:
    def __init__(self, task: Task) -> None:
        self._task = task

    def follow(self, steps: Steps, hand: _Hand, groups: Mapping[str, str]) -> _Hand:
        """Return the state of the hand after some steps."""
        for step in steps:
            if isinstance(step, Composite):
                hand = self._composite(step, hand, groups)
            elif isinstance(step.statement, Skill):
                hand = self._skill(step, step.statement, hand, groups)
        return hand

    def _composite(self, step: Composite, hand: _Hand, groups: Mapping[str, str]) -> _Hand:
        inside = {**groups, step.variable: step.group} if step.variable else groups
        if step.flow in ("branches", "guarded"):
            start = hand if step.flow == "branches" else None
            return _join(*(self.follow(block, start, inside) for block in step.blocks()))
        if step.flow == "loop":
            for block in step.blocks():
                hand = _join(hand, self.follow(block, hand, inside))  # the state after zero or one iteration
                hand = _join(hand, self.follow(block, hand, inside))  # the state after any number of iterations
            # The loop's variable is undefined after it.
            return None if hand and hand.text and step.variable else hand
        for block in step.blocks():
            self.follow(block, None, inside)
        return None

    def _skill(self, step: Step, skill: Skill, hand: _Hand, groups: Mapping[str, str]) -> _Hand:
        if skill.hand == "keeps":
            return hand
        if not skill.hand or getattr(skill, "arm", None) is not None:
            return None
        field = type(skill).main
        text = str(getattr(skill, field))
        self._check_once(step, skill, text)
        if skill.hand == "takes":
            if hand and hand.text:
                what = f"the gripper still holds '{hand.text}' here"
                raise self._task.error((*step.keys, field), what, instead="place it before another one is picked")
            return _Holding(text)
        if hand == _EMPTY:
            raise self._task.error((*step.keys, field), "the gripper holds nothing here", instead=f"pick: {text} first")
        if hand and _differ(hand.text, text, groups):
            what = f"the gripper holds '{hand.text}' here, not '{text}'"
            raise self._task.error((*step.keys, field), what, instead=f"pick: {text} first, or name '{hand.text}'")
        return _EMPTY

    def _check_once(self, step: Step, skill: Skill, text: str) -> None:
        """Refuse a step whose object is also its destination."""
        for field in skill.references():
            if field != type(skill).main and getattr(skill, field) == text:
                raise self._task.error(
                    (*step.keys, field), f"'{text}' cannot be placed relative to itself", instead="name another"
                )


def _join(*hands: _Hand) -> _Hand:
    """Merge the states after alternative branches."""
    first, *others = hands
    return first if all(hand == first for hand in others) else None


def _differ(one: str, other: str, groups: Mapping[str, str]) -> bool:
    """Return True if two references certainly name different objects."""
    (one_group, one_index), (other_group, other_index) = (
        _place(parse_reference(text), groups) for text in (one, other)
    )
    if one_group is None or other_group is None:
        return False
    if one_group != other_group:
        return True
    return one_index is not None and other_index is not None and one_index != other_index


def _place(expression: Expression, groups: Mapping[str, str]) -> tuple[str | None, int | None]:
    """Return the group of a reference and the index in it, as far as the text determines them."""
    match expression:
        case NameRef(name):
            return groups.get(name), None
        case MemberRef(NameRef(name), int(index)):
            return groups.get(name), index
    return None, None
