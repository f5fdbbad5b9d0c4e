"""A task while it is edited: undo, errors at their fields, and saving without overwriting other changes."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_folder, scene_names
from nimbus.datagen.ui.document.declarations import (
    addable,
    range_fields,
    read_value,
    skill_forms,
    step_entry,
    step_rows,
    written_out,
)
from nimbus.datagen.ui.document.draft import TaskDraft

SORT = (scene_folder("tasks") / "sort_trash.yaml").read_text()


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (path := tmp_path / "mine.yaml").write_text(SORT)
    return path


@pytest.mark.parametrize("name", scene_names("tasks"))
def test_an_untouched_task_is_saved_byte_equal(name: str, tmp_path: Path):
    draft = TaskDraft(name, folder=tmp_path)
    draft.save()
    assert (tmp_path / f"{name}.yaml").read_bytes() == (scene_folder("tasks") / f"{name}.yaml").read_bytes()


def test_a_task_that_comes_with_nimbus_is_not_changed(tmp_path: Path):
    draft = TaskDraft("sort_trash", folder=tmp_path)
    draft.set(("regions", "start", "size", 0), 0.3)
    draft.save()
    assert (scene_folder("tasks") / "sort_trash.yaml").read_text() == SORT
    assert TaskDraft(str(tmp_path / "sort_trash.yaml")).value("regions", "start", "size") == (0.3, 0.5)


def test_a_command_names_the_task_that_is_open(tmp_path: Path):
    """A file of others with the name of a shipped task is another task."""
    (tmp_path / "sort_trash.yaml").write_text(SORT + "pipeline: evil.yaml\n")
    assert TaskDraft("sort_trash", folder=tmp_path).word == "sort_trash"
    own = tmp_path / "sort_trash.yaml"
    assert TaskDraft(str(own)).word == str(own)


@pytest.mark.parametrize("there", [True, False])
def test_a_task_that_is_opened_by_name_follows_no_link(there: bool, tmp_path: Path):
    """The current folder may be of others, with a link of the task's name to a file of the user."""
    (folder := tmp_path / "foreign").mkdir()
    private = tmp_path / "private.yaml"
    if there:
        private.write_text("token: secret\n")
    draft = TaskDraft("sort_trash", folder=folder)
    (folder / "sort_trash.yaml").symlink_to(private)
    assert draft.is_changed_on_disk and not draft.is_stored
    assert (draft.word, draft.source) == ("sort_trash", "sort_trash")
    for touch in (draft.reload, draft.save, partial(draft.save, over_others=True)):
        with pytest.raises(InputError, match=r"sort_trash\.yaml: this is a link, .* 'sort_trash', opened by its name"):
            touch()
    with pytest.raises(InputError, match="this is a link"):
        TaskDraft("sort_trash", folder=folder)
    assert draft.text == SORT
    assert private.read_text() == "token: secret\n" if there else not private.exists()


def test_a_link_that_the_user_names_is_opened_and_saved(mine: Path):
    (link := mine.with_name("link.yaml")).symlink_to(mine)
    draft = TaskDraft(str(link))
    draft.set(("rate",), 10)
    draft.save()
    assert "rate: 10" in mine.read_text() and link.is_symlink()


def test_a_file_is_not_saved_as_a_link(mine: Path):
    """A link to a missing file would make a file elsewhere."""
    (link := mine.with_name("link.yaml")).symlink_to("private.yaml")
    draft = TaskDraft(str(mine))
    with pytest.raises(InputError, match="this is a link"):
        draft.save_as(link)
    assert draft.path == mine and not link.exists()


def test_a_file_of_others_is_not_reloaded_as_the_task_that_was_opened_by_name(tmp_path: Path):
    (other := tmp_path / "sort_trash.yaml").write_text(SORT + "pipeline: evil.yaml\n")
    draft = TaskDraft("sort_trash", folder=tmp_path)
    assert draft.is_other_file and not draft.is_stored
    draft.set(("rate",), 10)
    changed = draft.text
    for touch in (draft.reload, draft.save, draft.check_disk):
        with pytest.raises(InputError, match="not the file of the task 'sort_trash'.*press Open") as told:
            touch()
        assert "reload" not in told.value.instead
    assert draft.text == changed and "evil" in other.read_text()
    draft.undo()
    draft.save(over_others=True)
    assert draft.is_stored and not draft.is_other_file
    assert (other.read_text(), draft.source, draft.word) == (SORT, str(other), str(other))
    other.write_text(SORT + "rate: 10\n")
    draft.reload()
    assert draft.value("rate") == 10


def test_a_file_that_cannot_be_read_any_more_is_one_line(mine: Path):
    """Hosts ask twice a second, in threads that an error would end."""
    draft = TaskDraft(str(mine))
    mine.unlink()
    os.mkfifo(mine)
    assert draft.is_changed_on_disk
    with pytest.raises(InputError, match="not a regular file"):
        draft.reload()


def test_every_change_can_be_undone_and_done_again(mine: Path):
    draft = TaskDraft(str(mine))
    texts = [draft.text]
    for change in (
        lambda: draft.set(("regions", "start", "center"), [0.55, 0.1]),
        lambda: draft.insert(("steps",), 1, "home"),
        lambda: draft.move(("steps",), 1, 0),
        lambda: draft.remove(("randomize", "mass")),
    ):
        change()
        texts.append(draft.text)
    assert len(set(texts)) == 5
    assert draft.problems() == []
    for text in texts[-2::-1]:
        draft.undo()
        assert draft.text == text
    assert not draft.is_changed
    assert not draft.can_undo
    for text in texts[1:]:
        draft.redo()
        assert draft.text == text
    assert not draft.can_redo


def test_a_mistake_is_said_at_its_field(mine: Path):
    draft = TaskDraft(str(mine))
    draft.set(("objects", "items", "count"), [4, 2])
    (problem,) = draft.problems()
    assert problem.field.startswith("objects.items.count")
    assert (problem.line, problem.instead) == (8, "write [2, 4]")


def test_text_that_is_no_yaml_leaves_the_draft_as_it_was(mine: Path):
    draft = TaskDraft(str(mine))
    with pytest.raises(InputError, match="malformed"):
        draft.set_text("robot: [panda")
    assert draft.text == SORT


def test_what_somebody_else_wrote_is_not_written_over(mine: Path):
    one, other = TaskDraft(str(mine)), TaskDraft(str(mine))
    one.set(("rate",), 10)
    other.set(("family",), "mine")
    one.save()
    assert other.is_changed_on_disk
    with pytest.raises(InputError, match="has changed on disk"):
        other.save()
    assert mine.read_text() == one.text
    unsaved = other.text
    other.reload()
    assert other.text == one.text
    other.undo()
    assert other.text == unsaved
    other.save_as(mine.with_name("other.yaml"))
    assert (mine.read_text(), mine.with_name("other.yaml").read_text()) == (one.text, unsaved)
    assert sorted(path.name for path in mine.parent.iterdir()) == ["mine.yaml", "other.yaml"]


def test_another_file_is_not_written_over(mine: Path):
    (taken := mine.with_name("taken.yaml")).write_text("precious\n")
    draft = TaskDraft(str(mine))
    with pytest.raises(InputError, match="this file exists, and nothing was saved; write another path, or open"):
        draft.save_as(taken)
    assert (draft.path, taken.read_text()) == (mine, "precious\n")


def test_a_file_that_vanished_can_be_saved_again(mine: Path):
    draft = TaskDraft(str(mine))
    mine.unlink()
    with pytest.raises(InputError, match="no such file"):
        draft.reload()
    with pytest.raises(InputError):
        draft.save()
    draft.save(over_others=True)
    assert mine.read_text() == SORT


def test_a_folder_that_cannot_be_written_is_one_line(mine: Path):
    draft = TaskDraft(str(mine))
    with pytest.raises(InputError, match="cannot be saved"):
        draft.save_as(mine / "below.yaml")
    assert draft.path == mine


def test_a_range_of_a_preset_writes_the_preset_out(tmp_path: Path):
    draft = TaskDraft("stack_blocks", folder=tmp_path)
    before = {field.keys: (field.low, field.high) for field in range_fields(draft.data)}
    field = next(field for field in range_fields(draft.data) if field.is_pair)
    draft.set_range(field, field.low, field.high * 1.5)
    after = {field.keys: (field.low, field.high) for field in range_fields(draft.data)}
    assert after == before | {field.keys: (field.low, pytest.approx(field.high * 1.5))}
    assert draft.problems() == []


def test_a_range_keeps_its_unit(mine: Path):
    draft = TaskDraft(str(mine))
    field = next(field for field in range_fields(draft.data) if field.keys == ("randomize", "mass", "factor"))
    draft.set_range(field, 130, 70)  # in any order
    assert draft.text == SORT.replace("mass: {factor: [80 %, 125 %]}", "mass: {factor: [70 %, 130 %]}")


def test_a_camera_that_is_moved_is_written_out_alone(mine: Path):
    draft = TaskDraft(str(mine))
    draft.place_camera("front", (1.0, 0.0, 0.8), (0.6123724, 0.3535534, 0.3535534, 0.6123724))
    assert draft.value("cameras", "front", "position") == (1.0, 0.0, 0.8)
    assert draft.value("cameras", "wrist") == "wrist"
    assert draft.problems() == []


def test_steps_are_listed_with_those_inside_loops(mine: Path):
    draft = TaskDraft(str(mine))
    rows = step_rows(draft.data["steps"])
    assert [(row.depth, row.name) for row in rows] == [
        (0, "for item in items"),
        (1, "pick"),
        (1, "place"),
        (0, "home"),
    ]
    assert rows[2].parameters == {"object": "item", "into": "bins[item.class]"}
    draft.set((*rows[1].keys,), step_entry("pick", {"object": "item", "lift": read_value("12 cm")}))
    assert "      - pick: {object: item, lift: 12 cm}\n" in draft.text
    assert draft.problems() == []


def test_every_skill_can_be_added_by_its_own_declaration(mine: Path):
    forms = {form.name: form for form in skill_forms()}
    assert {"pick", "place", "home"} <= set(forms)
    assert [parameter.name for parameter in forms["pick"].parameters if parameter.required] == ["object"]
    assert all(parameter.meaning for form in forms.values() for parameter in form.parameters)
    draft = TaskDraft(str(mine))
    for form in forms.values():
        draft.insert(("steps",), 0, step_entry(form.name, {p.name: "x" for p in form.parameters if p.required}))
    assert [row.name for row in step_rows(draft.data["steps"]) if not row.depth][: len(forms)] == list(forms)[::-1]


@pytest.mark.parametrize("content", [None, "", "\n\n", "# Mine.\n", "# Mine, without an end"])
def test_a_file_that_says_nothing_yet_begins_with_the_least_that_runs(content: str | None, tmp_path: Path):
    path = tmp_path / "mine.yaml"
    if content is not None:
        path.write_text(content)
    draft = TaskDraft(str(path))
    assert draft.problems() == []
    assert draft.is_changed
    assert draft.text.startswith((content or "").rstrip("\n"))
    draft.set(("regions", "start", "center"), [0.4, 0.1])
    draft.save()
    assert TaskDraft(str(path)).value("regions", "start", "center") == (0.4, 0.1)


def test_a_new_file_that_somebody_else_makes_meanwhile_is_not_written_over(tmp_path: Path):
    draft = TaskDraft(str(tmp_path / "mine.yaml"))
    (tmp_path / "mine.yaml").write_text("theirs: 1\n")
    with pytest.raises(InputError, match="has changed on disk"):
        draft.save()
    assert (tmp_path / "mine.yaml").read_text() == "theirs: 1\n"


def test_a_new_task_has_a_name_of_a_task_file(tmp_path: Path):
    with pytest.raises(InputError, match=r"not the name of a task file.*\.yaml"):
        TaskDraft(str(tmp_path / "mine.txt"))


def test_a_new_task_stands_in_a_folder_that_is_there(tmp_path: Path):
    with pytest.raises(InputError, match="none: there is no such folder; make it"):
        TaskDraft(str(tmp_path / "none" / "mine.yaml"))


def test_numbers_that_are_typed_into_a_range_are_undone_together(mine: Path):
    draft = TaskDraft(str(mine))
    (field,) = (field for field in range_fields(draft.data) if field.keys == ("randomize", "mass", "factor"))
    for high in (13, 130):
        draft.set_range(field, 80, high)
    draft.undo()
    assert draft.text == SORT


def test_every_kind_of_randomization_can_be_added_and_taken_away(mine: Path):
    draft = TaskDraft(str(mine))
    for kind, settings in addable(draft.data).items():
        draft.set(("randomize",), {**written_out(draft.data), kind: settings})
    assert addable(draft.data) == {}
    draft.set(("randomize",), {"mass": written_out(draft.data)["mass"]})
    assert "mass" not in addable(draft.data)
    assert draft.problems() == []
