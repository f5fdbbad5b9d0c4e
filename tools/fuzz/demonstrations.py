"""Damaged foreign demonstrations, jobs, store names, asset archives and Gymnasium options."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np

from tools.fuzz.datasets import spoil_hdf5
from tools.fuzz.mutations import NUMBERS, PLAIN, TEXTS, files_of, pick, replace_file, spoil_file, spoil_json, spoil_text
from tools.fuzz.sort import Sort

_STEPS = 12
_TASK, _ROBOT = "pick_and_place", "panda"


@cache
def _task_and_robot() -> tuple[Any, Any]:
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.tasks.task import load_task

    return load_task(_TASK), load_robot(_ROBOT)


def make_demonstrations(folder: Path) -> None:
    """Write a robomimic file with its mapping, and an operator's recording."""
    from nimbus.datagen.objects.libraries import open_library

    task, robot = _task_and_robot()
    folder.mkdir()
    poses = np.zeros((_STEPS, 7))
    poses[:, 3] = 1.0
    with h5py.File(folder / "demos.hdf5", "w") as file:
        demo = file.create_group("data/demo_0")
        demo["actions"] = np.zeros((_STEPS, 8))
        demo["obs/joints"] = np.tile([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.7], (_STEPS, 1))
        demo["obs/pose"], demo["obs/view"] = poses, np.zeros((_STEPS, 4, 4, 3), np.uint8)
    joints = {joint: place for place, joint in enumerate(robot.arms[0].arm.joints)}
    pose = {"source": "obs/pose", "position": [0, 1, 2], "wxyz": [3, 4, 5, 6]}
    kinds = {name: open_library(group.library).kinds for name, group in task.objects.items()}
    mapping = {
        "joints": {"source": "obs/joints", "entries": joints},
        "grippers": {"arm": {"source": "actions", "entry": 7, "open": 1, "closed": -1}},
        "objects": {name: pose | {"kind": min(found)} for name, found in kinds.items()},
    }
    (folder / "map.yaml").write_text(json.dumps(mapping, indent=1))
    recording = {"task": task.name, "task_hash": task.content_hash, "robot": robot.name, "rate": task.rate, "index": 0}
    recording |= {"action_names": robot.action_names, "actions": np.zeros((_STEPS, len(robot.action_names))).tolist()}
    (folder / "recording_000000.json").write_text(json.dumps(recording))


def spoil_demonstrations(folder: Path, random: np.random.Generator) -> str:
    """Damage one of the files."""
    path = pick([*files_of(folder), folder / "demos.hdf5"], random)
    if random.random() < 0.08:
        return f"{path.name} is a {replace_file(path, random)}"
    if path.suffix == ".hdf5":
        if random.random() < 0.8:
            return spoil_hdf5(path, random)
        spoil_file(path, random)
        return f"bytes of {path.name}"
    if path.suffix == ".json" and random.random() < 0.1:
        path = path.rename(path.with_name(f"recording_{pick(('-1', '²', '9' * 200, '1'), random)}.json"))
    spoil_json(path, random)
    return path.name


def read_demonstrations(folder: Path, random: np.random.Generator) -> None:
    """Read the recordings, then the robomimic file with its mapping."""
    from nimbus.datagen.datasets.multiply.foreign_sets import read_foreign_set
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.teleoperate.recording import RecordingFolder

    task, robot = _task_and_robot()
    try:
        for recording in RecordingFolder(folder):
            recording.check(task, robot, where=folder.name)
    except InputError as error:
        str(error)
    read_foreign_set(folder / "demos.hdf5", folder / "map.yaml", task=task, robot=robot)


def make_jobs(folder: Path) -> None:
    """Write a job of two tasks, and a file of store names."""
    folder.mkdir()
    entries: list[dict[str, Any]] = [
        {"task": "sort_trash", "episodes": 5, "priority": 2, "needs": {"gpu": "cuda", "memory": "8 GB"}},
        {"task": "pick_and_place", "episodes": 3, "name": "other", "seed": 4},
    ]
    (folder / "jobs.yaml").write_text(json.dumps({"tasks": entries}, indent=1))
    (folder / "stores.yaml").write_text(json.dumps({"stores": {"demos": "s3://bucket/path"}}, indent=1))


def spoil_jobs(folder: Path, random: np.random.Generator) -> str:
    """Damage one of the files; both are YAML files with JSON content."""
    path = pick(files_of(folder), random)
    if random.random() < 0.08:
        return f"{path.name} is a {replace_file(path, random)}"
    if random.random() < 0.3:
        path.write_text(spoil_text(path.read_text(), random), errors="replace")
    else:
        spoil_json(path, random)
    return path.name


def read_jobs(folder: Path, random: np.random.Generator) -> None:
    """Resolve a store name, then read the job."""
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.store.remote.site import SITE_FILE, resolve_address
    from nimbus.runner.cluster.job_file import is_job, load_job
    from tests.support.cells import make_spec

    os.environ[SITE_FILE] = str(folder / "stores.yaml")
    try:
        str(resolve_address("nimbus://demos/part"))
    except InputError as error:
        str(error)
    finally:
        del os.environ[SITE_FILE]
    if is_job(str(folder / "jobs.yaml")):
        load_job(folder / "jobs.yaml", make_spec(folder / "data"))


def make_archives(folder: Path) -> None:
    """Write archives of each format that contain a mesh."""
    folder.mkdir()
    content = "".join(f"v {number % 7} {number % 11} {number % 13}\n" for number in range(900)).encode()
    for name, method in (("stored", 0), ("deflated", 8), ("bzip2", 12), ("lzma", 14)):
        with zipfile.ZipFile(folder / f"{name}.zip", "w", method) as archive:
            archive.writestr("deep/mug.obj", content)
            archive.writestr("license.txt", b"free")
    modes: dict[str, Literal["w:", "w:gz", "w:bz2", "w:xz"]]
    modes = {"tar": "w:", "tar.gz": "w:gz", "tar.bz2": "w:bz2", "tar.xz": "w:xz"}
    for ending, mode in modes.items():
        with tarfile.open(folder / f"a.{ending}", mode) as archive:
            entry = tarfile.TarInfo("deep/mug.obj")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def spoil_archives(folder: Path, random: np.random.Generator) -> str:
    """Keep one archive, and damage its bytes or the name of a member."""
    path = pick(files_of(folder), random)
    for other in files_of(folder):
        if other != path:
            other.unlink()
    if random.random() < 0.05:
        return f"{path.name} is a {replace_file(path, random)}"
    if random.random() < 0.2:
        names = (b"../../mug.obj", b"/tmp//mug.obj", b"deep/mug\x00obj", b"deep/\x1b]0;obj", b"C:\\e\\mug.obj")
        path.write_bytes(path.read_bytes().replace(b"deep/mug.obj", pick(names, random)[:12]))
        return f"a name in {path.name}"
    spoil_file(path, random)
    return f"bytes of {path.name}"


def read_archives(folder: Path, random: np.random.Generator) -> None:
    """Unpack the archive."""
    from nimbus.datagen.assets.archives import unpack
    from nimbus.datagen.errors import InputError

    path = next(iter(sorted(folder.iterdir())), folder / "gone.zip")
    if not path.is_file():
        raise InputError("not a file", where=path.name)
    unpack(path, folder / "into")


def make_options(folder: Path) -> None:
    """Write the task of the environment."""
    from tests.support.runs import TINY

    folder.mkdir()
    (folder / "tiny.yaml").write_text(TINY.read_text())
    (folder / "options.json").write_text("{}")


def spoil_options(folder: Path, random: np.random.Generator) -> str:
    """Choose one or two options, with values of any kind."""
    names = ("control_mode", "rotation", "state", "cameras", "environment_state", "max_steps", "seed", "split")
    names += ("device", "skills", "task")
    values = (*PLAIN, [[*TEXTS]], list(NUMBERS), "run", "front", ["front"], ["front"] * 3, "quaternion", 5)
    chosen = {str(pick(names, random)): pick(values, random) for _ in range(int(random.integers(1, 3)))}
    (folder / "options.json").write_text(json.dumps(chosen))
    return repr(chosen)[:200]


def read_options(folder: Path, random: np.random.Generator) -> None:
    """Create the environment and reset it."""
    from nimbus.gym import NimbusEnv

    options: dict[str, Any] = json.loads((folder / "options.json").read_text())
    environment = NimbusEnv(**({"task": folder / "tiny.yaml", "cameras": ()} | options))
    environment.reset(seed=int(random.integers(100)))


SORTS: tuple[Sort, ...] = (
    Sort(name="demonstrations", make=make_demonstrations, spoil=spoil_demonstrations, read=read_demonstrations),
    Sort(name="jobs", make=make_jobs, spoil=spoil_jobs, read=read_jobs),
    Sort(name="archives", make=make_archives, spoil=spoil_archives, read=read_archives),
)
if importlib.util.find_spec("gymnasium") is not None:
    SORTS += (Sort(name="options", make=make_options, spoil=spoil_options, read=read_options),)
