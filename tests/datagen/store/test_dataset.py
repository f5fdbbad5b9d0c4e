from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.errors import InputError, StoreAwayError
from nimbus.datagen.store.dataset import Dataset, read_info
from nimbus.datagen.store.verify import dataset_hashes, verify
from tests.support.described import describe
from tests.support.refusals import refusal
from tests.support.synthetic import TASK, TASK_HASH, make_rendered, open_dataset, write_dataset


def make(folder: Path, *, task: str = TASK, task_hash: str = TASK_HASH, seed: int = 0) -> Dataset:
    return Dataset.create_or_open(folder, task=task, task_hash=task_hash, seed=seed)


def test_dataset_json_tells_what_the_dataset_holds(tmp_path: Path) -> None:
    stored = write_dataset(tmp_path / "data")
    info = read_info(tmp_path / "data")
    assert (info.task, info.task_hash, info.seed, info.robot, info.rate) == (TASK, TASK_HASH, 0, "panda", 15.0)
    assert info.cameras == {"front": (64, 48), "wrist": (64, 48)}
    assert (info.episode_count, info.step_count) == (2, 40)
    assert info.byte_count == sum(item.byte_count for item in stored)
    assert info.instance_names == ("background", "items_0", "items_1")
    assert info.features["action"]["shape"] == ["T", 8]
    assert info.features["observations/images/front"]["shape"] == ["T", 48, 64, 3]
    assert info.features["observations/depth/wrist"]["dtype"] == "uint16"


def _write_file(folder: Path) -> None:
    folder.write_text("hello")


def _write_stranger(folder: Path) -> None:
    folder.mkdir()
    (folder / "holiday.jpg").write_text("")


def _write_broken(folder: Path) -> None:
    folder.mkdir()
    (folder / "dataset.json").write_text("{]")


def _write_other_format(folder: Path) -> None:
    write_dataset(folder)
    describe(folder, format_version=1)


def _drop_ledger(folder: Path) -> None:
    write_dataset(folder)
    (folder / "ledger.sqlite").unlink()


def _empty_ledger(folder: Path) -> None:
    write_dataset(folder)
    (folder / "ledger.sqlite").write_bytes(b"")


def _foreign_ledger(folder: Path) -> None:
    _drop_ledger(folder)
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")


def _older_ledger(folder: Path) -> None:
    write_dataset(folder, [make_rendered(0)])
    old = (folder / "ledger.sqlite").read_bytes()
    write_dataset(folder, [make_rendered(1)])
    (folder / "ledger.sqlite").write_bytes(old)


def _scribble_into_ledger(folder: Path) -> None:
    write_dataset(folder)
    content = (folder / "ledger.sqlite").read_bytes()
    (folder / "ledger.sqlite").write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


def _nest_description(folder: Path) -> None:
    write_dataset(folder)
    (folder / "dataset.json").write_text("[" * 100_000)


def _break_ledger(folder: Path) -> None:
    write_dataset(folder)
    (folder / "ledger.sqlite").write_bytes(b"nothing like a database" * 100)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (_write_file, "this is a file"),
        (_write_stranger, "holds 'holiday.jpg' and no dataset.json: not a dataset"),
        (_write_broken, "not a Nimbus dataset description"),
        (_write_other_format, "format version 1, this Nimbus reads 2; use the Nimbus that wrote it"),
        (_drop_ledger, "holds 2 episodes but its ledger.sqlite is missing"),
        (_break_ledger, "not a ledger"),
        (_empty_ledger, "holds 2 episodes but its ledger.sqlite is empty"),
        (_foreign_ledger, "ledger.sqlite: lists 0 episodes, but dataset.json counts 2; restore this file from a copy"),
        (_older_ledger, "ledger.sqlite: lists 1 episodes, but dataset.json counts 2; restore this file from a copy"),
        (_scribble_into_ledger, "ledger.sqlite: not a ledger"),
        (_nest_description, "not a Nimbus dataset description: .*nested too deeply"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, prepare: Callable[[Path], None], message: str
) -> None:
    folder = tmp_path / "data"
    prepare(folder)
    before = sorted(path for path in folder.rglob("*")) if folder.is_dir() else folder.read_text()
    with pytest.raises(InputError, match=message) as caught:
        make(folder)
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
    assert before == (sorted(path for path in folder.rglob("*")) if folder.is_dir() else folder.read_text())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"task": "stack_cubes"}, "holds a dataset of task 'sort_trash'"),
        ({"task_hash": "ffff"}, "another version of task 'sort_trash'"),
        ({"seed": 7}, "holds a dataset of seed 0, not 7"),
    ],
)
def test_a_dataset_of_another_task_or_seed_is_refused(tmp_path: Path, other: dict, message: str) -> None:
    make(tmp_path / "data").close()
    with pytest.raises(InputError, match=message):
        make(tmp_path / "data", **other)


def test_a_folder_where_nothing_can_be_made_is_refused() -> None:
    with pytest.raises(InputError, match="cannot write here"):
        make(Path("/proc/nimbus_data"))


def test_a_folder_without_the_right_to_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o555)
    script = (
        "import os, sys\n"
        "from pathlib import Path; from nimbus.datagen.errors import InputError\n"
        "from nimbus.datagen.store.dataset import Dataset\n"
        "os.getuid() or os.setuid(65534)\n"
        "try: Dataset.create_or_open(Path(sys.argv[1]), task='t', task_hash='h', seed=0)\n"
        "except InputError as error: print(error)\n"
    )
    for parent in folder.parents:
        if parent.stat().st_uid == os.getuid() and not parent.stat().st_mode & 0o001:
            parent.chmod(0o755)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], env=env, capture_output=True, text=True, check=False
    )
    assert "cannot write here: Permission denied" in done.stdout, done.stderr
    folder.chmod(0o755)


def test_two_writers_never_share_a_folder(tmp_path: Path) -> None:
    with open_dataset(tmp_path / "data"), pytest.raises(InputError, match="another run writes into this folder"):
        make(tmp_path / "data")
    make(tmp_path / "data").close()


def test_a_second_run_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", [make_rendered(0)])
    write_dataset(tmp_path / "data", [make_rendered(1)])
    assert read_info(tmp_path / "data").episode_count == 2
    assert not verify(tmp_path / "data").problems


def test_a_second_run_that_is_refused_leaves_the_first_in_peace(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with open_dataset(folder):
        staged = folder / "dataset.json.tmp"  # the file that the first run is about to rename to dataset.json
        staged.write_text("{}")
        with pytest.raises(InputError, match="another run writes into this folder"):
            make(folder)
        assert staged.read_text() == "{}"


def test_a_dataset_made_with_something_else_is_refused_and_named(tmp_path: Path) -> None:
    def made_with(**inputs: str) -> Dataset:
        return Dataset.create_or_open(tmp_path / "data", task=TASK, task_hash=TASK_HASH, seed=0, inputs=inputs)

    made_with(robot="0123", mujoco="3.1").close()
    made_with(robot="0123", mujoco="3.1").close()
    for other, said in (
        ({"robot": "4567", "mujoco": "3.1"}, r"made with another robot \(0123, now 4567\); choose another --out"),
        ({"robot": "0123", "mujoco": "3.2"}, r"made with another mujoco \(3.1, now 3.2\)"),
        ({"robot": "0123"}, r"made with another mujoco \(3.1, now none\)"),
    ):
        with pytest.raises(InputError, match=said):
            made_with(**other)


def test_flags_that_made_a_dataset_are_named(tmp_path: Path) -> None:
    """PhysX is the default if the checks of Isaac Sim have passed, but the folder was made with another engine."""
    made = {"physics": "newton", "images": "video", "sim": "isaacsim"}
    for other, said in (
        ({"physics": "isaacsim"}, "physics (newton, now isaacsim); choose another --out, or give --physics mujoco"),
        ({"images": ""}, "images (video, now lossless); choose another --out, or give --images video"),
    ):
        folder = tmp_path / next(iter(other))
        Dataset.create_or_open(folder, task=TASK, task_hash=TASK_HASH, seed=0, inputs=made).close()
        line = refusal(Dataset.create_or_open, folder, task=TASK, task_hash=TASK_HASH, seed=0, inputs=made | other)
        assert line == f"{folder}: holds a dataset made with another {said}"


def test_source_hashed_dataset_is_refused_in_one_line(tmp_path: Path) -> None:
    def made_with(**inputs: str) -> Dataset:
        inputs = {name.replace("_", " "): value for name, value in inputs.items()} | {"nimbus-datagen": "0.1.0"}
        return Dataset.create_or_open(tmp_path / "data", task=TASK, task_hash=TASK_HASH, seed=0, inputs=inputs)

    made_with(mujoco="3.1", skill_pick="83dfdf2ca0d8c064").close()
    assert refusal(made_with, mujoco="3.2", skill_pick="1") == (
        f"{tmp_path / 'data'}: made by Nimbus 0.1.0, which identified components by a hash of their source; "
        "continue it with that version, or choose another --out"
    )


def test_dataset_json_is_learned_again_from_the_episodes_when_a_killed_run_left_it_behind(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_dataset(folder)
    before = read_info(folder)
    empty = json.loads((folder / "dataset.json").read_text())
    empty |= {"rate": 0, "features": {}, "cameras": {}, "episode_count": 0, "step_count": 0, "byte_count": 0}
    empty |= {"joint_names": [], "action_names": [], "instance_names": [], "semantic_names": []}
    (folder / "dataset.json").write_text(json.dumps(empty))
    problems = verify(folder).problems
    assert {problem.split(";")[0] for problem in problems} >= {"dataset.json: no rate", "dataset.json: no features"}
    open_dataset(folder).close()
    assert read_info(folder) == before
    assert not verify(folder).problems


def test_a_store_that_is_away_leaves_dataset_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable store does not count as missing fields, unlike a damaged file."""
    folder = tmp_path / "data"
    write_dataset(folder)
    describe(folder, episode_count=0)

    def away(*_: object) -> None:
        raise StoreAwayError("no answer", where="s3://bucket")

    monkeypatch.setattr("nimbus.datagen.store.dataset.infer_dataset_info_from_file", away)
    with pytest.raises(StoreAwayError):
        open_dataset(folder)
    assert read_info(folder).episode_count == 0


def test_episodes_that_an_older_ledger_does_not_know_are_put_aside_and_never_lost(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_dataset(folder, [make_rendered(0)])
    old = {name: (folder / name).read_bytes() for name in ("ledger.sqlite", "dataset.json")}
    (stored,) = write_dataset(folder, [make_rendered(1)])
    content = (folder / stored.path).read_bytes()
    for name in (f"{stored.episode_id}.hdf5", f"{stored.episode_id}-1.hdf5"):
        for path, text in old.items():
            (folder / path).write_bytes(text)
        with open_dataset(folder) as dataset:
            assert dataset.orphans == (folder / "orphans" / name,)
        assert (folder / "orphans" / name).read_bytes() == content
        assert not verify(folder).problems
        write_dataset(folder, [make_rendered(1)])
        content = (folder / stored.path).read_bytes()
    open_dataset(folder).close()
    assert len(list((folder / "episodes").iterdir())) == 2


def test_what_a_killed_run_left_is_cleared_when_the_folder_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_dataset(folder)
    (folder / "stage" / "half.hdf5.tmp").write_bytes(b"half")
    (folder / "episodes" / "without-a-row.hdf5").write_bytes(b"published, never recorded")
    describe(folder, episode_count=1)
    assert len(verify(folder).problems) == 2
    open_dataset(folder).close()
    assert not list((folder / "stage").iterdir())
    assert len(list((folder / "episodes").iterdir())) == 2
    assert not verify(folder).problems


def test_episodes_whose_files_are_gone_or_cut_are_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    gone, cut, kept = write_dataset(folder, [make_rendered(index) for index in range(3)])
    before = dataset_hashes(folder)
    (folder / gone.path).unlink()
    os.truncate(folder / cut.path, 5000)
    with open_dataset(folder) as dataset:
        assert dataset.outdated == (folder / gone.path, folder / cut.path)
        assert [path.name for path in dataset.orphans] == [Path(cut.path).name]
        assert [attempt.path for attempt in dataset.ledger.stored()] == [kept.path]
        assert dataset.info.episode_count == 1
    write_dataset(folder, [make_rendered(index) for index in range(2)])
    assert not verify(folder).problems
    assert dataset_hashes(folder) == before


def test_a_name_too_long_for_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write here: File name too long"):
        make(tmp_path / ("x" * 300))


def test_reading_a_folder_without_a_dataset_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no dataset here"):
        read_info(tmp_path)


def test_tasks_of_a_folder_share_a_dataset(tmp_path: Path) -> None:
    def open_task(task: str, **values: Any) -> Dataset:
        given: dict[str, Any] = {
            "collection": "kitchen",
            "task_hash": task * 2,
            "seed": 0,
            "inputs": {"mujoco": "3", f"component {task}": "1"},
        }
        return Dataset.create_or_open(tmp_path / "data", task=task, **given | values)

    leases = []
    for task in ("pour", "stack", "pour"):
        with open_task(task) as dataset:
            leases.append(dataset.lease(0))
    assert leases == [1, 1, 2]
    info = read_info(tmp_path / "data")
    assert (info.task, list(info.tasks)) == ("kitchen", ["pour", "stack"])
    assert info.inputs_of("stack") == {"mujoco": "3", "component stack": "1"}
    for values, message in (
        ({"task_hash": "ffff"}, "another version of task 'pour'"),
        ({"inputs": {"mujoco": "4", "component pour": "1"}}, "made with another mujoco"),
        ({"collection": ""}, "holds a dataset of the tasks of 'kitchen'"),
        ({"collection": "garage"}, "holds a dataset of the tasks of 'kitchen'"),
        ({"seed": 1}, "holds a dataset of seed 0, not 1"),
    ):
        with pytest.raises(InputError, match=message):
            open_task("pour", **values)
