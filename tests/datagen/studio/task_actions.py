"""What uses the studio's buttons around a task, its regions, objects, cameras and text, and sees what comes of it."""

from __future__ import annotations

from typing import Any

from controls import Actions, controls, use
from fields import SORT

ACTIONS = Actions()


@ACTIONS.at("Task", "start from")
def start_from(studio: Any) -> None:
    use(controls(studio)["Task", "start from"], "stack_blocks")
    assert studio.draft.name == "stack_blocks"
    assert studio.draft.path.parent == studio._folder


@ACTIONS.at("Task", "file")
def file(studio: Any) -> None:
    path = studio._folder / "copy_of_it.yaml"
    use(controls(studio)["Task", "file"], str(path))
    use(controls(studio)["Task", "on disk"], "Save as")
    assert (studio.draft.path, path.read_text()) == (path, SORT)
    use(controls(studio)["Task", "file"], str(studio._folder / "quite_new.yaml"))
    use(controls(studio)["Task", "on disk"], "Open")
    assert (studio.draft.name, studio.draft.problems()) == ("quite_new", [])
    studio.draft.save()


@ACTIONS.at("Task", "on disk")
def on_disk(studio: Any) -> None:
    disk = controls(studio)["Task", "on disk"]
    studio.draft.set(("rate",), 10)
    use(disk, "Save")
    assert studio.draft.path.read_text() == studio.draft.text != SORT
    studio.draft.path.write_text(SORT)
    use(disk, "Reload")
    assert studio.draft.text == SORT


@ACTIONS.at("Task", "changes")
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


@ACTIONS.at("Regions", "remove start")
def remove_region(studio: Any) -> None:
    use(controls(studio)["Regions", "remove start"])
    assert not studio.draft.value("regions")


@ACTIONS.at("Regions", "new region")
def new_region(studio: Any) -> None:
    use(controls(studio)["Regions", "new region"], "start")
    use(controls(studio)["Regions", "add a region"])
    assert "there is a 'start' already" in studio._complaint
    assert studio.draft.text == SORT


@ACTIONS.at("Regions", "add a region")
def add_region(studio: Any) -> None:
    use(controls(studio)["Regions", "new region"], "goal")
    use(controls(studio)["Regions", "add a region"])
    assert studio.draft.value("regions", "goal", "on") == "table"
    assert ("Regions", "goal center") in controls(studio)


@ACTIONS.at("Objects", "remove items")
def remove_objects(studio: Any) -> None:
    use(controls(studio)["Objects", "remove items"])
    assert studio.draft.value("objects", "items") is None


@ACTIONS.at("Objects", "new things", "add objects")
def new_objects(studio: Any) -> None:
    assert controls(studio)["Objects", "new things"].value == "things"
    use(controls(studio)["Objects", "new things"], "tray")
    use(controls(studio)["Objects", "add objects"])
    assert studio.draft.value("objects", "tray", "region") == "start"


@ACTIONS.at("Cameras", "new camera", "add a camera")
def new_camera(studio: Any) -> None:
    use(controls(studio)["Cameras", "new camera"], "side")
    use(controls(studio)["Cameras", "add a camera"])
    assert studio.draft.value("cameras", "side", "position") == (1.0, 0.6, 0.7)
    use(controls(studio)["Cameras", "side position"], "[1, 1, 1]")
    assert studio.draft.value("cameras", "side", "position") == (1, 1, 1)
    use(controls(studio)["Cameras", "remove side"])
    assert studio.draft.value("cameras", "side") is None


@ACTIONS.at("File", "text", "take this text")
def text(studio: Any) -> None:
    use(controls(studio)["File", "text"], SORT.replace("rate", "rate").replace("panda", "ur5"))
    use(controls(studio)["File", "take this text"])
    assert studio.draft.value("robot") == "ur5"
    use(controls(studio)["File", "text"], "robot: [")
    use(controls(studio)["File", "take this text"])
    assert "malformed" in studio._complaint
    assert studio.draft.value("robot") == "ur5"
