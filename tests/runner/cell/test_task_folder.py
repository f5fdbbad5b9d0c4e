"""A folder of tasks as one dataset."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import dataset_hashes
from nimbus.runner.cell.task_folder import check_tasks, list_tasks
from nimbus.runner.cli import main
from tests.support import ROOT

CUBE = (ROOT / "docs" / "examples" / "cube_to_goal.yaml").read_text()


def write_tasks(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def run(task: Path, out: Path, *, episodes: int = 1) -> int:
    words = ["run", "--task", str(task), "--out", str(out), "--episodes", str(episodes)]
    return main([*words, "--images", "none", "--serial"])


@pytest.mark.slow
def test_each_task_keeps_its_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tasks = write_tasks(tmp_path / "kitchen", cube=CUBE, brick=CUBE.replace("red_cube", "blue_brick"))
    many, one = tmp_path / "many", tmp_path / "one"
    assert run(tasks, many) == run(tasks / "cube.yaml", one) == 0
    info = read_info(many)
    assert (info.task, sorted(info.tasks), info.episode_count) == ("kitchen", ["brick", "cube"], 2)
    with closing(Ledger(many, read_only=True)) as ledger, closing(Ledger(one, read_only=True)) as alone:
        (same,) = (attempt for attempt in ledger.stored() if attempt.task == "cube")
        assert same.sha256 == alone.stored()[0].sha256
        assert {(state.task, state.idx) for state in ledger.episodes()} == {("brick", 0), ("cube", 0)}
    assert main(["verify", str(many)]) == 0

    assert run(tasks, many, episodes=1) == 0, "nothing is left to do"
    assert run(tasks / "cube.yaml", many) == 2
    assert "holds a dataset of the tasks of 'kitchen'" in capsys.readouterr().err

    part = tmp_path / "part"
    assert main(["filter", str(many), "--where", "task == 'cube'", "--out", str(part)]) == 0
    assert (read_info(part).task, read_info(part).tasks, read_info(part).episode_count) == ("cube", {}, 1)
    assert dataset_hashes(part) == dataset_hashes(one)


def test_folder_without_tasks_is_refused(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("no task")
    with pytest.raises(InputError, match="holds no task file"):
        list_tasks(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("robot: panda", "robot: ur10", "robot: ur10; a.yaml has panda"), ("[96, 96]", "[64, 64]", "cameras")],
)
def test_tasks_of_one_dataset_fit_together(tmp_path: Path, old: str, new: str, message: str):
    tasks = write_tasks(tmp_path / "tasks", a=CUBE, b=CUBE.replace(old, new))
    with pytest.raises(InputError, match=message):
        check_tasks(list_tasks(tasks), skills=())
