"""Every control of the studio changes the task or does what it says; one that nobody tests fails here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from controls import Place, controls, use
from runs import run

from nimbus.datagen.panel.forms import SkillForm, skill_forms
from nimbus.datagen.scene_files import scene_folder

SORT = (scene_folder("tasks") / "sort_trash.yaml").read_text()

FIELDS: dict[Place, tuple[Any, tuple[str | int, ...], Any]] = {
    ("Robot and scene", "robot"): ("ur5", ("robot",), "ur5"),
    ("Robot and scene", "scene"): ("table", ("scene",), "table"),
    ("Robot and scene", "rate"): ("10", ("rate",), 10),
    ("Regions", "start on"): ("floor", ("regions", "start", "on"), "floor"),
    ("Regions", "start center"): ("[0.45, 5 cm]", ("regions", "start", "center"), (0.45, "5 cm")),
    ("Regions", "start size"): ("[0.2, 0.2]", ("regions", "start", "size"), (0.2, 0.2)),
    ("Objects", "items library"): ("blocks", ("objects", "items", "library"), "blocks"),
    ("Objects", "items region"): ("items", ("objects", "items", "region"), "items"),
    ("Objects", "items count"): ("[1, 3]", ("objects", "items", "count"), (1, 3)),
    ("Objects", "items kinds"): ("[can, cup]", ("objects", "items", "kinds"), ("can", "cup")),
    ("Objects", "items yaw"): ("", ("objects", "items", "yaw"), None),
    ("Objects", "items lying"): ("50 %", ("objects", "items", "lying"), "50 %"),
    ("Objects", "items scale"): ("[90 %, 110 %]", ("objects", "items", "scale"), ("90 %", "110 %")),
    ("Objects", "items distinct"): ("true", ("objects", "items", "distinct"), True),
    ("Objects", "items anchored"): ("true", ("objects", "items", "anchored"), True),
    ("Objects", "items joints"): ("{door: 30 %}", ("objects", "items", "joints"), {"door": "30 %"}),
    ("Randomization", "how much"): ("small", ("randomize",), "small"),
    ("Randomization", "camera.position [cm]"): (3.0, ("randomize", "camera", "position"), "3 cm"),
    ("Randomization", "camera.rotation [deg]"): (2.0, ("randomize", "camera", "rotation"), "2 deg"),
    ("Randomization", "light.intensity [%]"): ((50.0, 90.0), ("randomize", "light", "intensity"), ("50 %", "90 %")),
    ("Randomization", "light.temperature [K]"): (
        (4000.0, 5000.0),
        ("randomize", "light", "temperature"),
        ("4000 K", "5000 K"),
    ),
    ("Randomization", "materials.tint [%]"): (10.0, ("randomize", "materials", "tint"), "10 %"),
    ("Randomization", "mass.factor [%]"): ((70.0, 130.0), ("randomize", "mass", "factor"), ("70 %", "130 %")),
    ("Randomization", "friction.factor [%]"): ((70.0, 130.0), ("randomize", "friction", "factor"), ("70 %", "130 %")),
    ("Randomization", "vary also"): (
        "gains",
        ("randomize", "gains"),
        {"stiffness": ("95 %", "105 %"), "damping": ("95 %", "105 %")},
    ),
    ("Randomization", "no longer"): ("mass", ("randomize", "mass"), None),
    ("Cameras", "cameras"): ("front", ("cameras",), "front"),
    ("Language", "instructions"): ("One.\nTwo.", ("instructions",), ("One.", "Two.")),
}
"""What is typed or chosen, where it stands in the file then, and what stands there."""


@pytest.mark.parametrize(("place", "typed", "keys", "value"), [(place, *rest) for place, rest in FIELDS.items()])
def test_a_field_writes_into_the_file(studio: Any, place: Place, typed: Any, keys: tuple[str | int, ...], value: Any):
    use(controls(studio)[place], typed)
    assert studio.draft.value(*keys) == value
    studio.draft.save()
    assert studio.draft.path.read_text() == studio.draft.text != SORT
    studio.draft.undo()
    assert studio.draft.text == SORT
    studio.draft.save()


ACTIONS: dict[Place, Callable[..., None]] = {}
"""What uses each of the other controls, and sees what comes of it."""


def action(place: str, label: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def named(test: Callable[..., None]) -> Callable[..., None]:
        ACTIONS[place, label] = test
        return test

    return named


# The task


@action("Task", "start from")
def start_from(studio: Any) -> None:
    use(controls(studio)["Task", "start from"], "stack_blocks")
    assert studio.draft.name == "stack_blocks"
    assert studio.draft.path.parent == studio._folder


@action("Task", "file")
def file(studio: Any) -> None:
    path = studio._folder / "copy_of_it.yaml"
    use(controls(studio)["Task", "file"], str(path))
    use(controls(studio)["Task", "on disk"], "Save as")
    assert (studio.draft.path, path.read_text()) == (path, SORT)
    use(controls(studio)["Task", "file"], str(studio._folder / "quite_new.yaml"))
    use(controls(studio)["Task", "on disk"], "Open")
    assert (studio.draft.name, studio.draft.problems()) == ("quite_new", [])
    studio.draft.save()


@action("Task", "on disk")
def on_disk(studio: Any) -> None:
    disk = controls(studio)["Task", "on disk"]
    studio.draft.set(("rate",), 10)
    use(disk, "Save")
    assert studio.draft.path.read_text() == studio.draft.text != SORT
    studio.draft.path.write_text(SORT)
    use(disk, "Reload")
    assert studio.draft.text == SORT


@action("Task", "changes")
def changes(studio: Any) -> None:
    group = controls(studio)["Task", "changes"]
    studio.draft.set(("rate",), 10)
    changed = studio.draft.text
    use(group, "Undo")
    assert studio.draft.text == SORT
    use(group, "Redo")
    assert studio.draft.text == changed
    studio.draft.path.write_text("theirs: 1\n")
    use(group, "Save over")
    assert studio.draft.path.read_text() == changed
    studio.draft.set(("regions", "start", "center"), [3.0, 3.0])
    use(group, "Examine")
    assert studio.errands.wait(timeout=300)
    assert "regions" in studio._complaint + studio.task_tab._state.content
    studio.draft.undo()
    studio.draft.undo()
    studio.draft.save()


@action("Regions", "remove start")
def remove_region(studio: Any) -> None:
    use(controls(studio)["Regions", "remove start"])
    assert not studio.draft.value("regions")


@action("Regions", "new region")
def new_region(studio: Any) -> None:
    use(controls(studio)["Regions", "new region"], "start")
    use(controls(studio)["Regions", "add a region"])
    assert "there is a 'start' already" in studio._complaint
    assert studio.draft.text == SORT


@action("Regions", "add a region")
def add_region(studio: Any) -> None:
    use(controls(studio)["Regions", "new region"], "goal")
    use(controls(studio)["Regions", "add a region"])
    assert studio.draft.value("regions", "goal", "on") == "table"
    assert ("Regions", "goal center") in controls(studio)


@action("Objects", "remove items")
def remove_objects(studio: Any) -> None:
    use(controls(studio)["Objects", "remove items"])
    assert studio.draft.value("objects", "items") is None


@action("Objects", "new things")
def new_objects(studio: Any) -> None:
    assert controls(studio)["Objects", "new things"].value == "things"
    use(controls(studio)["Objects", "new things"], "tray")
    use(controls(studio)["Objects", "add objects"])
    assert studio.draft.value("objects", "tray", "region") == "start"


ACTIONS["Objects", "add objects"] = new_objects


@action("Cameras", "new camera")
def new_camera(studio: Any) -> None:
    use(controls(studio)["Cameras", "new camera"], "side")
    use(controls(studio)["Cameras", "add a camera"])
    assert studio.draft.value("cameras", "side", "position") == (1.0, 0.6, 0.7)
    use(controls(studio)["Cameras", "side position"], "[1, 1, 1]")
    assert studio.draft.value("cameras", "side", "position") == (1, 1, 1)
    use(controls(studio)["Cameras", "remove side"])
    assert studio.draft.value("cameras", "side") is None


ACTIONS["Cameras", "add a camera"] = new_camera


@action("File", "text")
def text(studio: Any) -> None:
    use(controls(studio)["File", "text"], SORT.replace("rate", "rate").replace("panda", "ur5"))
    use(controls(studio)["File", "take this text"])
    assert studio.draft.value("robot") == "ur5"
    use(controls(studio)["File", "text"], "robot: [")
    use(controls(studio)["File", "take this text"])
    assert "malformed" in studio._complaint
    assert studio.draft.value("robot") == "ur5"


ACTIONS["File", "take this text"] = text


# Steps and conditions


def labels(form: SkillForm) -> list[str]:
    """Of the fields of its parameters."""
    return [
        parameter.name if parameter.required or parameter.choices else f"{parameter.name} (may be empty)"
        for parameter in form.parameters
    ]


LISTS = (("Steps", "steps", "skill", "home"), ("Success", "success", "predicate", "nothing_on_floor"))


def select(studio: Any, folder: str) -> None:
    entries = controls(studio)[folder, "select"]
    use(entries, entries.options[-1])


def order(studio: Any, folder: str, key: str) -> None:
    before = studio.draft.value(key)
    select(studio, folder)
    use(controls(studio)[folder, "move"], "up")
    assert studio.draft.value(key) == (*before[:-2], before[-1], before[-2])
    use(controls(studio)[folder, "move"], "down")
    assert studio.draft.value(key) == before
    use(controls(studio)[folder, "move"], "remove")
    assert studio.draft.value(key) == before[:-1]


def for_each(studio: Any, folder: str, key: str) -> None:
    before = studio.draft.value(key)
    select(studio, folder)
    use(controls(studio)[folder, "for each of"], "items")
    assert studio.draft.value(key)[-1] == {"for item in items": (before[-1],)}


def add_entry(studio: Any, folder: str, key: str, kind: str, name: str) -> None:
    select(studio, folder)
    use(controls(studio)[folder, kind], name)
    use(controls(studio)[folder, "add after"])
    assert studio.draft.value(key)[-1] == name
    assert studio.draft.problems() == []


def change_entry(studio: Any, folder: str, key: str, kind: str) -> None:
    select(studio, folder)
    name = {"skill": "pick", "predicate": "at_rest"}[kind]
    use(controls(studio)[folder, kind], name)
    (form,) = (form for form in skill_forms(kind=kind) if form.name == name)
    (label,) = (label for label in labels(form) if label.startswith(form.main))
    use(controls(studio)[folder, label], "items")
    use(controls(studio)[folder, "change this one"])
    assert studio.draft.value(key)[-1] in ({"pick": "items"}, {"at_rest": "items"})


for folder, key, kind, name in LISTS:
    ACTIONS[folder, "select"] = lambda studio, f=folder, k=key: order(studio, f, k)
    ACTIONS[folder, "move"] = ACTIONS[folder, "select"]
    ACTIONS[folder, "for each of"] = lambda studio, f=folder, k=key: for_each(studio, f, k)
    ACTIONS[folder, kind] = lambda studio, a=(folder, key, kind, name): add_entry(studio, *a)
    ACTIONS[folder, "add after"] = ACTIONS[folder, kind]
    ACTIONS[folder, "change this one"] = lambda studio, a=(folder, key, kind): change_entry(studio, *a)


@pytest.mark.parametrize("folder", ["Steps", "Success"])
def test_every_parameter_of_every_skill_is_a_field_that_goes_into_the_file(studio: Any, folder: str):
    key, kind = {"Steps": ("steps", "skill"), "Success": ("success", "predicate")}[folder]
    for form in skill_forms(kind=kind):
        use(controls(studio)[folder, kind], form.name)
        for parameter, label in zip(form.parameters, labels(form), strict=True):
            use(controls(studio)[folder, label], parameter.choices[0] if parameter.choices else "x")
        use(controls(studio)[folder, "add after"])
        row = studio.task_tab.section(folder).selected_row
        assert (row.name, set(row.parameters)) == (form.name, {parameter.name for parameter in form.parameters})


# Layouts and motions


@pytest.fixture
def moving(studio: Any) -> Any:
    """Shows a motion of thirty steps in which everything rises."""
    from nimbus.datagen.studio.preview import Plot

    look = studio.player.look
    rise = np.linspace(0, 0.2, 30)[:, None, None] * (0, 0, 1)
    motion = replace(
        look.motion,
        positions=look.motion.positions[:1] + rise,
        wxyz=np.repeat(look.motion.wxyz[:1], 30, axis=0),
        plots=tuple(Plot(title=name, names=("a", "b"), rows=rise[:, 0, :2]) for name in ("one", "other")),
    )
    studio.player.show(replace(look, motion=motion), "rising")
    assert studio.errands.wait(timeout=300)
    yield studio
    studio.player.show(look, "")


def height(studio: Any) -> float:
    return studio.view._bodies["panda_hand"].position[2]


@action("", "step")
def step(moving: Any) -> None:
    low = height(moving)
    use(controls(moving)["", "step"], 29)
    assert height(moving) == pytest.approx(low + 0.2)


@action("", "motion")
def motion(moving: Any) -> None:
    group = controls(moving)["", "motion"]
    use(group, "Play")
    assert moving.player.is_playing
    use(group, "Stop")
    assert not moving.player.is_playing


@action("Camera pictures", "picture")
def picture(studio: Any) -> None:
    seen = set()
    for name in controls(studio)["Camera pictures", "picture"].options:
        use(controls(studio)["Camera pictures", "picture"], name)
        assert studio.errands.wait(timeout=300)
        seen.add(studio.player._images["front"].image.tobytes())
    assert len(seen) == 7
    use(controls(studio)["Camera pictures", "picture"], "rgb")


@action("Plots", "plot")
def plot(moving: Any) -> None:
    use(controls(moving)["Plots", "plot"], "other")
    assert moving.player._plot.title == "other"


@action("Layouts", "seed")
def seed(studio: Any) -> None:
    use(controls(studio)["Layouts", "seed"], 5)
    use(controls(studio)["Layouts", "episode"], 2)
    use(controls(studio)["Layouts", "layout"], "This one")
    assert studio.errands.wait(timeout=300)
    assert (studio.player.look.layout.key.seed, studio.player.look.layout.key.index) == (5, 2)
    use(controls(studio)["Layouts", "layout"], "Next")
    assert studio.errands.wait(timeout=300)
    assert studio.player.look.layout.key.index == 3
    use(controls(studio)["Layouts", "layout"], "Sample 50")
    assert studio.errands.wait(timeout=300)
    assert len(studio.layouts.samples) == 50
    assert studio.view.shown("samples")
    use(controls(studio)["Layouts", "check"], "Reach")
    assert studio.errands.wait(timeout=300)
    assert studio.view.shown("reach")
    use(controls(studio)["Layouts", "layout"], "Clear")
    assert not studio.view.shown("samples")
    assert not studio.view.shown("reach")


ACTIONS["Layouts", "episode"] = ACTIONS["Layouts", "layout"] = seed


@action("Layouts", "check")
def check(studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[int] = []
    monkeypatch.setattr(studio.layouts, "plan_one", lambda: planned.append(1))  # the browser's visit plans for real
    use(controls(studio)["Layouts", "check"], "Plan one")
    assert studio.errands.wait(timeout=300)
    assert planned == [1]


# Runs and their data


@action("Run", "run")
def run_it(studio: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[str] = []
    for name in ("run", "cancel"):
        monkeypatch.setattr(studio.panel, name, lambda name=name: done.append(name))  # the visit runs for real
    group = controls(studio)["Run", "run"]
    studio.draft.set(("rate",), 10)
    use(group, "Run")
    assert "not saved" in studio._complaint
    studio.draft.undo()
    studio.draft.save()
    for label, value in (("episodes", 3), ("run seed", 7), ("folder", str(tmp_path))):
        use(controls(studio)["Run", label], value)
    use(group, "Run")
    use(group, "Cancel")
    panel = studio.panel
    assert done == ["run", "cancel"]
    assert (panel.task, panel.episodes, panel.seed) == (str(studio.draft.path), 3, 7)
    assert panel.out_folder == tmp_path
    use(group, "Report")
    assert "no report yet" in studio._complaint
    (tmp_path / "report.html").write_text("<p>all is well</p>")
    use(group, "Report")
    assert studio._complaint == ""
    (modal,) = studio.server.gui._modal_handle_from_uuid.values()
    (button,) = [handle for place, handle in controls(studio).items() if place[1] == "Close"]
    use(button)
    assert not studio.server.gui._modal_handle_from_uuid
    studio.panel.set_out("")


for label in ("episodes", "run seed", "folder"):
    ACTIONS["Run", label] = run_it


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "tiny"
    assert run("--episodes", "1", out=folder) == 0
    return folder


@action("Data", "dataset")
def data(studio: Any, dataset: Path) -> None:
    def of(label: str) -> Any:
        return controls(studio)["Data", label]

    use(of("dataset"), str(dataset.parent))
    use(of("Open dataset"))
    assert studio.errands.wait(timeout=300)
    assert "no dataset" in studio._complaint
    use(of("dataset"), str(dataset))
    use(of("Open dataset"))
    assert studio.errands.wait(timeout=300)
    (label,) = [option for option in of("episode").options if "stored" in option]
    use(of("outcome"), "stored")
    assert of("episode").options == (label,)
    use(of("outcome"), "failed")
    assert label not in of("episode").options
    use(of("outcome"), "all")
    use(of("reason"), of("reason").options[-1])
    use(of("reason"), "any reason")
    use(of("episode"), label)
    use(of("Replay"))
    assert studio.errands.wait(timeout=300)
    assert studio.player.look.motion.step_count > 20
    assert studio.player._images["front"].image.shape == (48, 64, 3)
    use(controls(studio)["", "step"], 20)
    assert studio.errands.wait(timeout=300)
    assert "step 20" in studio.player._outcome.content


for label in ("Open dataset", "outcome", "reason", "episode", "Replay"):
    ACTIONS["Data", label] = data

WORKS = {test.__name__ + f"_{number}": test for number, test in enumerate(dict.fromkeys(ACTIONS.values()))}


@pytest.mark.parametrize("name", WORKS)
def test_a_button_does_what_it_says(request: pytest.FixtureRequest, name: str):
    test = WORKS[name]
    names = test.__code__.co_varnames[: test.__code__.co_argcount - len(test.__defaults__ or ())]
    test(*(request.getfixturevalue(one) for one in names))


def test_every_control_is_tested(studio: Any):
    folders = ("Steps", "skill"), ("Success", "predicate")
    parameters = {
        (folder, label) for folder, kind in folders for form in skill_forms(kind=kind) for label in labels(form)
    }
    assert set(controls(studio)) - set(FIELDS) - set(ACTIONS) - parameters == set()
