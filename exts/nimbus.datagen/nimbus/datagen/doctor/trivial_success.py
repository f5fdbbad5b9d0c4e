"""Whether success waits for the robot, or holds before it has done anything."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from nimbus.datagen.doctor.finding import make_finding
from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.execute.planner import begin_attempt
from nimbus.datagen.random_streams import generator
from nimbus.datagen.tasks.steps import walk

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import Case

_KEPT = frozenset({"at_rest", "fixtures_unmoved", "gripper_clear", "not_moved", "nothing_on_floor", "upright"})
"""Conditions that ask for nothing new: a task of them alone is about its motion, such as shaking a can."""
_LAYOUTS = 4
"""Where it holds in all of them, that is no accident."""


def check_trivial_success(case: Case) -> Iterator[Diagnostic]:
    """Judge layouts as they are when everything has come to rest."""
    if {step.name for step, _ in walk(case.task.success)} <= _KEPT:
        return
    for index, layout in enumerate(case.layouts[:_LAYOUTS]):
        streams = partial(generator, case.seed, index, "attempt", 0)
        doing = begin_attempt(case.task, case.simulation, layout, streams=streams, planner="ompl")
        if doing.failure(case.task.success, doing.scope) is not None:
            return
    what = "it holds before the robot has done anything"
    instead = "start objects away from where they are to go, or ask for what the steps bring about"
    yield make_finding("already", case.task, ("success",), what, instead=instead)
