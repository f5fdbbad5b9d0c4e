"""The studio without a browser: every field writes into the task, every button does what it says."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.panel.draft import TaskDraft
from nimbus.datagen.scene_files import scene_folder
from nimbus.datagen.studio.errands import Errands
from nimbus.datagen.studio.task_sections import limits

SORT = (scene_folder("tasks") / "sort_trash.yaml").read_text()
HAS_VISER = importlib.util.find_spec("viser") is not None


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


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if not HAS_VISER:
        pytest.skip("viser is not installed")
    from nimbus.datagen.studio.app import Studio
    from nimbus.runner.libraries import prepare_libraries

    prepare_libraries()
    folder = tmp_path_factory.mktemp("studio")
    studio = Studio("sort_trash", host="127.0.0.1", port=8300, folder=folder)
    assert studio.errands.wait(timeout=120)
    yield studio
    studio.close()


@pytest.fixture(autouse=True)
def unchanged(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "studio" in request.fixturenames:
        studio = request.getfixturevalue("studio")
        while studio.draft.can_undo:
            studio.draft.undo()


def handle(studio: Any, section: str, label: str) -> Any:
    (found,) = [one for one in studio.task_tab._sections if one.title == section]
    return next(one for one in found._handles if getattr(one, "label", "") == label)


FIELDS = [
    ("Robot and scene", "robot", "ur5", ("robot",), "ur5"),
    ("Robot and scene", "scene", "table", ("scene",), "table"),
    ("Robot and scene", "rate", "10", ("rate",), 10),
    ("Regions", "start center", "[0.45, 5 cm]", ("regions", "start", "center"), (0.45, "5 cm")),
    ("Regions", "start size", "[0.2, 0.2]", ("regions", "start", "size"), (0.2, 0.2)),
    ("Objects", "items library", "blocks", ("objects", "items", "library"), "blocks"),
    ("Objects", "items count", "[1, 3]", ("objects", "items", "count"), (1, 3)),
    ("Objects", "items kinds", "[can, cup]", ("objects", "items", "kinds"), ("can", "cup")),
    ("Objects", "items yaw", "", ("objects", "items", "yaw"), None),
    ("Objects", "items scale", "[90 %, 110 %]", ("objects", "items", "scale"), ("90 %", "110 %")),
    ("Randomization", "how much", "small", ("randomize",), "small"),
    ("Randomization", "mass.factor [%]", (70, 130), ("randomize", "mass", "factor"), ("70 %", "130 %")),
    ("Randomization", "camera.position [cm]", 3, ("randomize", "camera", "position"), "3 cm"),
    ("Cameras", "cameras", "front", ("cameras",), "front"),
    ("Language", "instructions", "One.\nTwo.", ("instructions",), ("One.", "Two.")),
]


@pytest.mark.parametrize(("section", "label", "typed", "keys", "value"), FIELDS, ids=[field[1] for field in FIELDS])
def test_every_field_writes_into_the_task(
    studio: Any, section: str, label: str, typed: Any, keys: tuple[str, ...], value: Any
):
    before = studio.draft.text
    handle(studio, section, label).value = typed
    soon(lambda: studio.draft.value(*keys) == value)
    studio.draft.undo()
    assert studio.draft.text == before


def test_what_was_dragged_in_the_scene_stands_in_the_file(studio: Any):
    studio._region_moved("start", 0.52, 0.01)
    assert studio.draft.text == SORT.replace("center: [0.5, 0.0]", "center: [0.52, 0.01]")
    studio._camera_moved("front", (1.0, 0.0, 0.8), (0.6123724, 0.3535534, 0.3535534, 0.6123724))
    assert studio.draft.value("cameras", "front", "position") == (1.0, 0.0, 0.8)


def test_a_task_that_is_not_saved_is_not_left(studio: Any):
    studio.draft.set(("rate",), 10)
    with pytest.raises(InputError, match="not saved"):
        studio.open("stack_blocks")


def test_a_region_out_of_reach_is_found_by_the_doctor_or_the_loader(studio: Any):
    studio.draft.set(("regions", "start", "center"), [3.0, 3.0])
    studio._complaint = ""
    studio.errands.send("examining", studio._examine)
    assert studio.errands.wait(timeout=120)
    assert "regions" in studio._complaint + studio.task_tab._state.content


def test_a_motion_is_scrubbed_faster_than_it_is_seen(studio: Any):
    task = studio.task()
    look = studio.preview.layout(task, seed=0, index=0)
    studio.motions.show(look, "")
    assert studio.errands.wait(timeout=120)
    begin, count = time.process_time(), 60
    for _ in range(count):
        studio.view.place(look.motion, 0)
    assert count / (time.process_time() - begin) > 20


def soon(holds: Any) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
