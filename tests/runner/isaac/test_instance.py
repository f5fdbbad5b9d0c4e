"""Instances of Isaac Sim as workers of a cell, with a stand-in for Isaac Sim and configured faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import nimbus
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.runner.cell.transport.spec import CellSpec, Instances, Resources
from nimbus.runner.isaac.find import find_instances
from nimbus.runner.isaac.instance import environment, instance_paths, instance_threads, link_package
from nimbus.runner.system.gpus import parse_gpus
from tests.support import ROOT
from tests.support.cells import Run, sound
from tests.support.isaac_installation import RTX, install, rtx_spec


def stored(spec: CellSpec) -> int:
    """Return the episodes in the dataset, which must pass verification."""
    sound(spec)
    return len(list(Path(spec.folder, "episodes").glob("*.hdf5")))


def log(tmp_path: Path) -> list[str]:
    return [line.split(" ", 1)[1] for line in (tmp_path / "isaac/log.txt").read_text().splitlines()]


@pytest.mark.slow
def test_instances_start_one_by_one_each_with_a_gpu_and_a_root_of_its_own_and_nobody_waits_for_their_close(
    tmp_path: Path,
):
    spec = rtx_spec(tmp_path, workers=(1, 2), episodes=4)
    Run(spec).end(0)
    assert stored(spec) == 4
    said = log(tmp_path)
    starts = [line for line in said if line.startswith("start ")]
    roots = [tmp_path / "roots" / f"instance-{number}" for number in range(2)]
    known = [f"start {gpu.number} {gpu.uuid} --portable-root {root}" for gpu, root in zip(RTX, roots, strict=True)]
    assert starts == known[: len(starts)]
    assert [line.split()[0] for line in said] == ["start", "started"] * len(starts), "one start at a time"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "kind", "phase"),
    [
        ("exit at start x1", "exit_code_7", "start"),
        pytest.param("hang at start x1", "hang", "start", marks=pytest.mark.long),  # the two others share it equally
        pytest.param("hang in a frame x1", "hang", "render", marks=pytest.mark.long),  # cells have workers that hang
        pytest.param("spin in a frame x1", "hang", "render", marks=pytest.mark.long),
    ],
)
def test_instance_that_ends_is_replaced(tmp_path: Path, wrong: str, kind: str, phase: str):
    deadlines = {"start": (6.0, 6.0)} if "hang at start" in wrong else {"render": (2.0, 4.0)}
    run = Run(rtx_spec(tmp_path, wrong=wrong, deadlines=deadlines))
    run.end(0)
    assert stored(run.spec) == 3
    (fault,) = run.faults()
    assert (fault.kind, fault.phase) == (kind, phase)
    told = json.loads((run.folder / fault.incident / "incident.json").read_text())
    assert told["kind"] == kind


@pytest.mark.slow
@pytest.mark.long
def test_moving_instances_make_the_same_content(tmp_path: Path):
    """Instances may be added during the run, and one exits; their number depends on timing and is not checked."""
    values = {"workers": (2, 1), "episodes": 6}
    fixed = Run(rtx_spec(tmp_path / "fixed", **values)).finish()
    run = Run(rtx_spec(tmp_path / "moves", **values, moves_instances=True, start=0.5, wrong="die in a frame x1"))
    assert run.finish() == fixed
    assert [(fault.kind, fault.phase) for fault in run.faults()] == [("sigsegv", "render")]
    learned = json.loads((tmp_path / "moves/roots/starts.json").read_text())
    assert all(seconds >= 0.5 for seconds in learned)


def test_instances_are_numbered_by_the_memory_of_gpus():
    """Two instances of 8 GB fit on the first GPU, four on the second; at least one is always tried."""
    spec = Instances(gpus=("a", "b", "c"), gpu_numbers=(0, 1, 2), gpu_free_bytes=(17 << 30, 33 << 30, 1 << 30))
    assert spec.fitting == (0, 1, 2, 3, 4, 7, 10)
    assert Instances().fitting == ()


def test_a_licence_that_is_asked_for_is_one_line(tmp_path: Path):
    done = Run(rtx_spec(tmp_path, wrong="licence prompt", episodes=1)).end()
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "license of Isaac Sim is not accepted" in done.err and "OMNI_KIT_ACCEPT_EULA=YES" in done.err


@pytest.mark.parametrize("version", ["4.5.0", "5.1.0-rc.19", ""])
def test_another_version_is_one_line(tmp_path: Path, version: str):
    said = f"Isaac Sim has version {version}, but 6.0 is required" if version else "Isaac Sim is not in"
    with pytest.raises(InputError, match=said) as error:
        find_instances(environ=install(tmp_path, version=version), gpus=RTX)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("echo no driver >&2; exit 3", "exit code 3: no driver"),
        ("exit 0", "exit code 0"),
    ],
)
def test_an_interpreter_that_does_not_start_is_one_line(tmp_path: Path, lines: str, said: str):
    with pytest.raises(InputError, match=said):
        find_instances(environ=install(tmp_path, python=lines), gpus=RTX)


def test_no_isaac_sim_and_a_wrong_place_are_one_line(tmp_path: Path):
    with pytest.raises(InputError, match="Isaac Sim was not found.*NIMBUS_ISAACSIM"):
        find_instances(environ={}, gpus=RTX)
    with pytest.raises(InputError, match="does not name a Python of Isaac Sim"):
        find_instances(environ={"NIMBUS_ISAACSIM": str(tmp_path / "nothing")}, gpus=RTX)


def test_a_licence_that_nobody_accepted_is_one_line_by_pip_and_in_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    environ = {**install(tmp_path), "OMNI_KIT_ACCEPT_EULA": "NO"}
    assert find_instances(environ=environ, gpus=RTX).executable, "a workstation build does not ask"
    monkeypatch.setattr("nimbus.runner.isaac.find.CONTAINER", tmp_path)
    with pytest.raises(InputError, match="license of Isaac Sim is not accepted"):
        find_instances(environ=environ, gpus=RTX)
    monkeypatch.undo()
    package = tmp_path / "pip/isaacsim-6.0.1.dist-info"
    package.mkdir(parents=True)
    package.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: isaacsim\nVersion: 6.0.1\n")
    script = tmp_path / "python.sh"
    script.write_text(script.read_text().replace("PYTHONPATH=", f"PYTHONPATH={package.parent}:", 1))
    with pytest.raises(InputError, match="license of Isaac Sim is not accepted"):
        find_instances(environ=environ, gpus=RTX)


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        ([], "no NVIDIA GPU was found"),
        (
            ["NVIDIA H200, 9.0", "NVIDIA A100-SXM4-80GB, 8.0"],
            "none of the GPUs has RT cores: NVIDIA H200, NVIDIA A100-SXM4-80GB",
        ),
        (["NVIDIA GeForce GTX 1660, 7.5"], "none of the GPUs has RT cores: NVIDIA GeForce GTX 1660"),
        (["NVIDIA L40S, 8.9", "NVIDIA H200, 9.0"], "GPU 0 has 1.1 GB free, but a worker needs 2.1 GB; stop the"),
        (["NVIDIA L40S, 8.9"], "driver 550.54 is too old for CUDA 13; install .* or use --sim newton"),
    ],
)
def test_a_machine_without_a_usable_gpu_is_one_line(tmp_path: Path, gpus: list[str], said: str):
    driver = "550.54" if "550.54" in said else "580.65.06"
    table = "\n".join(f"{number}, GPU-{number:08x}, {text}, 1024, {driver}" for number, text in enumerate(gpus))
    with pytest.raises(InputError, match=said):
        find_instances(environ=install(tmp_path), gpus=parse_gpus(table))


def test_instances_run_on_gpus_with_room_only(tmp_path: Path):
    full = replace(RTX[0], free_bytes=1 << 30)
    assert find_instances(environ=install(tmp_path), gpus=[full, RTX[1]]).gpus == (RTX[1].uuid,)


def test_an_instance_gets_the_environment_of_its_own_start_script(tmp_path: Path):
    found = find_instances(environ=install(tmp_path), gpus=RTX)
    instances = replace(found, folder=str(tmp_path / "roots"))
    places = [instance_paths(instances, number) for number in range(4)]
    assert [place.gpu for place in places] == ["GPU-00000002", "GPU-00000005"] * 2
    assert len({place.root for place in places}) == 4
    told = environment(
        instances,
        places[0],
        {"PATH": "/bin", "PYTHONHOME": "/wrong", "PYTHONPATH": "/wrong", "CUDA_VISIBLE_DEVICES": "1"},
    )
    assert told["ISAAC_PATH"] == str(tmp_path)
    assert "/wrong" not in told["PYTHONPATH"] and told["PYTHONPATH"].endswith(str(ROOT))
    assert "PYTHONHOME" not in told
    assert "CUDA_VISIBLE_DEVICES" not in told, "Kit and Warp number all GPUs"
    (package, *_) = told["PYTHONPATH"].split(os.pathsep)
    for _ in range(2):  # a root folder is reused
        link_package(places[0])
    assert [path.name for path in Path(package).iterdir()] == ["nimbus"], "and nothing of what stands beside it"
    assert Path(package, "nimbus").resolve() == Path(str(nimbus.__file__)).resolve().parent
    assert [place.free_bytes >> 30 for place in places] == [80, 80, 40, 40], "two on one GPU share its memory"


def test_nothing_of_the_current_folder_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The start script extends variables that may be unset; an empty entry would be the current folder."""
    script = (tmp_path / "isaac", install(tmp_path / "isaac"))[0] / "python.sh"
    lines = script.read_text().splitlines()
    extended = ["export PYTHONPATH=$PYTHONPATH:" + str(ROOT), "export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/lib"]
    script.write_text("\n".join([*(line for line in lines if "PYTHONPATH" not in line)][:-1] + extended + lines[-1:]))
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset/json.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path / "dataset")
    host = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    environ = host | {"NIMBUS_ISAACSIM": str(tmp_path / "isaac"), "OMNI_KIT_ACCEPT_EULA": "YES"}
    instances = find_instances(environ=environ, gpus=RTX)
    told = environment(instances, instance_paths(instances, 0), host | {"LD_LIBRARY_PATH": ":lib"})
    assert told["PYTHONPATH"].endswith(f"python:{ROOT}") and told["LD_LIBRARY_PATH"] == "/usr/lib"
    assert not (tmp_path / "ran").exists()


def test_the_cores_are_divided_among_the_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("nimbus.runner.isaac.instance.usable_cores", lambda: 12)
    spec = rtx_spec(tmp_path)
    split = [replace(spec.resources, workers=workers) for workers in (None, (4, 3), (1, 20))]
    assert [instance_threads(replace(spec, resources=resources)) for resources in split] == [6, 4, 1]


def test_an_instance_starts_in_its_own_folder(tmp_path: Path):
    """The current folder may be a dataset of others, whose files Kit's libraries would open."""
    (tmp_path / "dataset").mkdir()
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\npwd\necho "$4"\n')
    program.chmod(0o755)
    instances = Instances(executable=str(program), gpus=("a",), gpu_numbers=(0,), gpu_free_bytes=(1,))
    spec = CellSpec(
        folder="data", task="tasks/a.yaml", robot="panda", pipeline="p.yaml", skills=("skills",), instances=instances
    )
    spec = replace(spec, instances=replace(instances, folder=str(tmp_path / "roots")))
    code = "import sys; from nimbus.runner.isaac.instance import exec_instance as start; "
    code += "from nimbus.runner.cell.transport.spec import CellSpec; "
    code += "start(CellSpec.from_text(sys.argv[1]), '', number=0, row=0, descriptors=[])"
    words = [sys.executable, "-P", "-c", code, spec.to_text()]
    done = subprocess.run(words, cwd=tmp_path / "dataset", capture_output=True, text=True, check=True)
    folder, text = done.stdout.splitlines()
    assert folder == str(tmp_path / "roots/instance-0")
    here = f"{tmp_path}/dataset"
    assert CellSpec.from_text(text) == replace(
        spec,
        folder=f"{here}/data",
        task=f"{here}/tasks/a.yaml",
        pipeline=f"{here}/p.yaml",
        skills=(f"{here}/skills",),
    )


@pytest.mark.slow
def test_a_task_is_planned_here_and_rendered_and_stored_inside_isaac_sim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The instance starts in another folder than the run, whose paths are relative."""
    monkeypatch.chdir(tmp_path)
    task = (ROOT / "tests/support/tiny.yaml").read_text()
    Path("tiny.yaml").write_text(task.replace("robot: panda", "robot: ./mine.yaml"))
    Path("mine.yaml").write_text((ROOT / "scenes/robots/panda.yaml").read_text())
    instances = find_instances(environ=install(tmp_path / "isaac"), gpus=RTX[:1])
    spec = CellSpec(
        folder=str(tmp_path / "data"),
        task="tiny.yaml",
        episodes=1,
        simulator="isaacsim",
        stack=16,
        instances=replace(instances, folder=str(tmp_path / "roots")),
        resources=Resources(workers=(1, 1), fixed_roles=True, deadlines={"plan": (120.0, 240.0)}),
    )
    Run(spec).end(0, patience=200.0)
    sound(spec)
    (path,) = Path(spec.folder, "episodes").glob("*.hdf5")
    with EpisodeFile(path) as episode:
        drawn = episode.layout().visual.drawn
        sizes = {len(episode.frames(camera, 0, episode.step_count).depth) for camera in episode.cameras}
        assert (len(episode.cameras), sizes) == (2, {episode.step_count})
    assert set(drawn["materials"]) > {"table", "floor"}
    assert drawn["light"]["intensity"] > 0
