"""Bad input to `nimbus run`, end to end: it causes one line, exit code 2, and no new folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.tasks.task import task_names
from nimbus.runner.cli import main
from nimbus.runner.commands.parser import path
from nimbus.runner.system.threads import prepare_libraries
from tests.support.runs import TINY, run, sound


@pytest.fixture
def refused(tmp_path: Path, capsys):
    """Run a changed task and return its error line."""

    def refuse(old: str, new: str, *words: str) -> str:
        text = TINY.read_text()
        assert text.count(old) == 1
        task = tmp_path / "task.yaml"
        task.write_text(text.replace(old, new))
        return one_line(run(*words, out=tmp_path / "out", task=task), tmp_path, capsys)

    return refuse


def one_line(code: int, tmp_path: Path, capsys) -> str:
    out, error = capsys.readouterr()
    assert (code, out) == (2, "")
    assert error.count("\n") == 1 and error.endswith("\n")
    assert not (tmp_path / "out").exists()
    return error.strip().replace(f"{tmp_path}/", "")


MORE = len(task_names()) - 5


def test_a_path_that_is_not_utf_8(tmp_path: Path, capsys):
    odd = os.fsdecode(b"b\xff.yaml")
    said = one_line(run(out=tmp_path / "out", task=odd), tmp_path, capsys)
    assert said == "--task b\\udcff.yaml: paths of a run must be UTF-8; rename it"
    said = one_line(run(out=tmp_path / odd), tmp_path, capsys)
    assert said.startswith("--out b\\udcff.yaml: paths of a run must be UTF-8") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["sort_trahs", "none.yaml", "."])
def test_a_task_that_does_not_exist(name: str, tmp_path: Path, capsys):
    said = one_line(run(out=tmp_path / "out", task=name), tmp_path, capsys)
    start, end = {
        "sort_trahs": ("unknown task 'sort_trahs'; did you mean 'sort_trash'? known: sort_trash, ", f"and {MORE} more"),
        "none.yaml": ("none.yaml: no such file", "no such file; correct the path"),
        ".": ("--task .: the folder holds no task file; give a folder", "or a task's name"),
    }[name]
    assert said.startswith(start) and said.endswith(end)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "task.yaml:1:1: "),
        (b"robot: [panda\nscene: tabletop\n", "task.yaml:2:6: malformed YAML: "),
        (b"robot: panda\n\tscene: tabletop\n", "task.yaml:2:1: "),
        (b"robot: panda\nrobot: panda\n", "task.yaml:2:1: "),
        (b"robot: \xff\xfe\n", "task.yaml"),
        (b"robot: !!python/object:os.system {}\n", "task.yaml:1:8: "),
    ],
)
def test_a_file_that_is_not_the_yaml_of_a_task(content: bytes, said: str, tmp_path: Path, capsys):
    (tmp_path / "task.yaml").write_bytes(content)
    found = one_line(run(out=tmp_path / "out", task=tmp_path / "task.yaml"), tmp_path, capsys)
    assert found.startswith(said)


WRONG = [
    ("robot: panda", "robot: panda\nrobots: 2", "task.yaml:3:1: robots: unknown key 'robots'; did you mean 'robot'?"),
    ("count: 1", "count: many", "task.yaml:7:"),
    ("count: 1", "count: [3, 2]", "task.yaml:7:"),
    ("count: 1", "count: 0.5", "task.yaml:7:"),
    ("position: 5 cm", "position: 5 apples", "task.yaml:19:22: randomize.camera.position: "),
    ("pick: item", "pik: item", "task.yaml:10:9: steps[0].'for item in items'[0].pik: unknown skill 'pik'"),
    ("pick: item", "pick: thing", "task.yaml:10:"),
    ("bins[item.class]\"}\nsuc", "bns[item.class]\"}\nsuc", "task.yaml:11:"),
    ("region: start", "region: stat", "task.yaml:7:"),
    ("kinds: [can]", "kinds: [cann]", "task.yaml:7:"),
    ("library: trash", "library: trsh", "task.yaml:7:"),
    ("mount: hand", "mount: head", "task.yaml:17:"),
    ("robot: panda", "robot: pnda", "task.yaml:2:"),
    ("scene: tabletop", "scene: tabeltop", "task.yaml:3:"),
    ("scene: tabletop", "scene: tabletop\npipeline: manipulatoin", "task.yaml:4:"),
    ("light:", "lihgt:", "task.yaml:20:3: "),
    ("Sort {items}", "Sort {itms}", "task.yaml:23:"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), WRONG)
def test_a_mistake_in_a_task_file(old: str, new: str, said: str, refused):
    assert refused(old, new).startswith(said)


def test_a_region_out_of_reach(refused):
    said = refused("center: [0.5, 0.0], size: [0.2, 0.3]", "center: [0.86, 0.66], size: [0.05, 0.05]")
    assert said.startswith("task.yaml:5:10: regions.start: robot 'panda' cannot reach the region; move its center")


def test_a_region_off_the_table(refused):
    said = refused("center: [0.5, 0.0]", "center: [2.5, 0.0]")
    assert said.startswith("task.yaml:5:10: regions.start: x from 2.4 to 2.6 m reaches beyond 'table'; keep it within")


def test_a_region_too_small_for_its_objects_even_when_only_some_episodes_have_as_many(refused):
    text = "center: [0.5, 0.0], size: [0.1, 0.1]}\nobjects:\n  items: {library: trash, kinds: [can], count: [1, 5]"
    said = refused(text.replace("0.1, 0.1", "0.2, 0.3").replace("[1, 5]", "1"), text)
    assert said == (
        "task.yaml:5:10: regions.start: 0.1 x 0.1 m has no reachable space for 5 objects of 'items', 3 cm apart; "
        "enlarge it, move it closer to the robot, or lower the count"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("package: example-robot-data", "package: no-such-robots", "the package 'no-such-robots' is not installed; "),
        ("urdf/panda.urdf", "urdf/pnda.urdf", "'robots/panda_description/urdf/pnda.urdf' is not in the package"),
        ("panda_hand", "panda_hnd", "panda_hnd"),
        ("panda_joint7", "panda_joint9", "panda_joint9"),
    ],
)
def test_a_robot_file_that_names_what_is_not_there(old: str, new: str, said: str, tmp_path: Path, refused):
    text = (scene_folder("robots") / "panda.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace(old, new))
    assert said in refused("robot: panda", f"robot: {tmp_path}/mine.yaml")


def test_a_stage_file_with_a_missing_reference(tmp_path: Path, refused):
    stage = (scene_folder("stages") / "tabletop.usda").read_text()
    (tmp_path / "lost.usda").write_text(stage)
    said = refused("scene: tabletop", f"scene: {tmp_path}/lost.usda")
    assert said.startswith("lost.usda: refers to '") and "which does not exist; put the file there" in said


def test_a_stage_file_that_is_not_usd(tmp_path: Path, refused):
    (tmp_path / "text.usda").write_text("tables and chairs")
    assert refused("scene: tabletop", f"scene: {tmp_path}/text.usda").startswith("text.usda: USD cannot open it")


def test_a_pipeline_with_an_unknown_component_or_setting(tmp_path: Path, refused):
    text = (scene_folder("pipelines") / "manipulation.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("store: hdf5", "store: hdf6"))
    said = refused("robot: panda", f"robot: panda\npipeline: {path}")
    assert said.startswith("mine.yaml:6:1: store: unknown component 'hdf6' for store; did you mean 'hdf5'? known: ")
    path.write_text(text.replace("store: hdf5", "store: {hdf5: {compression: a lot}}"))
    assert refused("robot: panda", f"robot: panda\npipeline: {path}").startswith("mine.yaml:6:")


def test_a_gpu_that_is_not_there(refused):
    import warp

    prepare_libraries()  # which silences Warp
    if warp.is_cuda_available():
        pytest.skip("there is a GPU")
    said = refused("robot: panda", "robot: panda", "--device", "cuda")
    assert said == "--device: no device 'cuda' on this machine; write cpu, or run on a host with a GPU"


def answer(capsys) -> str:
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1
    return error.strip()


def test_an_output_folder_that_is_a_file(tmp_path: Path, capsys):
    (tmp_path / "out").write_text("mine")
    assert run(out=tmp_path / "out") == 2
    assert answer(capsys) == f"{tmp_path}/out: this is a file; choose another --out, a folder"
    assert (tmp_path / "out").read_text() == "mine"
    assert run(out=tmp_path / "out" / "below") == 2
    assert answer(capsys) == f"{tmp_path}/out/below: cannot write here: Not a directory; choose another --out"


def test_an_output_folder_that_cannot_be_written(tmp_path: Path, capsys, disk):
    folder = disk("1m")
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    for out in (folder, folder / "below"):
        assert run(out=out) == 2
        assert answer(capsys) == f"{out}: cannot write here: Read-only file system; choose another --out"


@pytest.mark.slow
def test_an_output_folder_with_something_else(tiny: Path, copy: Path, tmp_path: Path, capsys):
    before = sound(copy)
    other = tmp_path / "other.yaml"
    other.write_text(TINY.read_text())
    assert run(out=copy, task=other) == 2
    assert answer(capsys) == f"{copy}: holds a dataset of task 'tiny'; choose another --out"
    changed = tmp_path / "tiny.yaml"
    changed.write_text(TINY.read_text().replace("yaw: any", "yaw: [0 deg, 90 deg]"))
    assert run(out=copy, task=changed) == 2
    assert answer(capsys).startswith(f"{copy}: holds a dataset of another version of task 'tiny'; choose another --out")
    assert run("--seed", "7", out=copy) == 2
    assert answer(capsys) == f"{copy}: holds a dataset of seed 0, not 7; choose another --out, or --seed 0"
    assert sound(copy) == before == sound(tiny)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").touch()
    assert run(out=tmp_path / "home") == 2
    assert "holds 'thesis.tex' and no dataset.json: not a dataset" in answer(capsys)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["thesis.tex"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator:
    """Return a function that mounts small disks."""
    folder = tmp_path / "disk"

    def mount(size: str) -> Path:
        folder.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount a tmpfs here: {done.stderr.strip()}")
        return folder

    yield mount
    subprocess.run(["umount", str(folder)], check=False)


@pytest.mark.slow
@pytest.mark.long  # test_full_disk.py and test_run_ends.py have full disks
def test_a_disk_that_fills_ends_the_run_and_after_making_room_it_goes_on(tiny: Path, disk, capsys):
    folder = disk("4m")
    out = folder / "data"
    assert run("--episodes", "4", out=out) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "cannot write: No space left on device; make room or choose another --out" in error
    stored = sorted((out / "episodes").iterdir())
    assert 1 <= len(stored) < 4 and not list((out / "stage").iterdir())
    sound(out)
    subprocess.run(["mount", "-o", "remount,size=40m", str(folder)], check=True)
    assert run("--episodes", "2", out=out) == 0
    first_variants = sorted(path.name for path in (tiny / "episodes").iterdir())[::2]
    assert {*first_variants} <= {path.name for path in (out / "episodes").iterdir()}
    sound(out)


@pytest.mark.parametrize("command", ["report", "verify", "hash", "replay"])
def test_a_folder_without_a_dataset(command: str, tmp_path: Path, capsys):
    assert main([command, str(tmp_path / "none")]) == 2
    assert answer(capsys) == f"{tmp_path}/none: there is no dataset here; give the folder of a run"


def test_a_folder_that_cannot_be_used_is_refused_before_anything_is_loaded(
    copy: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    def load(**_: object) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr("nimbus.runner.system.threads.prepare_libraries", load)
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "holiday.jpg").touch()
    before = sorted(tmp_path.rglob("*"))
    for out, words, said in (
        (tmp_path / "file", (), "this is a file"),
        (tmp_path / "file" / "inside", (), "cannot write here: "),
        (tmp_path / "full", (), "holds 'holiday.jpg'"),
        (copy, ("--seed", "7"), "holds a dataset of seed 0, not 7"),
        (tmp_path / ("x" * 300), (), "cannot write here: File name too long"),
    ):
        assert run(*words, out=out) == 2
        assert said in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("words", [["run"], ["evaluate", "--policy", "state:x"], ["improve"], ["close-the-loop"]])
def test_an_output_in_a_default_folder_follows_no_link(tmp_path: Path, monkeypatch, capsys, words: list[str]):
    """The current folder may be of others, and lead to files of this user."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/out").symlink_to(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "foreign")
    task = ["--task", str(TINY)] if words[0] == "run" else [str(TINY)]
    assert main([*words, *task]) == 2
    assert capsys.readouterr().err.startswith("out: this is a link, and an output follows links only if")
    assert not list((tmp_path / "mine").iterdir())


def test_a_job_follows_no_link_to_the_dataset_of_a_task(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "foreign/out/batch").mkdir(parents=True)
    (tmp_path / "foreign/out/batch" / TINY.stem).symlink_to(tmp_path / "mine")
    (tmp_path / "batch.yaml").write_text(f"tasks:\n  - {{task: {TINY}, episodes: 1}}\n")
    monkeypatch.chdir(tmp_path / "foreign")
    assert main(["run", "--job", "../batch.yaml", "--images", "none", "--cluster", "local:1"]) == 2
    assert f"{TINY.stem}: this is a link" in capsys.readouterr().err
    assert not list((tmp_path / "mine").iterdir())


@pytest.mark.parametrize("link", ["none", "small"])
def test_an_evaluation_follows_no_link_in_its_folder(tmp_path: Path, monkeypatch, capsys, link: str):
    """The control has its own folder beside that of the level."""
    (tmp_path / "mine").mkdir()
    folder = tmp_path / "foreign/out" / f"eval_{TINY.stem}"
    folder.mkdir(parents=True)
    (folder / link).symlink_to(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "foreign")
    words = ["--policy", "demonstrator", "--randomize", "small", "--layouts", "1", "--serial", "--videos", "0"]
    assert main(["evaluate", str(TINY), *words]) == 2
    assert f"{link}: this is a link" in capsys.readouterr().err
    assert not list((tmp_path / "mine").iterdir())


def test_a_folder_with_the_name_of_a_shipped_task_is_not_used(tmp_path: Path, monkeypatch, capsys):
    """The current folder may be of others; its task files could start programs."""
    (tmp_path / "sort_trash").mkdir()
    (tmp_path / "sort_trash/sort_trash.yaml").write_text("a: [")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--task", "sort_trash", "--robot", "none", "--serial", "--out", "data"]) == 2
    assert "unknown robot 'none'" in capsys.readouterr().err


def test_a_path_of_a_command_begins_with_no_name_of_a_dataset(tmp_path: Path, monkeypatch):
    """Libraries take the path ``file:/videos/a.mp4``, of a file in the current folder, for an address."""
    monkeypatch.chdir(tmp_path)
    for text in (".", "./", "x:/data", "./x:"):
        assert path(text) == tmp_path / text and path(text).is_absolute()
    assert path("data/x:y") == Path("data/x:y") and path("..") == Path("..")
