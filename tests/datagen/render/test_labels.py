"""Names of the indices in masks."""

from __future__ import annotations

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.render.labels import make_labels
from nimbus.datagen.usd.stage import read_stage
from tests.support.one_can import thing


def test_an_object_of_another_tasks_library_is_refused():
    """A stored layout can be rendered with a task that has other libraries."""
    line = "object 'items_0' of the layout: its kind 'can' is in no library of the task, which has kitchen; give a task"
    with pytest.raises(InputError, match=line):
        make_labels(read_stage("tabletop"), [thing(kind="can")], [], libraries=["kitchen"])
