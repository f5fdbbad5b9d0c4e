"""What is typed or chosen in a field of the studio is written into the task's file, and undone."""

from __future__ import annotations

from typing import Any

import pytest
from controls import Place, controls, use
from fields import FIELDS, SORT, parameter_labels

from nimbus.datagen.panel.forms import skill_forms


@pytest.mark.parametrize(("place", "typed", "keys", "value"), [(place, *rest) for place, rest in FIELDS.items()])
def test_a_field_writes_into_the_file(studio: Any, place: Place, typed: Any, keys: tuple[str | int, ...], value: Any):
    use(controls(studio)[place], typed)
    assert studio.draft.value(*keys) == value
    studio.draft.save()
    assert studio.draft.path.read_text() == studio.draft.text != SORT
    studio.draft.undo()
    assert studio.draft.text == SORT
    studio.draft.save()


@pytest.mark.parametrize("folder", ["Steps", "Success"])
def test_every_parameter_of_every_skill_is_a_field_that_goes_into_the_file(studio: Any, folder: str):
    kind = {"Steps": "skill", "Success": "predicate"}[folder]
    for form in skill_forms(kind=kind):
        use(controls(studio)[folder, kind], form.name)
        for parameter, label in zip(form.parameters, parameter_labels(form), strict=True):
            use(controls(studio)[folder, label], parameter.choices[0] if parameter.choices else "x")
        use(controls(studio)[folder, "add after"])
        row = studio.task_tab.section(folder).selected_row
        assert (row.name, set(row.parameters)) == (form.name, {parameter.name for parameter in form.parameters})
