"""Values typed into fields, and entries added by *add*, in every front end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_names
from nimbus.datagen.tasks.task_file import CameraSettings, ObjectGroup, Region
from nimbus.datagen.ui.document import fields
from nimbus.datagen.ui.document.declarations import RangeField
from nimbus.datagen.ui.document.draft import TaskDraft
from nimbus.datagen.ui.document.task_template import BLANK_TASK

Open = Callable[..., TaskDraft]


@pytest.fixture
def open_blank(tmp_path: Path) -> Open:
    def opened(was: str = "", now: str = "") -> TaskDraft:
        assert was in BLANK_TASK
        (path := tmp_path / "mine.yaml").write_text(BLANK_TASK.replace(was, now) if was else BLANK_TASK)
        return TaskDraft(str(path))

    return opened


def test_every_field_of_an_entry_has_a_hint():
    chosen, elsewhere = {"library", "region"}, {"up"}
    assert dict(fields.REGION_FIELDS).keys() == Region.model_fields.keys()
    assert dict(fields.OBJECT_FIELDS).keys() | chosen == ObjectGroup.model_fields.keys()
    assert dict(fields.CAMERA_FIELDS).keys() | elsewhere == CameraSettings.model_fields.keys()
    for table in (fields.REGION_FIELDS, fields.OBJECT_FIELDS, fields.CAMERA_FIELDS):
        assert all(hint.endswith(".") for _, hint in table)


@pytest.mark.parametrize("name", scene_names("tasks"))
def test_what_a_field_shows_is_no_change_when_it_is_typed_again(name: str, tmp_path: Path):
    draft = TaskDraft(name, folder=tmp_path)
    before = draft.data
    for group in fields.entries(draft, "objects"):
        for field, _ in fields.OBJECT_FIELDS:
            fields.put(draft, ("objects", group, field), fields.as_text(draft.value("objects", group, field)))
    assert draft.data == before


def test_nothing_typed_takes_the_entry_out(open_blank: Open):
    draft = open_blank()
    fields.put(draft, ("objects", "things", "scale"), "[90 %, 110 %]")
    assert draft.value("objects", "things", "scale") == ("90 %", "110 %")
    fields.put(draft, ("objects", "things", "scale"), " ")
    fields.put(draft, ("objects", "things", "yaw"), "")
    assert draft.text == BLANK_TASK


def test_what_is_typed_letter_by_letter_is_undone_together(open_blank: Open):
    draft = open_blank()
    draft.joins_typing = True
    for typed in ("3", "30"):
        fields.put(draft, ("rate",), typed)
    draft.undo()
    assert draft.text == BLANK_TASK


def test_what_is_added_is_right_at_once_and_has_a_name_of_its_own(open_blank: Open):
    draft = open_blank()
    for _ in range(2):
        fields.add_region(draft, fields.free_name("start", fields.named(draft, "regions")))
        fields.add_objects(draft, fields.free_name("things", fields.named(draft, "objects")))
        fields.add_camera(draft, fields.free_name("camera", fields.named(draft, "cameras")))
    assert draft.problems() == []
    assert fields.entries(draft, "regions") == ["start", "start_2", "start_3"]
    assert fields.entries(draft, "cameras") == ["camera", "camera_2"]
    assert list(fields.named(draft, "cameras")) == ["front", "wrist", "camera", "camera_2"]
    assert fields.places(draft, "things_2") == ["start", "start_2", "start_3", "things", "things_3"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("cameras: front+wrist", "cameras: no_such_preset"),
        ("cameras: front+wrist", "cameras: 5"),
        ("regions:\n  start: {on: table, center: [0.5, 0.0], size: [0.3, 0.3]}", "regions: 5"),
        ("objects:\n  things: {library: blocks, region: start}", "objects: things"),
        ('instructions: ["Say here what the robot does."]', "instructions: 5"),
    ],
)
def test_a_file_that_is_wrong_can_still_be_shown_and_added_to(open_blank: Open, was: str, now: str):
    draft = open_blank(was, now)
    assert fields.wordings(draft)
    fields.add_region(draft, "added")
    fields.add_objects(draft, "added")
    fields.add_camera(draft, "added")
    assert all("added" in fields.entries(draft, key) for key in ("regions", "objects", "cameras"))


def test_randomizers_are_added_and_taken_away_after_the_preset_is_written_out(open_blank: Open):
    draft = open_blank()
    assert fields.randomization(draft) == "small"
    fields.add_randomizer(draft, "gains")
    assert fields.randomization(draft) == fields.OWN_RANGES
    assert draft.problems() == []
    fields.remove_randomizer(draft, "gains")
    own = draft.value("randomize")
    fields.choose_randomization(draft, "small")
    fields.choose_randomization(draft, fields.OWN_RANGES)
    assert draft.value("randomize") == own


def test_a_task_without_words_is_refused(open_blank: Open):
    draft = open_blank()
    with pytest.raises(InputError, match="at least one instruction"):
        fields.take_wordings(draft, "\n \n")
    with pytest.raises(InputError, match="an empty text is not a task"):
        fields.take_text(draft, " ")
    assert draft.text == BLANK_TASK
    fields.take_wordings(draft, " Sort it.\n\nTidy up. ")
    assert fields.wordings(draft) == "Sort it.\nTidy up."


@given(bounds=st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2).map(sorted))
def test_a_slider_offers_more_than_what_is_written(bounds: list[float]):
    low, high = bounds
    field = RangeField(keys=("randomize", "light", "intensity"), low=low, high=high, unit="%", is_pair=True)
    least, most, step = field.limits
    assert least <= low <= high < most
    assert 0 < step < most
    assert field.label == "light.intensity [%]"
