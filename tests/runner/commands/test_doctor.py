from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen.doctor import examine, machine
from nimbus.datagen.doctor.diagnosis import Diagnosis
from nimbus.datagen.doctor.machine import MachineItem as MachinePart
from nimbus.datagen.doctor.machine import examine_machine
from nimbus.datagen.errors import Diagnostic
from nimbus.runner.cli import main
from tests.support import ROOT
from tests.support.isaac_installation import install

BROKEN = """\
robot: panda
scene: table
regions:
  start: {on: table, center: [0.5, 0.0], size: [0.2, 0.2]}
objects:
  cube: {library: blocks, kinds: [red_cube], region: start, lying: 150 %}
steps:
  - pick: cube
success:
  - held: cube
instructions: ["Lift {cube}."]
"""


def test_the_machine_is_described_in_rows_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--machine"]) in (0, 1)
    rows = capsys.readouterr().out
    assert "Python" in rows and "planner ompl" in rows and "GB free" in rows
    main(["doctor", "--machine", "--json"])
    parts = {part["name"]: part for part in json.loads(capsys.readouterr().out)["parts"]}
    assert parts["mujoco"]["state"] == "ok" and parts["mujoco"]["detail"][0].isdigit()
    assert all(part["instead"] for part in parts.values() if part["state"] == "bad")


def machine_part(name: str) -> MachinePart:
    return next(part for part in examine_machine(Path("out")) if part.name == name)


def test_machine_finds_the_named_isaac_sim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIMBUS_ISAACSIM", install(tmp_path / "sim")["NIMBUS_ISAACSIM"])
    part = machine_part("simulator isaacsim")
    assert (part.state, part.detail) == ("ok", f"Isaac Sim by {tmp_path}/sim/python.sh")


def test_machine_finds_the_named_curobo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for cuRobo is the interpreter that the planner would start."""
    python = tmp_path / "python"
    stand_in = ROOT / "tools/contract/curobo_python.py"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{stand_in}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("NIMBUS_CUROBO_PYTHON", str(python))
    part = machine_part("planner curobo")
    assert (part.state, part.detail) == ("ok", f"cuRobo in {python}")


@pytest.mark.parametrize(
    ("variable", "name", "detail"),
    [
        ("NIMBUS_ISAACSIM", "simulator isaacsim", "NIMBUS_ISAACSIM does not name a Python of Isaac Sim: /no/where"),
        ("NIMBUS_CUROBO_PYTHON", "planner curobo", "/no/where: No such file or directory"),
        ("NIMBUS_CUROBO_PYTHON=python", "planner curobo", f"there is no cuRobo in {sys.executable}"),
    ],
)
def test_machine_reports_a_wrong_variable(
    variable: str, name: str, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable.partition("=")[0], sys.executable if "=" in variable else "/no/where")
    part = machine_part(name)
    assert (part.state, part.detail) == ("bad", detail) and part.instead


def test_machine_without_isaac_sim_and_curobo(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NIMBUS_ISAACSIM", "NIMBUS_CUROBO_PYTHON", "ISAAC_PATH"):
        monkeypatch.delenv(variable, raising=False)
    assert machine_part("simulator isaacsim").state == machine_part("planner curobo").state == "missing"


def test_a_folder_that_does_not_exist_yet_is_on_a_disk_all_the_same(tmp_path: Path) -> None:
    disk = next(part for part in examine_machine(tmp_path / "not" / "yet") if part.name == "disk")
    assert disk.state in ("ok", "bad") and "GB free" in disk.detail


@pytest.mark.parametrize(
    ("root", "instead"),
    [
        ("/proc/foo", "set NIMBUS_CACHE to a folder that you may write"),
        ("{here}/file", "set NIMBUS_CACHE to a folder that you may write"),
        ("~nobody_has_this_name/x", "write an absolute path"),
    ],
)
def test_a_cache_that_cannot_be_written_is_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, instead: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NIMBUS_CACHE", root.format(here=tmp_path))
    cache = next(part for part in examine_machine(tmp_path) if part.name == "cache")
    assert (cache.state, cache.instead) == ("bad", instead)


@pytest.mark.parametrize(
    ("landlock", "seccomp", "files", "calls"),
    [
        (7, True, "enforced by the kernel (Landlock 7)", "enforced by the kernel (seccomp)"),
        (7, False, "enforced by the kernel (Landlock 7)", "not enforced: this kernel lacks filters of system calls"),
        (0, True, "not enforced: this kernel lacks Landlock", "not enforced: this kernel lacks Landlock"),
    ],
)
def test_the_limits_of_the_kernel_are_shown(
    landlock: int, seccomp: bool, files: str, calls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "landlock_version", lambda: landlock)
    monkeypatch.setattr(machine, "has_filters", lambda: seccomp)
    for name, detail in (("file limits", files), ("call limits", calls)):
        part = machine_part(name)
        assert part.detail.startswith(detail)
        assert (part.state, bool(part.instead)) == (("missing", True) if "not" in detail else ("ok", False))


def test_what_is_no_task_ends_as_a_run_would_and_names_the_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN)
    assert main(["doctor", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"{path}:6:") and "objects.cube.lying" in said.err
    assert main(["run", "--task", str(path), "--out", str(tmp_path / "data")]) == 2
    assert capsys.readouterr().err == said.err
    assert main(["doctor", str(path), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert not told["works"] and told["findings"][0]["field"] == "objects.cube.lying"
    assert told["findings"][0]["instead"] or "at most 100 %" in told["findings"][0]["what"]


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("hdf", "store: unknown component 'hdf' for store; did you mean 'hdf5'?"),
        ("{hdf5: {compression: high}}", "store.hdf5.compression: expected a whole number, found 'high'"),
    ],
)
def test_mistakes_in_the_pipeline_are_those_of_a_run(
    store: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline = tmp_path / "mine.yaml"
    pipeline.write_text(f"load: usd\nrandomize: tabletop\nplan: skills\nrender: newton\nstore: {store}\n")
    path = tmp_path / "task.yaml"
    path.write_text(BROKEN.replace(", lying: 150 %", "") + "pipeline: mine.yaml\n")
    assert main(["doctor", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{pipeline}:5:") and expected in said


@pytest.mark.parametrize("command", [["doctor"], ["run", "--serial", "--out", "data", "--task"]])
def test_mistakes_of_form_load_nothing_heavy(command: list[str], tmp_path: Path) -> None:
    """A simulator takes seconds to load, and a missing field is found without it."""
    (tmp_path / "broken.yaml").write_text(BROKEN)
    heavy = {"newton", "warp", "mujoco", "scipy.spatial", "pxr", "h5py", "rich"}
    heavy |= {"nimbus.datagen.execute.toolkit", "nimbus.runner.cell.run"}
    code = f"""
import sys
from nimbus.runner.cli import main
code = main({[*command, "broken.yaml"]!r})
print(code, sorted(set(sys.modules) & {heavy!r}))
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert "objects.cube.lying" in ended.stderr
    assert ended.stdout.splitlines()[-1] == "2 []"


def test_what_cannot_succeed_is_said_so_and_ends_with_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Diagnostic(check="goals", where="t.yaml:9:5", what="they exclude")
    diagnosis = Diagnosis(task="t", findings=(found,))
    monkeypatch.setattr(examine, "examine", lambda *_, **__: diagnosis)
    assert main(["doctor", "shake_can"]) == 1
    assert capsys.readouterr().out == "no episode can succeed: t.yaml:9:5: they exclude\n"
    assert main(["doctor", "shake_can", "--json"]) == 1


def test_a_doctor_without_a_patient_says_what_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == "no task is given; write nimbus doctor TASK, or nimbus doctor --machine\n"


def test_a_task_beside_the_machine_is_not_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--machine", "sort_trash"]) == 2
    said = "--machine takes no task, but 'sort_trash' is given; write nimbus doctor sort_trash, or nimbus doctor"
    assert capsys.readouterr().err.startswith(said)
