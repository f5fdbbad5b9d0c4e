"""Every control of the studio changes the task or does what it says; one that nobody tests fails here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import layout_actions
import pytest
import run_actions
import step_actions
import task_actions
from controls import controls
from fields import FIELDS, parameter_labels
from step_actions import LISTS

from nimbus.datagen.panel.forms import skill_forms

ACTIONS = task_actions.ACTIONS | step_actions.ACTIONS | layout_actions.ACTIONS | run_actions.ACTIONS
FIRST_CONTROL = {act: " ".join(place).strip() for place, act in reversed(ACTIONS.items())}
"""Each action, by the first of the controls that it uses."""


@pytest.mark.parametrize("act", dict.fromkeys(ACTIONS.values()), ids=FIRST_CONTROL.__getitem__)
def test_a_button_does_what_it_says(request: pytest.FixtureRequest, act: Callable[..., None]):
    parameters = inspect.signature(act).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    act(*(request.getfixturevalue(name) for name in names))


def test_every_control_is_tested(studio: Any):
    parameters = {
        (folder, label)
        for folder, _, kind, _ in LISTS
        for form in skill_forms(kind=kind)
        for label in parameter_labels(form)
    }
    assert set(controls(studio)) - set(FIELDS) - set(ACTIONS) - parameters == set()
