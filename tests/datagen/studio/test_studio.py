"""The studio without a browser: every field writes into the task, every button does what it says."""

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
from controls import controls, use
from runs import TINY, sound

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.panel.draft import TaskDraft
from nimbus.datagen.studio.app import Studio
from nimbus.datagen.studio.errands import Errands

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


def test_an_errand_that_waits_for_rest_is_done_once_and_holds_up_no_other():
    done: list[str] = []
    errands = Errands(lambda what: None, done.append)
    for _ in range(5):
        errands.send("pictures", lambda: done.append("pictures"), rest=0.3)
        time.sleep(0.02)
    errands.send("other", lambda: done.append("other"))
    assert errands.wait(timeout=20)
    assert done == ["other", "pictures"]
    errands.close()


def test_what_was_dragged_in_the_scene_stands_in_the_file(studio: Any):
    studio._region_moved("start", 0.52, 0.01)
    assert studio.draft.text == SORT.replace("center: [0.5, 0.0]", "center: [0.52, 0.01]")
    studio._camera_moved("front", (1.0, 0.0, 0.8), (0.6123724, 0.3535534, 0.3535534, 0.6123724))
    assert studio.draft.value("cameras", "front", "position") == (1.0, 0.0, 0.8)


def test_a_robot_that_does_not_load_is_one_line_and_the_fields_stay(studio: Any):
    (studio._folder / "broken.yaml").write_text("urdf: [")
    studio.draft.set(("robot",), "broken.yaml")
    assert studio.errands.wait(timeout=300)
    assert "broken.yaml" in studio._complaint
    assert studio.draft.value("robot") == "broken.yaml"


def test_two_studios_on_one_file_are_told_of_each_other_and_lose_nothing(studio: Any, tmp_path: Path):
    (path := tmp_path / "shared.yaml").write_text(SORT)
    studio.open(str(path))
    with contextlib.closing(Studio(str(path), host="127.0.0.1", port=8300, folder=tmp_path)) as other:
        assert other.address != studio.address
        studio.draft.set(("rate",), 10)
        other.draft.set(("rate",), 20)
        studio.draft.save()
        soon(lambda: "somebody else" in other.task_tab._state.content)
        use(controls(other)["Task", "on disk"], "Save")
        assert "nothing was saved" in other._complaint
        assert path.read_text() == studio.draft.text
        use(controls(other)["Task", "on disk"], "Reload")
        assert other.draft.value("rate") == 10
        use(controls(other)["Task", "changes"], "Undo")
        assert other.draft.value("rate") == 20
        assert other.errands.wait(timeout=300)


def test_a_run_is_cancelled_in_one_studio_while_another_draws_and_runs_to_its_end(
    studio: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NIMBUS_PYTHON", sys.executable)
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(TINY.read_text())
    studio.open(str(tmp_path / "one.yaml"))
    with contextlib.closing(Studio(str(tmp_path / "two.yaml"), host="127.0.0.1", port=8300, folder=tmp_path)) as other:
        assert studio.errands.wait(timeout=300) and other.errands.wait(timeout=300)
        for each, name, episodes in ((studio, "one", 1000), (other, "two", 3)):
            use(controls(each)["Run", "episodes"], episodes)
            use(controls(each)["Run", "folder"], str(tmp_path / name))
            use(controls(each)["Run", "run"], "Run")
        use(controls(other)["Layouts", "layout"], "Sample 50")
        assert other.errands.wait(timeout=300)
        assert len(other.layouts.samples) == 50
        soon(lambda: stored(tmp_path / "one") > 0)
        use(controls(studio)["Run", "run"], "Cancel")
        soon(lambda: not studio.panel.is_running and not other.panel.is_running)
        assert sound(tmp_path / "one") and sound(tmp_path / "two")
        assert state(tmp_path / "one") == "interrupted" and 0 < stored(tmp_path / "one") < 1000
        assert state(tmp_path / "two") == "done" and stored(tmp_path / "two") == 3
        assert studio._complaint == other._complaint == ""
    studio.panel.set_out("")


def stored(folder: Path) -> int:
    with contextlib.suppress(OSError):
        return json.loads((folder / "status.json").read_text())["stored"]
    return 0


def state(folder: Path) -> str:
    return json.loads((folder / "status.json").read_text())["state"]


def test_a_file_that_changed_on_disk_is_told_of_and_kept(studio: Any):
    studio.draft.save()
    studio.draft.path.write_text(SORT + "# theirs\n")
    soon(lambda: "somebody else" in studio.task_tab._state.content)
    studio.draft.set(("rate",), 10)
    use(controls(studio)["Task", "on disk"], "Save")
    assert "nothing was saved" in studio._complaint
    assert studio.draft.path.read_text() == SORT + "# theirs\n"
    assert studio.draft.value("rate") == 10
    use(controls(studio)["Task", "changes"], "Save over")
    assert studio.draft.path.read_text() == studio.draft.text


@pytest.mark.skipif(importlib.util.find_spec("viser") is None, reason="viser is not installed")
def test_a_port_that_is_no_address_of_this_machine_is_one_line(tmp_path: Path):
    with pytest.raises(InputError, match="cannot listen"):
        Studio("sort_trash", host="203.0.113.1", port=8300, folder=tmp_path)


def test_a_task_that_is_not_saved_is_not_left(studio: Any):
    studio.draft.set(("rate",), 12)
    with pytest.raises(InputError, match="not saved"):
        studio.open("stack_blocks")


def soon(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
