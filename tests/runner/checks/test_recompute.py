"""Limits of a recomputation: the text of the task comes from the dataset."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.execute.demonstrations.demonstration_file import DemonstrationFile, Take, Track
from nimbus.datagen.tasks.own_tasks import record_own
from nimbus.datagen.tasks.task import parse_task
from nimbus.datagen.teleoperate.recording import SPLIT
from nimbus.runner.checks.recompute import _Maker, check_length, count_steps
from nimbus.runner.checks.replay import stored_task
from nimbus.runner.system import threads

_TASK = """instructions: [Tidy up.]
robot: panda
scene: tabletop
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.4, 0.5]}
objects:
  items: {library: trash, kinds: all, count: [2, 4], region: start, yaw: any}
steps:
  - for item in items:
      - try: [pick: item]
        recover: [retry]
        at_most: 3
  - repeat:
      - {repeat: [home, home], times: 10}
    times: 20
success:
  - nothing_on_floor
"""


def test_steps_of_loops_in_loops_multiply() -> None:
    steps = parse_task(_TASK).steps
    assert [count_steps((step,), members=4) for step in steps] == [4 * (1 + 3), 20 * 10 * 2]


def test_a_foreign_task_of_endless_loops_is_one_line() -> None:
    steps = parse_task(_TASK.replace("times: 10", "times: 100").replace("times: 20", "times: 100")).steps
    with pytest.raises(
        InputError, match="its loops may execute 20,016 steps; a comparison executes at most 500"
    ) as error:
        check_length(steps, members=4, where="a.hdf5")
    assert error.value.where == "a.hdf5"


def test_pipeline_file_of_others_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline file can name a policy, which is a Python file beside it."""
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    pipeline = {"load": "usd", "randomize": "tabletop", "plan": {"policy": {"policy": "evil.py:make"}}}
    (tmp_path / "evil.yaml").write_text(json.dumps(pipeline | {"render": "newton", "store": "hdf5"}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(threads, "prepare_libraries", lambda **_: None)  # takes seconds; the task is refused before
    for name in ("evil.yaml", "./evil.yaml", str(tmp_path / "evil.yaml")):
        provenance = SimpleNamespace(task_text=f"pipeline: {name}\n{_TASK}", settings={}, assets={})
        layout = SimpleNamespace(
            key=SimpleNamespace(task="tidy", seed=0, split="main"), physical=SimpleNamespace(objects=())
        )
        episode: Any = SimpleNamespace(provenance=provenance, path="a.hdf5", layout=lambda made=layout: made)
        maker = _Maker(tmp_path, SimpleNamespace(inputs_of=lambda _: {}), (), None)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="is a file, and such a file can start foreign programs"):
            maker._load(episode)


def test_takes_are_found_beside_the_own_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a stored task name takes that ``nimbus multiply`` wrote beside its task; a copy of them is not read."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    row = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    take = Take(source="x", base_T_frame=row, rate=15.0, tracks={"arm": Track(poses=(row, row))})
    demonstration = DemonstrationFile(robot="panda", task="tidy", subtask="move", takes=(take,))
    for folder in (tmp_path / "cube.demonstrations", tmp_path / "foreign"):
        folder.mkdir()
        demonstration.write(folder / "1_take_items.demo.json")
    monkeypatch.chdir(tmp_path / "foreign")
    text = _TASK[: _TASK.index("steps:")] + "steps:\n  - do: {demo: 1_take_items}\nsuccess:\n  - nothing_on_floor\n"
    layout = SimpleNamespace(key=SimpleNamespace(task="tidy"))
    provenance = SimpleNamespace(task_text=text, assets={})
    episode = SimpleNamespace(provenance=provenance, path="a.hdf5", layout=lambda: layout)
    with pytest.raises(InputError, match="files of foreign tasks are not opened"):
        stored_task(episode, runs=True)
    record_own(text, {}, folder=tmp_path / "cube.demonstrations")
    found = stored_task(episode, runs=True)
    assert found.steps[0].statement.demo == str(tmp_path / "cube.demonstrations/1_take_items.demo.json")


def test_demonstrations_are_not_made_from_seeds(tmp_path: Path) -> None:
    key = SimpleNamespace(task="tidy", seed=0, split=SPLIT)
    provenance = SimpleNamespace(task_text=_TASK, settings={})
    episode: Any = SimpleNamespace(provenance=provenance, path="a.hdf5", layout=lambda: SimpleNamespace(key=key))
    maker = _Maker(tmp_path, SimpleNamespace(inputs_of=lambda _: {}), (), None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="come from recordings, not from seeds; nimbus certify"):
        maker._load(episode)
