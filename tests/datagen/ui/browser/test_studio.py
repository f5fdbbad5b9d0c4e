"""The studio without a browser: every field changes the task, and every button has its effect."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.ui.browser.studio import Studio
from tests.support.runs import TINY, sound
from tests.support.studio.controls import controls, use

SORT = (scene_folder("tasks") / "sort_trash.yaml").read_text()


def test_what_was_dragged_in_the_scene_stands_in_the_file(studio: Any):
    studio.scene._move_region("start", 0.52, 0.01)
    assert studio.draft.text == SORT.replace("center: [0.5, 0.0]", "center: [0.52, 0.01]")
    assert controls(studio)["Regions", "start center"].value == "[0.52, 0.01]"
    studio.scene._move_camera("front", (1.0, 0.0, 0.8), (0.6123724, 0.3535534, 0.3535534, 0.6123724))
    assert studio.draft.value("cameras", "front", "position") == (1.0, 0.0, 0.8)


def test_a_robot_that_does_not_load_is_one_line_and_the_fields_stay(studio: Any):
    (studio.draft.path.parent / "broken.yaml").write_text("urdf: [")
    studio.draft.set(("robot",), "broken.yaml")
    assert studio.tasks.wait(timeout=300)
    assert "broken.yaml" in studio.editor.message
    assert studio.draft.value("robot") == "broken.yaml"


def test_two_studios_on_one_file_are_told_of_each_other_and_lose_nothing(studio: Any, tmp_path: Path):
    (path := tmp_path / "shared.yaml").write_text(SORT)
    studio.editor.open(str(path))
    with contextlib.closing(Studio(str(path), host="127.0.0.1", port=8300, folder=tmp_path)) as other:
        assert other.address != studio.address
        studio.draft.set(("rate",), 10)
        other.draft.set(("rate",), 20)
        studio.draft.save()
        soon(lambda: "changed on disk" in status(other))
        use(controls(other)["Task", "on disk"], "Save")
        assert "has changed on disk" in other.editor.message
        assert path.read_text() == studio.draft.text
        use(controls(other)["Task", "on disk"], "Reload")
        assert other.draft.value("rate") == 10
        use(controls(other)["Task", "changes"], "Undo")
        assert other.draft.value("rate") == 20
        assert other.tasks.wait(timeout=300)


def test_a_run_is_cancelled_in_one_studio_while_another_draws_and_runs_to_its_end(
    studio: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NIMBUS_PYTHON", sys.executable)
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(TINY.read_text())
    studio.editor.open(str(tmp_path / "one.yaml"))
    with contextlib.closing(Studio(str(tmp_path / "two.yaml"), host="127.0.0.1", port=8300, folder=tmp_path)) as other:
        assert studio.tasks.wait(timeout=300) and other.tasks.wait(timeout=300)
        for each, name, episodes in ((studio, "one", 1000), (other, "two", 3)):
            use(controls(each)["Run", "episodes"], episodes)
            use(controls(each)["Run", "folder"], str(tmp_path / name))
            use(controls(each)["Run", "run"], "Run")
        use(controls(other)["Layouts", "layout"], "Sample 50")
        assert other.tasks.wait(timeout=300)
        assert len(other.scene.samples) == 50
        soon(lambda: stored(tmp_path / "one") > 0)
        use(controls(studio)["Run", "run"], "Cancel")
        soon(lambda: not studio.panel.is_running and not other.panel.is_running)
        assert sound(tmp_path / "one") and sound(tmp_path / "two")
        assert state(tmp_path / "one") == "interrupted" and 0 < stored(tmp_path / "one") < 1000
        assert state(tmp_path / "two") == "done" and stored(tmp_path / "two") == 3
        assert studio.editor.message == other.editor.message == ""
    studio.panel.set_out("")


def status(studio: Any) -> str:
    return next(one.label for one in studio.editor.sections()[0].controls if one.id == "status")


def stored(folder: Path) -> int:
    with contextlib.suppress(OSError):
        return json.loads((folder / "status.json").read_text())["stored"]
    return 0


def state(folder: Path) -> str:
    return json.loads((folder / "status.json").read_text())["state"]


@pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="viser is not installed")
def test_a_port_that_is_no_address_of_this_machine_is_one_line(tmp_path: Path):
    with pytest.raises(InputError, match="cannot listen"):
        Studio("sort_trash", host="203.0.113.1", port=8300, folder=tmp_path)


def soon(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
