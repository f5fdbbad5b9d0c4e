"""The extension in a Kit that is played by the contract: what is not in the contract raises."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.kit_behaviour import Kit
from contract.names import Contract
from contract.standin import StandIn
from controls_touched import ACTIONS, BY_THEMSELVES, CHANGE_THE_TASK, CHOICES, TEXTS, pattern
from desks import Jobs, LocalChannel

from nimbus.datagen.editor.screen import Control
from nimbus.datagen.panel.problem import Problem

MENU = "Tools/Replicator/Nimbus"
UPDATE = "omni.kit.app:GLOBAL_EVENT_UPDATE"
TASK = """\
# A task with one of everything.
robot: panda
scene: tabletop
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.3, 0.4]}
  other: {on: table, center: [0.4, 0.3], size: [0.1, 0.1]}
objects:
  items: {library: trash, region: start}
steps:
  - for item in items:
      - pick: item
      - place: {object: item, into: "bins[item.class]"}
  - home
success:
  - for item in items:
      - inside: {object: item, container: "bins[item.class]"}
  - gripper_clear
cameras:
  front: {position: [1.5, 0.0, 0.9], look_at: [0.45, 0.0, 0.05], vertical_fov: 42 deg, size: [320, 240]}
  side: {position: [0.4, 1.2, 0.9], look_at: [0.45, 0.0, 0.05], vertical_fov: 42 deg, size: [320, 240]}
randomize: {light: {intensity: [60 %, 120 %]}, materials: {tint: 25 %}}
instructions: ["Sort the trash."]
"""


@pytest.fixture
def kit() -> Iterator[Kit]:
    kit = Kit()
    standin = StandIn(Contract.load(), {})
    standin.behaviour.update(kit.behaviour(standin.make))
    kit.settings |= {"/exts/nimbus.datagen/task": "sort_trash", "/exts/nimbus.datagen/poll_period": 0.0}
    with standin.installed():
        yield kit


class Started:
    """The extension, started, its window open; the editor is in this process, runs are the test's."""

    def __init__(self, extension: Any, kit: Kit, jobs: Jobs, channels: list[LocalChannel]) -> None:
        self.extension, self.kit, self.jobs, self.channels = extension, kit, jobs, channels

    @property
    def channel(self) -> LocalChannel:
        return self.channels[-1]

    @property
    def text(self) -> str:
        """Of the task that is edited."""
        draft = self.channel.editor._draft
        return draft.text if draft else ""

    def look(self) -> None:
        self.kit.dispatch(UPDATE)

    def press(self, name: str) -> None:
        self.kit.press(name)
        self.look()

    def edit(self, kind: str, name: str, value: Any) -> None:
        self.kit.edit(kind, name, value)
        self.look()

    def choose(self, name: str, option: str) -> None:
        self.kit.choose(name, option)
        self.look()

    def said(self, label: str) -> str:
        return self.kit.find("Label", label).text


@pytest.fixture
def started(kit: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Started]:
    from nimbus.datagen.kit import NimbusExtension, extension

    jobs, channels = Jobs(), []

    def channel(*_: Any) -> LocalChannel:
        channels.append(LocalChannel(tmp_path))
        return channels[-1]

    monkeypatch.setattr(extension, "ProcessLauncher", lambda *_, **__: jobs)
    monkeypatch.setattr(extension, "ProcessChannel", channel)
    monkeypatch.chdir(tmp_path)
    made = NimbusExtension()
    made.on_startup("nimbus.datagen-0.1.0")
    kit.show(MENU)
    yield Started(made, kit, jobs, channels)
    if kit.menus:
        made.on_shutdown()


@pytest.fixture
def opened(started: Started, tmp_path: Path) -> Started:
    """The same with a task open that has one of everything."""
    (tmp_path / "mine.yaml").write_text(TASK)
    started.edit("StringField", "task", str(tmp_path / "mine.yaml"))
    started.press("open")
    assert started.said("problems") == "", started.said("problems")
    return started


# Starting and stopping


def test_starting_adds_one_menu_entry_and_opens_nothing(kit: Kit):
    from nimbus.datagen.kit import NimbusExtension

    extension = NimbusExtension()
    extension.on_startup("nimbus.datagen-0.1.0")
    assert (list(kit.menus), kit.windows, kit.stage, len(kit.observers)) == ([MENU], [], "", 1)
    extension.on_shutdown()
    assert (kit.menus, len(kit.observers)) == ({}, 0)


def test_nothing_is_started_before_somebody_asks(started: Started):
    assert (started.channels, started.jobs) == ([], [])
    assert started.kit.find("StringField", "task").model.get_value_as_string() == "sort_trash"


def test_shutting_down_leaves_nothing(opened: Started):
    opened.press("run")
    kit, extension = opened.kit, opened.extension
    window, desk = weakref.ref(kit.windows[0]), extension._desk
    extension.on_shutdown()
    kit.widgets.clear()
    gc.collect()
    assert (kit.menus, kit.windows, len(kit.observers), len(kit.edits)) == ({}, [], 0, 0)
    assert window() is None
    assert desk._observers == [] and desk.panel._observers == []
    assert opened.channel.closed == 1
    assert opened.jobs[-1].cancelled == 0, "a run goes on"
    assert kit.settings["/persistent/exts/nimbus.datagen/task"].endswith("mine.yaml")


def test_a_hot_reload_starts_afresh_with_the_task_of_before(started: Started):
    started.edit("StringField", "task", "other")
    started.extension.on_shutdown()
    started.extension.on_startup("nimbus.datagen-0.1.0")
    started.kit.show(MENU)
    assert started.kit.find("StringField", "task").model.get_value_as_string() == "other"
    assert (list(started.kit.menus), len(started.kit.observers)) == ([MENU], 1)


# Every control


def touch(opened: Started, control: Control) -> None:
    """Do something to a control through its widget."""
    kit, name = opened.kit, control.id
    if control.kind == "button":
        kit.press(name)
    elif control.kind in ("text", "lines"):
        kit.edit("StringField", name, TEXTS[pattern(name)])
    elif control.kind == "choice":
        kit.choose(name, CHOICES[pattern(name)])
    elif control.kind == "number":
        kit.edit("FloatDrag", name, control.value * 0.5)
    elif control.kind == "range":
        low, high = control.value
        kit.edit("FloatDrag", f"{name} low", low * 0.5)
        assert opened.text != TASK
        kit.edit("FloatDrag", f"{name} high", high * 0.75)
    opened.look()


def by_itself(name: str) -> bool:
    return name in BY_THEMSELVES or " . " in name


def test_every_control_changes_the_task_or_asks_for_what_it_says(opened: Started):
    editor, touched = opened.channel.editor, set()
    for control in [one for section in editor.sections() for one in section.controls]:
        name = pattern(control.id)
        if by_itself(name):
            continue
        editor.act("text", TASK)
        editor.act("episode", 0)
        for choice, index in (("steps", 3), ("success", 2)):
            editor.act(choice, index)
        if name in ("steps down", "steps remove", "success remove"):
            editor.act("steps", 0)
        if name == "undo":
            editor.act("rate", "30")
        opened.look()
        opened.channel.sketch.asked.clear()
        before = opened.text
        touch(opened, control)
        asked = [entry for entry in opened.channel.sketch.asked if entry[0] != "outline"]
        if control.kind == "button" and name not in CHANGE_THE_TASK:
            assert asked == [ACTIONS[name]], name
        else:
            assert opened.text != before, name
            assert asked == [], name
        touched.add(name)
    ranges = {"randomize.light.intensity", "randomize.materials.tint"}
    assert touched == {*TEXTS, *CHOICES, *CHANGE_THE_TASK, *ACTIONS, *ranges}


def test_what_is_tested_by_itself_is_there(opened: Started):
    opened.press("steps 1")
    opened.press("success 1")
    there = {control.id for section in opened.channel.editor.sections() for control in section.controls}
    assert set(BY_THEMSELVES) <= there


def test_every_widget_belongs_to_a_control_or_to_the_window(opened: Started):
    editor = opened.channel.editor
    names = {control.id for section in editor.sections() for control in section.controls}
    own = {"task", "open", "run seed", "episodes", "folder", "run", "cancel", "report"}
    for widget in opened.kit.widgets:
        if type(widget).__name__ in ("Button", "StringField", "IntDrag", "FloatDrag", "ComboBox"):
            options = widget.played_options
            name = str(options.get("identifier") or options.get("name"))
            stem = name.removesuffix(" low").removesuffix(" high").rstrip("0123456789").rstrip()
            assert {name, stem} & (names | own), name


def test_a_control_that_is_new_has_no_entry_and_fails(opened: Started):
    with pytest.raises(KeyError):
        touch(opened, Control(id="colour", kind="text"))


# The list of steps


def test_steps_are_selected_moved_added_and_changed_in_the_list(opened: Started):
    opened.press("steps 3")
    opened.press("steps up")
    assert opened.text.index("- home") < opened.text.index("for item in items")
    opened.press("steps down")
    opened.press("steps 1")
    opened.edit("StringField", "steps . lift", "12 cm")
    opened.press("steps change")
    assert "lift: 12 cm" in opened.text
    opened.press("steps 3")
    opened.choose("steps skill", "wait")
    opened.edit("StringField", "steps . time", "2 s")
    opened.press("steps add")
    assert opened.text.count("wait") == 1
    buttons = [widget.text for widget in opened.kit.widgets if type(widget).__name__ == "Button"]
    assert "> 5. wait: time 2 s" in buttons


def test_conditions_have_such_a_list_too(opened: Started):
    opened.press("success 2")
    opened.press("success up")
    assert opened.text.index("gripper_clear") < opened.text.index("inside")
    opened.press("success down")
    opened.choose("success predicate", "nothing_on_floor")
    opened.press("success change")
    assert "gripper_clear" not in opened.text and "nothing_on_floor" in opened.text


# Files


def test_save_writes_the_file_and_undo_and_redo_go_back_and_forth(opened: Started, tmp_path: Path):
    opened.edit("StringField", "rate", "30")
    assert opened.said("file").endswith("(not saved)")
    opened.press("undo")
    assert opened.text == TASK
    opened.press("redo")
    opened.press("save")
    assert (tmp_path / "mine.yaml").read_text() == TASK + "rate: 30\n"
    assert opened.said("file") == str(tmp_path / "mine.yaml")


def test_what_others_wrote_is_taken_over_or_saved_over(opened: Started, tmp_path: Path):
    opened.edit("StringField", "rate", "30")
    (tmp_path / "mine.yaml").write_text(TASK.replace("panda", "ur5"))
    opened.press("save")
    assert "written by somebody else" in opened.said("said")
    opened.press("reload")
    assert "robot: ur5" in opened.text
    opened.press("undo")
    opened.press("save over")
    assert (tmp_path / "mine.yaml").read_text() == TASK + "rate: 30\n"


def test_save_as_goes_on_with_another_file(opened: Started, tmp_path: Path):
    opened.edit("StringField", "save as", str(tmp_path / "other.yaml"))
    assert (tmp_path / "other.yaml").read_text() == TASK
    assert opened.said("file") == str(tmp_path / "other.yaml")


def test_a_task_that_comes_with_nimbus_can_be_started_from(opened: Started, tmp_path: Path):
    opened.choose("start from", "stack_blocks")
    assert opened.said("file") == str(tmp_path / "stack_blocks.yaml")
    opened.edit("StringField", "rate", "30")
    opened.choose("start from", "sort_trash")
    assert "not saved" in opened.said("said")


def test_a_mistake_stands_at_its_field(opened: Started):
    opened.edit("StringField", "objects.items.kinds", "[spoon]")
    opened.edit("StringField", "regions.start.size", "[0.1, -1]")
    assert "regions.start.size" in opened.said("problems")
    assert "regions.start.size" in opened.said("regions.start.size problem")
    opened.edit("StringField", "regions.start.size", "[0.1")
    assert opened.said("said")


def test_what_the_doctor_finds_stands_at_its_field(opened: Started):
    opened.channel.sketch.findings = [Problem(field="objects.items.region", what="out of reach")]
    opened.press("examine")
    assert "out of reach" in opened.said("problems")
    assert "out of reach" in opened.said("objects.items.region problem")


# The viewport


def test_seed_and_episode_say_which_layout_is_drawn(opened: Started):
    opened.edit("IntDrag", "seed", 7)
    opened.edit("IntDrag", "episode", 4)
    opened.press("this one")
    assert ("show_layout", {"seed": 7, "index": 4}) in opened.channel.sketch.asked
    assert opened.said("said") == "show_layout done"


def test_a_stage_is_opened_and_its_motion_played(opened: Started, tmp_path: Path):
    from nimbus.datagen.editor.screen import Shown

    opened.channel.sketch.shown = Shown(path=str(tmp_path / "plan.usda"), number=1, duration=4.0)
    opened.press("plan")
    assert opened.kit.stage == str(tmp_path / "plan.usda")
    assert opened.kit.played == [("set_end_time", (4.0,)), ("set_current_time", (0.0,)), ("play", ())]
    opened.kit.stage = ""
    opened.press("reach")
    assert opened.kit.stage == "", "the same stage is not opened again"


def test_unsaved_changes_of_the_open_stage_are_not_lost(opened: Started, tmp_path: Path):
    from nimbus.datagen.editor.screen import Shown

    opened.kit.has_pending_edit = True
    opened.channel.sketch.shown = Shown(path=str(tmp_path / "plan.usda"), number=1, duration=0.0)
    opened.press("this one")
    assert opened.kit.stage == ""
    assert "not saved" in opened.said("problem")


def test_a_region_and_a_camera_that_are_moved_in_the_viewport_are_moved_in_the_task(opened: Started):
    from pxr import Gf, Usd, UsdGeom

    from nimbus.datagen.editor.screen import Frustum, Marks, Region

    opened.kit.usd_stage = Usd.Stage.CreateInMemory()
    region = Region(id="regions.start.center", name="start", center=(0.5, 0.0, 0.0), size=(0.3, 0.4))
    camera = Frustum(
        id="cameras.front.pose", name="front", position=(1.5, 0, 0.9), wxyz=(1, 0, 0, 0), vertical_fov=0.7, aspect=1.3
    )
    opened.channel.sketch.marks = Marks(regions=(region,), cameras=(camera,))
    opened.edit("StringField", "rate", "30")
    with Usd.EditContext(opened.kit.usd_stage, opened.kit.usd_stage.GetSessionLayer()):
        plate: Any = UsdGeom.Xformable(opened.kit.usd_stage.GetPrimAtPath("/NimbusMarks/region_start"))
        plate.GetOrderedXformOps()[0].Set(Gf.Vec3d(0.42, 0.1, 0.002))
        eye: Any = UsdGeom.Xformable(opened.kit.usd_stage.GetPrimAtPath("/NimbusMarks/camera_front"))
        eye.GetOrderedXformOps()[0].Set(Gf.Vec3d(1.2, 0.3, 0.8))
    for _ in range(3):
        opened.look()
    assert "center: [0.42, 0.1]" in opened.text
    assert "position: [1.2, 0.3, 0.8]" in opened.text


def test_pictures_are_shown_below_the_controls(opened: Started, tmp_path: Path):
    opened.channel.sketch.pictures = {"front": str(tmp_path / "front.png")}
    opened.press("pictures")
    (image,) = [widget for widget in opened.kit.widgets if type(widget).__name__ == "Image"]
    assert image.played_args == (str(tmp_path / "front.png"),)


# Runs


def test_run_starts_a_process_and_shows_its_progress(opened: Started, tmp_path: Path):
    opened.edit("IntDrag", "run seed", 3)
    opened.edit("IntDrag", "episodes", 40)
    opened.edit("StringField", "folder", str(tmp_path / "made"))
    opened.press("run")
    words = ["run", "--task", str(tmp_path / "mine.yaml"), "--seed", "3", "--episodes", "40"]
    assert opened.jobs[-1].words == [*words, "--out", str(tmp_path / "made")]
    (tmp_path / "made").mkdir()
    status = {"state": "running", "target": 40, "settled": 10, "stored": 9, "failures": {"no_path": 3}}
    (tmp_path / "made/status.json").write_text(json.dumps(status))
    opened.look()
    assert opened.said("progress") == "running, 10 of 40 episodes, 9 stored, 3 failed attempts"
    bar = next(widget for widget in opened.kit.widgets if type(widget).__name__ == "ProgressBar")
    assert bar.model.get_value_as_float() == 0.25


def test_a_task_that_is_not_saved_or_wrong_is_not_run(started: Started, tmp_path: Path):
    started.press("run")
    assert "no task is open" in started.said("problem")
    started.edit("StringField", "task", "sort_trash")
    started.press("open")
    started.press("run")
    assert "the task is not saved" in started.said("problem")
    started.press("save")
    started.edit("StringField", "rate", "-3")
    started.press("save")
    started.press("run")
    assert "rate" in started.said("problem")
    assert started.jobs == []


def test_cancel_asks_the_run_to_stop(opened: Started):
    opened.press("run")
    opened.press("cancel")
    assert opened.jobs[-1].cancelled == 1
    assert "stopping" in opened.said("progress")
    opened.jobs[-1].end(130)
    opened.look()
    assert opened.said("problem") == "stopped"
    assert opened.kit.find("Button", "run").enabled


def test_open_report_opens_the_page_of_the_run(opened: Started, monkeypatch: pytest.MonkeyPatch):
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    opened.press("report")
    assert "no report yet" in opened.said("problem")
    opened.press("run")
    page = Path("out/mine/report.html")
    page.parent.mkdir(parents=True)
    page.touch()
    opened.press("report")
    assert shown == [page.absolute().as_uri()]


# The editor's end


def test_an_editor_that_dies_is_followed_by_another_with_the_same_text(opened: Started):
    opened.edit("StringField", "rate", "30")
    opened.channel.dead = "the editor ended: Killed"
    opened.look()
    opened.look()
    assert len(opened.channels) == 2 and opened.channels[0].closed == 1
    assert opened.text == TASK + "rate: 30\n"
    assert "Killed" in opened.said("problem")


def test_an_editor_that_cannot_be_started_is_one_line(started: Started, monkeypatch: pytest.MonkeyPatch):
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.kit import extension

    def missing(*_: Any) -> Any:
        raise InputError("no Python with Nimbus's dependencies was found", instead="make one")

    monkeypatch.setattr(extension, "ProcessChannel", missing)
    started.press("open")
    assert started.said("problem") == "no Python with Nimbus's dependencies was found; make one"


def test_names_that_kit_does_not_have_raise_in_the_stand_in(kit: Kit):
    import omni.ui as ui  # pyright: ignore[reportMissingImports]
    import omni.usd  # pyright: ignore[reportMissingImports]

    with pytest.raises(AttributeError, match="contract"):
        ui.Buton  # noqa: B018
    with pytest.raises(AttributeError, match="contract"):
        omni.usd.get_context().get_stag()
    with pytest.raises(AttributeError, match="contract"):
        ui.Label("a").txt = "b"
    with pytest.raises(TypeError, match="colour"):
        ui.Label("a", colour="red")
    with pytest.raises(ModuleNotFoundError):
        import omni.isaac.core  # noqa: F401  # pyright: ignore[reportMissingImports]
    with pytest.raises(NotImplementedError):
        omni.usd.get_context().close_stage()
