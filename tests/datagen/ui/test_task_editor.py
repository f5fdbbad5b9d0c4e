"""Every control of the form changes the task's file or starts its work; a new control needs an entry here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.ui.document.declarations import skill_forms, step_rows
from nimbus.datagen.ui.form import Control
from nimbus.datagen.ui.task_editor import TaskEditor
from tests.support.desks import TASK, ImmediateTasks, NotedScene

FIELDS: dict[str, tuple[Any, tuple[str, ...], Any]] = {
    "robot": ("ur5", ("robot",), "ur5"),
    "scene": ("table", ("scene",), "table"),
    "rate": ("30", ("rate",), 30),
    "regions.start.on": ("floor", ("regions", "start", "on"), "floor"),
    "regions.start.center": ("[0.45, 5 cm]", ("regions", "start", "center"), (0.45, "5 cm")),
    "regions.start.size": ("[0.2, 0.2]", ("regions", "start", "size"), (0.2, 0.2)),
    "objects.items.library": ("blocks", ("objects", "items", "library"), "blocks"),
    "objects.items.region": ("other", ("objects", "items", "region"), "other"),
    "objects.items.count": ("[1, 3]", ("objects", "items", "count"), (1, 3)),
    "objects.items.kinds": ("[can, cup]", ("objects", "items", "kinds"), ("can", "cup")),
    "objects.items.yaw": ("0", ("objects", "items", "yaw"), 0),
    "objects.items.lying": ("50 %", ("objects", "items", "lying"), "50 %"),
    "objects.items.scale": ("[90 %, 110 %]", ("objects", "items", "scale"), ("90 %", "110 %")),
    "objects.items.distinct": ("true", ("objects", "items", "distinct"), True),
    "objects.items.anchored": ("true", ("objects", "items", "anchored"), True),
    "objects.items.classes": ("{any: residual}", ("objects", "items", "classes"), {"any": "residual"}),
    "objects.items.joints": ("{door: 30 %}", ("objects", "items", "joints"), {"door": "30 %"}),
    "randomize": ("small", ("randomize",), "small"),
    "randomize.light.intensity": ([50.0, 90.0], ("randomize", "light", "intensity"), ("50 %", "90 %")),
    "randomize.materials.tint": (10.0, ("randomize", "materials", "tint"), "10 %"),
    "vary also": ("mass", ("randomize", "mass"), {"factor": ("80 %", "125 %")}),
    "no longer": ("materials", ("randomize", "materials"), None),
    "cameras": ("front", ("cameras",), "front"),
    "cameras.front.mount": ("hand", ("cameras", "front", "mount"), "hand"),
    "cameras.front.position": ("[1.1, 0.2, 0.8]", ("cameras", "front", "position"), (1.1, 0.2, 0.8)),
    "cameras.front.look_at": ("", ("cameras", "front", "look_at"), None),
    "cameras.front.up": ("[0, 1, 0]", ("cameras", "front", "up"), (0, 1, 0)),
    "cameras.front.wxyz": ("[1, 0, 0, 0]", ("cameras", "front", "wxyz"), (1, 0, 0, 0)),
    "cameras.front.vertical_fov": ("50 deg", ("cameras", "front", "vertical_fov"), "50 deg"),
    "cameras.front.modalities": ("[rgb, depth]", ("cameras", "front", "modalities"), ("rgb", "depth")),
    "cameras.front.antialiasing": ("2", ("cameras", "front", "antialiasing"), 2),
    "cameras.front.tone": ("filmic", ("cameras", "front", "tone"), "filmic"),
    "cameras.front.size": ("[160, 120]", ("cameras", "front", "size"), (160, 120)),
    "instructions": ("One.\n\nTwo.", ("instructions",), ("One.", "Two.")),
    "text": (TASK.replace("panda", "ur5"), ("robot",), "ur5"),
    "remove regions.other": (None, ("regions", "other"), None),
    "remove objects.items": (None, ("objects", "items"), None),
    "remove cameras.side": (None, ("cameras", "side"), None),
}
"""New value of each field, its keys in the file, and the expected value there."""

WORK = {
    ("layout", "This one"): ("show_layout", {"seed": 5, "index": 2}),
    ("layout", "Next"): ("show_layout", {"seed": 5, "index": 3}),
    ("layout", "Sample 50"): ("sample", {"seed": 5}),
    ("layout", "Clear"): ("clear", {}),
    ("check", "Reach"): ("reach", {}),
    ("check", "Plan one"): ("plan", {"seed": 5, "index": 2}),
    ("check", "Pictures"): ("photograph", {}),
    ("live", "Plan live"): ("plan_live", {"seed": 5, "index": 2, "stops_before": 0}),
    ("live", "Stop"): ("stop", {}),
    ("vary", "Randomize"): ("vary", {"seed": 5, "index": 3}),
    ("vary", "Restore"): ("restore", {}),
    ("regions", "Stack"): ("stack", {"count": 16}),
    ("changes", "Examine"): ("examine", {}),
}
"""Buttons that start work of the scene."""

TESTED_BELOW = {
    *("start from", "file", "disk", "changes", "status", "seed", "episode", "layout", "check"),
    *("live", "vary", "stack", "regions"),
    *("new region", "add a region", "new things", "add objects", "new camera", "add a camera"),
    *(f"{key}{part}" for key in ("steps", "success") for part in ("", " move", " for each of", " summary", " add")),
    *("steps skill", "success predicate", "steps change", "success change"),
}
LISTS = (("steps", "skill", "home"), ("success", "predicate", "nothing_on_floor"))
"""Key in the file, kind of statement, and a statement without parameters."""


@pytest.fixture
def editor(tmp_path: Path) -> TaskEditor:
    (tmp_path / "mine.yaml").write_text(TASK)
    editor = TaskEditor(NotedScene(), ImmediateTasks(), folder=tmp_path, joins_typing=True)
    editor.open(str(tmp_path / "mine.yaml"))
    return editor


def controls(editor: TaskEditor) -> dict[str, Control]:
    return {control.id: control for section in editor.sections() for control in section.controls}


def act(editor: TaskEditor, name: str, value: Any = None) -> Any:
    """Use a control without an error; return the draft."""
    assert name in controls(editor)
    editor.act(name, value)
    assert editor.message == "" or editor.message.endswith("done")
    return editor.draft


@pytest.mark.parametrize(("name", "value", "keys", "expected"), [(name, *rest) for name, rest in FIELDS.items()])
def test_field_writes_into_the_file(editor: TaskEditor, name: str, value: Any, keys: tuple[str, ...], expected: Any):
    draft = act(editor, name, value)
    assert draft.value(*keys) == expected
    act(editor, "disk", "Save")
    assert draft.path.read_text() == draft.text != TASK
    act(editor, "changes", "Undo")
    assert draft.text == TASK


def test_every_control_has_a_test(editor: TaskEditor):
    editor.act("steps", 3)
    editor.act("success", 2)
    of_another = ("regions.other.", "cameras.side.", "remove regions.start", "remove cameras.front")
    names = {name for name in controls(editor) if " . " not in name and not name.startswith(of_another)}
    assert names == {*FIELDS, *TESTED_BELOW}


@pytest.mark.parametrize(("pressed", "expected"), WORK.items())
def test_button_starts_work_of_the_scene(editor: Any, pressed: tuple[str, str], expected: Any):
    act(editor, "seed", 5)
    act(editor, "episode", 2)
    editor.act(*pressed)
    assert editor._scene.asked == [expected]


def test_start_from_opens_a_task_that_comes_with_nimbus(editor: TaskEditor, tmp_path: Path):
    draft = act(editor, "start from", "stack_blocks")
    assert draft.path == tmp_path / "stack_blocks.yaml"
    act(editor, "rate", "30")
    editor.act("start from", "sort_trash")
    assert "not saved" in editor.message


def test_file_is_saved_as_another_and_opened(editor: TaskEditor, tmp_path: Path):
    act(editor, "file", str(tmp_path / "copy.yaml"))
    draft = act(editor, "disk", "Save as")
    assert (draft.path, draft.path.read_text()) == (tmp_path / "copy.yaml", TASK)
    act(editor, "file", str(tmp_path / "new.yaml"))
    draft = act(editor, "disk", "Open")
    assert (draft.name, editor.problems, controls(editor)["file"].value) == ("new", [], str(tmp_path / "new.yaml"))
    draft.save()
    editor.act("disk", "Save as")
    assert "this file is open already" in editor.message


def test_file_changed_by_another_program_is_kept(editor: TaskEditor):
    changes: list[int] = []
    editor.observe(lambda: changes.append(1))
    draft = act(editor, "rate", "30")
    draft.path.write_text(TASK.replace("panda", "ur5"))
    changes.clear()
    editor.check_disk()
    editor.check_disk()
    assert changes == [1]
    assert "changed on disk" in controls(editor)["status"].label
    editor.act("disk", "Save")
    assert "has changed on disk" in editor.message
    assert "robot: ur5" in act(editor, "disk", "Reload").text
    act(editor, "changes", "Undo")
    assert act(editor, "changes", "Overwrite").path.read_text() == TASK + "rate: 30\n"


def test_a_file_with_the_name_of_a_shipped_task_is_opened_only_on_request(editor: TaskEditor, tmp_path: Path):
    (tmp_path / "stack_blocks.yaml").write_text(TASK)
    draft = act(editor, "start from", "stack_blocks")
    assert "A file of this name exists, and is not shown." in controls(editor)["status"].label
    for pressed in ("Reload", "Save", "Save as"):
        editor.act("disk", pressed)
        assert "press Open" in editor.message and draft.text != TASK
    assert act(editor, "disk", "Open").text == TASK


def test_open_follows_no_link_that_the_user_has_not_named(editor: TaskEditor, tmp_path: Path):
    """The field shows the place of a task that was opened by name, which may be a link of others."""
    draft = act(editor, "start from", "stack_blocks")
    draft.path.symlink_to(tmp_path / "mine.yaml")
    editor.act("file", str(draft.path))
    for pressed in (("disk", "Open"), ("disk", "Reload"), ("disk", "Save"), ("changes", "Overwrite")):
        editor.act(*pressed)
        assert "this is a link" in editor.message and editor.draft is draft
    assert (tmp_path / "mine.yaml").read_text() == TASK


def test_keystrokes_are_undone_together(editor: TaskEditor):
    for typed in ("1", "10", "10 Hz"):
        act(editor, "rate", typed)
    assert act(editor, "changes", "Undo").text == TASK
    assert "10 Hz" in act(editor, "changes", "Redo").text


def test_drags_are_undone_one_by_one(editor: TaskEditor):
    for x in (0.4, 0.45):
        editor.act("regions.start.center", [x, 0.0])
    assert act(editor, "changes", "Undo").value("regions", "start", "center") == (0.4, 0.0)
    editor.act("cameras.front.pose", {"position": (1.0, 0.0, 0.8), "wxyz": (1, 0, 0, 0)})
    assert act(editor, "rate", "30").value("cameras", "front", "position") == (1.0, 0.0, 0.8)


@pytest.mark.parametrize(
    ("key", "stem", "label"),
    [
        ("regions", "region", "add a region"),
        ("objects", "things", "add objects"),
        ("cameras", "camera", "add a camera"),
    ],
)
def test_entries_are_added_by_name(editor: TaskEditor, key: str, stem: str, label: str):
    assert controls(editor)[f"new {stem}"].value == stem
    act(editor, f"new {stem}", "tray")
    assert isinstance(act(editor, label).value(key, "tray"), dict)
    assert controls(editor)[f"new {stem}"].value == stem
    for name, problem in (("tray", "'tray' already exists"), (" ", "without a name")):
        editor.act(f"new {stem}", name)
        editor.act(label)
        assert problem in editor.message


@pytest.mark.parametrize(("key", "kind", "name"), LISTS)
def test_entries_of_a_list_are_moved_and_removed(editor: TaskEditor, key: str, kind: str, name: str):
    assert editor.draft is not None
    before = editor.draft.value(key)
    act(editor, key, len(controls(editor)[key].options) - 1)
    assert act(editor, f"{key} move", "up").value(key) == before[::-1]
    assert act(editor, f"{key} move", "down").value(key) == before
    assert act(editor, f"{key} for each of", "items").value(key)[-1] == {"for item in items": (before[-1],)}
    act(editor, "changes", "Undo")
    assert act(editor, f"{key} move", "remove").value(key) == before[:-1]
    act(editor, key, 0)
    editor.act(f"{key} move", "remove")
    assert "the only entry" in editor.message


@pytest.mark.parametrize(("key", "kind", "name"), LISTS)
def test_entries_are_added_after_the_selected_one(editor: TaskEditor, key: str, kind: str, name: str):
    act(editor, f"{key} {kind}", name)
    draft = act(editor, f"{key} add")
    assert draft.value(key)[1] == name
    selected = controls(editor)[key]
    assert selected.options[selected.value].endswith(f" {name}")
    draft.remove((key,))
    assert controls(editor)[f"{key} none"].kind == "note"
    act(editor, f"{key} {kind}", name)
    assert act(editor, f"{key} add").value(key) == (name,)


def test_parameters_of_the_selected_step_are_changed(editor: TaskEditor):
    act(editor, "steps", 1)
    assert controls(editor)["steps skill"].value == "pick"
    assert controls(editor)["steps . object"].value == "item"
    act(editor, "steps . lift", "12 cm")
    assert "lift: 12 cm" in act(editor, "steps change").text


@pytest.mark.parametrize(("key", "kind", "name"), LISTS)
def test_every_parameter_of_every_skill_is_written(editor: TaskEditor, key: str, kind: str, name: str):
    for form in skill_forms(kind=kind):
        editor.act(key, 0)
        act(editor, f"{key} {kind}", form.name)
        assert controls(editor)[f"{key} summary"].label == form.summary
        for parameter in form.parameters:
            editor.act(f"{key} . {parameter.name}", parameter.choices[0] if parameter.choices else "x")
            assert editor.message == ""
        draft = act(editor, f"{key} add")
        (row,) = (row for row in step_rows(draft.value(key), kind=kind, at=(key,)) if row.keys == (key, 1))
        assert (row.name, set(row.parameters)) == (form.name, {one.name for one in form.parameters})
        editor.act("changes", "Undo")


def test_problem_stands_at_its_field(editor: TaskEditor):
    act(editor, "regions.start.size", "[0.1, -1]")
    assert "regions.start.size" in controls(editor)["status"].problem
    assert "regions.start.size" in controls(editor)["regions.start.size"].problem
    editor.act("regions.start.size", "[0.1")
    assert editor.message


def test_findings_of_the_doctor_last_until_a_change(editor: Any):
    editor._scene.findings = [Diagnostic(where="task.yaml:1:1: objects.items.region", what="out of reach")]
    act(editor, "changes", "Examine")
    assert "out of reach" in controls(editor)["objects.items.region"].problem
    act(editor, "rate", "30")
    assert controls(editor)["objects.items.region"].problem == ""


def test_unreadable_text_is_refused(editor: TaskEditor):
    editor.act("text", "robot: [")
    assert "malformed" in editor.message
    assert editor.draft is not None and editor.draft.text == TASK


def test_unknown_control_is_one_line(editor: TaskEditor):
    editor.act("regions.gone.size", "1")
    assert "'regions.gone.size' is no longer in the task" in editor.message
