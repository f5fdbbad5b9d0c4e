from __future__ import annotations

import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from nimbus.runner.cell import incidents
from nimbus.runner.cell.incidents import write_incident
from tests.support.small_disks import small_disk


def write(folder: Path, **changes: Any) -> Path | None:
    values: dict[str, Any] = {
        "kind": "hang",
        "worker": 3,
        "phase": "render",
        "index": 17,
        "lease": 2,
        "detail": "no stamp for 10.2 s",
        "stack": "Thread 0x1\n",
        "log_tail": "last line\n",
        "task_text": "robot: panda\n",
    }
    return write_incident(folder, **values | changes)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "incidents").iterdir())


def test_an_incident_says_what_when_where_and_keeps_the_evidence(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert path is not None and path.parent == tmp_path / "incidents"
    assert re.fullmatch(r"\d{8}-\d{6}-1-hang", path.name)
    facts = json.loads((path / "incident.json").read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", facts.pop("time"))
    detail = "no stamp for 10.2 s"
    assert facts == {"kind": "hang", "worker": 3, "phase": "render", "index": 17, "lease": 2, "detail": detail}
    assert {file.name: file.read_text() for file in path.iterdir() if file.suffix != ".json"} == {
        "stack.txt": "Thread 0x1\n",
        "log.txt": "last line\n",
        "task.yaml": "robot: panda\n",
    }


def test_incidents_of_one_second_have_names_of_their_own_and_sort_by_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incidents.time, "time", lambda: 1.8e9)
    for kind in ("hang", "hang", "killed by SIGSEGV", "../../etc", ""):
        assert write(tmp_path, kind=kind)
    assert names(tmp_path) == [
        "20270115-080000-1-hang",
        "20270115-080000-2-hang",
        "20270115-080000-3-killed_by_SIGSEGV",
        "20270115-080000-4-_etc",
        "20270115-080000-5-fault",
    ]


def test_only_the_newest_are_kept_and_nothing_of_others_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "incidents" / "notes").mkdir(parents=True)
    monkeypatch.setattr(incidents, "KEPT", 12)
    monkeypatch.setattr(incidents.time, "time", lambda: 1.8e9)
    paths = [write(tmp_path) for _ in range(15)]
    kept = {path.name for path in paths[3:] if path}
    assert set(names(tmp_path)) == kept | {"notes"} and len(kept) == 12


def test_texts_that_are_too_long_or_broken_are_kept_as_far_as_can_be(tmp_path: Path) -> None:
    path = write(tmp_path, log_tail="begin" + "x" * (1 << 20) + "end", stack="half a letter \udc80")
    assert path is not None
    log = (path / "log.txt").read_text()
    assert len(log) == 256 << 10 and log.endswith("end")
    assert (path / "stack.txt").read_text() == "half a letter \\udc80"


def test_a_full_disk_takes_no_incident_and_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with small_disk(tmp_path, "256k"):
        assert write(tmp_path)
        with caplog.at_level(logging.WARNING):
            assert write(tmp_path, log_tail="x" * (255 << 10)) is None
        assert "cannot write an incident (hang of worker 3): " in caplog.text and "No space left" in caplog.text
        assert len(names(tmp_path)) == 1, "nothing half-written stays"
        assert write(tmp_path)


def test_a_folder_that_went_away_is_no_fault_of_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert write(tmp_path / "gone") is None
    assert "cannot write an incident" in caplog.text


def test_incidents_hold_no_path_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset is passed on with its incidents, and paths contain names of users."""
    home, data = tmp_path / "home", tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("HOME", str(home))
    lines = [f'File "{incidents.PACKAGE_FOLDER}/nimbus/a.py"', f"{data}/stage/1.tmp", f"{home}/my/skill.py: no"]
    path = write(data, stack="\n".join(lines), detail=lines[1], log_tail=f"{sys.prefix}/lib", task_text=lines[2])
    assert path is not None
    texts = "\n".join(file.read_text() for file in path.iterdir())
    for place in (str(incidents.PACKAGE_FOLDER), str(tmp_path), sys.prefix):
        assert place not in texts
    assert "./stage/1.tmp" in texts and "<nimbus>/nimbus/a.py" in texts and "~/my/skill.py: no" in texts


def test_folder_that_is_a_link_gets_no_incident(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "incidents").symlink_to(tmp_path / "home")
    assert write(tmp_path / "data") is None and "this is a link" in caplog.text
    assert not list((tmp_path / "home").iterdir())
