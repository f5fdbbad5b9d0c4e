from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import h5py
import pytest

from nimbus.datagen.episode import layout as layout_module
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.tasks import own_tasks
from nimbus.datagen.tasks.own_tasks import record_own
from nimbus.datagen.tasks.stored_files import hash_assets
from nimbus.datagen.tasks.task import load_any_task
from nimbus.runner.checks import replay
from nimbus.runner.checks.replay import episode_paths
from nimbus.runner.cli import main
from tests.support.agreement import agree
from tests.support.runs import start


@pytest.mark.long
@pytest.mark.slow
def test_stored_actions_end_the_same_way_in_a_fresh_process(tiny: Path, tmp_path: Path):
    first, _, second, _ = sorted(path.stem for path in tiny.glob("episodes/*"))  # two variants of each have one motion
    out, error = start("replay", str(tiny), first, second, "--json", cwd=tmp_path).communicate(timeout=300)
    assert error == ""
    results = json.loads(out)
    assert [result["episode_id"] for result in results] == [first, second]
    for result in results:
        assert result["same_outcome"] and result["stored"] == "success"
        assert result["joint_error"] == result["body_error"] == 0.0


def test_actions_that_were_changed_end_differently(copy: Path, capsys):
    path = min((copy / "episodes").iterdir())
    with h5py.File(path, "r+") as file:
        for name in ("action", "executed_action"):
            action: Any = file[name]
            action[:, -1] = action[0, -1]  # the hand never closes
    assert main(["replay", str(copy), path.stem]) == 1
    line, total = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{path.stem}: stored success, replayed not_in_bin; ")
    assert total == "0 of 1 with the same outcome"


def test_recorded_actions_end_the_same_way_elsewhere(copy: Path, capsys):
    path = min((copy / "episodes").iterdir())
    assert main(["replay", str(copy), path.stem, "--actions=recorded", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["same_outcome"] and 0.005 < result["joint_error"] < 0.1


def test_unknown_actions_are_answered_with_the_known_ones(copy: Path, capsys):
    assert main(["replay", str(copy), "--actions=record"]) == 2
    assert "unknown 'record'; did you mean 'recorded'?" in capsys.readouterr().err


def test_work_of_a_replay_is_limited(copy: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    """A layout of hundreds of objects in one place would take hours."""
    path = min((copy / "episodes").iterdir())
    texts = {"_MOST_CONTACTS": "contacts in a step; the limit is 9", "_MOST_WORK": "more than 9 units of work"}
    for name, text in texts.items():
        with monkeypatch.context() as patch:
            patch.setattr(replay, name, 9)
            assert main(["replay", str(copy), path.stem]) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"{path}: physics cannot compute its layout: ") and text in line
    monkeypatch.setattr(layout_module, "MOST_OBJECTS", 0)
    assert main(["replay", str(copy), path.stem]) == 2
    assert re.search(r"its layout has \d+ objects; the limit is 0", capsys.readouterr().err)


def change_provenance(path: Path, group: str, key: str, value: str) -> None:
    """Change an entry of an episode's provenance."""
    with h5py.File(path, "r+") as file:
        text: Any = file["provenance"]
        stored = json.loads(text[()].decode())
        stored[group][key] = value
        del file["provenance"]
        file["provenance"] = json.dumps(stored)


def test_an_episode_of_physx_is_not_repeated_in_mujoco(copy: Path, capsys):
    path = min((copy / "episodes").iterdir())
    change_provenance(path, "settings", "physics", "isaacsim")
    assert main(["replay", str(copy), path.stem]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: was executed by PhysX in Isaac Sim (physics: isaacsim), but is repeated in MuJoCo")


def test_an_episode_made_with_another_robot_is_not_replayed(copy: Path, capsys):
    path = min((copy / "episodes").iterdir())
    change_provenance(path, "assets", "robot panda", "1-0123456789abcdef")
    assert main(["replay", str(copy), path.stem]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: the robot panda changed since this episode was made (hash 1-0123456789abcdef)")
    assert line.count("\n") == 1 and "restore the " in line


def test_a_missing_file_of_a_stored_task_is_named_without_its_folder(copy: Path, tmp_path: Path, capsys):
    """Certificates, which are shared, contain such errors."""
    path = min((copy / "episodes").iterdir())
    with h5py.File(path, "r+") as file:
        text: Any = file["provenance"]
        stored = json.loads(text[()].decode())
        stored["task_text"] = stored["task_text"].replace("robot: panda", "robot: own/calm.yaml")
        del file["provenance"]
        file["provenance"] = json.dumps(stored)
    record_own(stored["task_text"], stored["assets"], folder=tmp_path / "moved")
    assert main(["replay", str(copy), path.stem]) == 2
    line = capsys.readouterr().err
    assert "is missing or cannot be used: calm.yaml; " in line and "if it moved: --task FILE" in line
    assert "moved/" not in line and line.count("\n") == 1


@pytest.fixture
def foreign(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an episode that another user made with an own robot, which lies beside the user's task, not here."""
    path, mine = min((copy / "episodes").iterdir()), tmp_path / "mine"
    mine.mkdir()
    shutil.copy(scene_folder("robots") / "panda.yaml", mine / "own.yaml")
    with h5py.File(path, "r+") as file:
        text: Any = file["provenance"]
        stored = json.loads(text[()].decode())
        stored["task_text"] = stored["task_text"].replace("robot: panda", "robot: own.yaml")
        (mine / "tiny.yaml").write_text(stored["task_text"])
        stored["assets"] = hash_assets(load_any_task(mine / "tiny.yaml"))
        del file["provenance"]
        file["provenance"] = json.dumps(stored)
    agree(copy, path)
    monkeypatch.setattr(own_tasks, "_named", {})
    monkeypatch.chdir(copy)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["replay", ".", "ID"],
        ["rerender", ".", "ID", "--out", "../new"],
        ["export-usd", "--episode", ".", "ID"],
        ["export", ".", "--actions", "tool_pose", "--out", "../new"],
    ],
    ids=lambda words: words[0],
)
def test_files_that_a_foreign_dataset_names_are_not_opened(foreign: Path, words: list[str], capsys):
    os.mkfifo("own.yaml")  # a reader would wait for a writer
    assert main([word.replace("ID", foreign.stem) for word in words]) == 2
    error = capsys.readouterr().err
    assert "its task names the file 'own.yaml'" in error and "--task FILE" in error and error.count("\n") == 1


def test_checks_of_a_foreign_dataset_tell_what_they_leave_out(foreign: Path, capsys):
    os.mkfifo("own.yaml")
    main(["verify", ".", "--recompute", "1"])
    assert "names the file 'own.yaml'" in capsys.readouterr().out
    main(["certify", ".", "--sample", "1"])
    assert "its task names the file 'own.yaml'" in " ".join(capsys.readouterr().out.split())


def test_the_users_task_names_the_files(foreign: Path, capsys):
    assert main(["replay", ".", foreign.stem, "--task", "../mine/tiny.yaml"]) == 0
    assert "1 of 1 with the same outcome" in capsys.readouterr().out


def test_source_hashed_episode_is_not_replayed(copy: Path, capsys):
    path = min((copy / "episodes").iterdir())
    change_provenance(path, "assets", "robot panda", "b52b7606f340")
    assert main(["replay", str(copy), path.stem]) == 2
    what = "made by Nimbus 0.1.0, which identified components by a hash of their source; replay it with that version"
    assert capsys.readouterr().err == f"{path}: {what}\n"


def test_an_unknown_episode_is_answered_with_the_known_ones(tiny: Path):
    known = min(tiny.glob("episodes/*")).stem
    with pytest.raises(InputError, match=f"no episode '{known}x'; did you mean '{known}'"):
        episode_paths(tiny, [f"{known}x"])


def test_an_episode_named_twice_is_taken_once(tiny: Path):
    known = min(tiny.glob("episodes/*"))
    assert episode_paths(tiny, [known.stem, known.stem]) == [known]


def test_replay_asks_for_the_folder_of_skills(copy: Path, capsys):
    """The episode's task has a user's skill, which this process has not loaded."""
    path = min((copy / "episodes").iterdir())
    with h5py.File(path, "r+") as file:
        text: Any = file["provenance"]
        stored = json.loads(text[()].decode())
        stored["task_text"] = stored["task_text"].replace("\nsuccess:", "\n  - pause_before_replay\nsuccess:")
        del file["provenance"]
        file["provenance"] = json.dumps(stored)
    assert main(["replay", str(copy), path.stem]) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1
    assert "unknown skill 'pause_before_replay'" in error and "--skills DIR" in error
