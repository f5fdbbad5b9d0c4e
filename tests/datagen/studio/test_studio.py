"""The studio without a browser: every field writes into the task, every button does what it says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.draft import TaskDraft
from nimbus.datagen.scene_files import scene_folder
from nimbus.datagen.studio.errands import Errands
from nimbus.datagen.studio.range_section import limits

SORT = (scene_folder("tasks") / "sort_trash.yaml").read_text()


def test_errands_are_done_in_order_and_the_newest_of_a_kind_only():
    done, lines = [], []
    errands = Errands(lambda what: None, lines.append)
    errands.send("first", lambda: time.sleep(0.2))
    for number in range(3):
        errands.send("same", lambda number=number: done.append(number))
    errands.send("wrong", lambda: TaskDraft("no_such_task"))
    errands.send("last", lambda: done.append("last"))
    assert errands.wait(timeout=20)
    assert done == [2, "last"]
    assert [line for line in lines if "no_such_task" in line] == lines != []
    errands.close()


def test_a_slider_offers_round_figures_around_what_is_written(tmp_path: Path):
    from nimbus.datagen.panel.forms import range_fields

    for task in ("sort_trash", "stack_blocks"):
        for field in range_fields(TaskDraft(task, folder=tmp_path).data):
            least, most, step = limits(field)
            assert least <= field.low <= field.high < most
            assert 0 < step < most


def test_what_was_dragged_in_the_scene_stands_in_the_file(studio: Any):
    studio._region_moved("start", 0.52, 0.01)
    assert studio.draft.text == SORT.replace("center: [0.5, 0.0]", "center: [0.52, 0.01]")
    studio._camera_moved("front", (1.0, 0.0, 0.8), (0.6123724, 0.3535534, 0.3535534, 0.6123724))
    assert studio.draft.value("cameras", "front", "position") == (1.0, 0.0, 0.8)


def test_a_task_that_is_not_saved_is_not_left(studio: Any):
    studio.draft.set(("rate",), 10)
    with pytest.raises(InputError, match="not saved"):
        studio.open("stack_blocks")
