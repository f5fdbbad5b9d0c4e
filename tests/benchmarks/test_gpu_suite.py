"""The GPU suite on a CPU: comparisons find differences, and parts with missing packages are skipped with the reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import warp as wp

from benchmarks.gpu import __main__ as suite
from benchmarks.gpu import cycles, motion, rollouts, splats, timing, training
from benchmarks.gpu.equality import compare, find_problems, render
from benchmarks.gpu.layouts import DrawnLayout, draw_layout
from benchmarks.gpu.recording import Recording, load, save
from benchmarks.gpu.result import MissingError, PartResult, State, format_table
from benchmarks.gpu.throughput import measure_views
from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def recording() -> Recording:
    return load()


@pytest.fixture(scope="module")
def frames(recording: Recording) -> dict[str, CameraFrames]:
    return render(recording, "cpu", stack=2, states=2, width=64, height=48)


def test_stacks_of_two_sizes_are_equal(recording: Recording, frames: dict[str, CameraFrames]):
    found = compare(render(recording, "cpu", stack=1, states=2, width=64, height=48), frames)
    assert set(found) == {"camera_0", "camera_1"}
    assert not [problem for row in found.values() for problem in find_problems(row)]
    assert int(found["camera_0"]["things_seen"]) > 5


@pytest.mark.parametrize(
    ("field", "change", "problem"),
    [
        ("instance", 1, "labels_differ"),
        ("semantic", 1, "labels_differ"),
        ("depth", 2e-4, "depths_differ"),
        ("depth", np.nan, "depths_differ"),
        ("rgb", 3, "colors_differ"),
    ],
)
def test_differences_are_found(frames: dict[str, CameraFrames], field: str, change: float, problem: str):
    """1 % of the pixels are changed."""
    one = frames["camera_0"]
    values = getattr(one, field).copy()
    values[:, 20, :30] = (values[:, 20, :30] + change).astype(values.dtype)
    row = compare({"c": one}, {"c": replace(one, **{field: values})})["c"]
    assert [line.split()[0] for line in find_problems(row)] == [problem]


def test_small_differences_are_allowed(frames: dict[str, CameraFrames]):
    one = frames["camera_0"]
    near = replace(one, depth=one.depth + np.float32(5e-5), rgb=np.where(one.rgb < 254, one.rgb + 2, one.rgb))
    assert not find_problems(compare({"c": one}, {"c": near})["c"])


def test_empty_pictures_are_a_problem(frames: dict[str, CameraFrames]):
    one = frames["camera_0"]
    empty = replace(one, instance=np.zeros_like(one.instance))
    assert find_problems(compare({"c": empty}, {"c": empty})["c"]) == ["nothing is seen"]


def test_recording_comes_back_from_its_file(recording: Recording, tmp_path: Path):
    save(recording, tmp_path / "again.npz")
    again = load(tmp_path / "again.npz")
    assert again.inputs.visual == recording.inputs.visual
    assert again.bodies == recording.bodies
    np.testing.assert_allclose(again.wxyz, recording.wxyz, atol=1e-7)
    for one, other in zip(again.inputs.parts, recording.inputs.parts, strict=True):
        assert (one.instance, one.body) == (other.instance, other.body)
        np.testing.assert_array_equal(one.triangles.vertices, other.triangles.vertices)
        np.testing.assert_array_equal(one.image, other.image)


def test_damaged_recording_is_one_line(tmp_path: Path):
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="not a recording of render inputs"):
        load(tmp_path / "bad.npz")


def test_further_cameras_stand_elsewhere(recording: Recording):
    cameras = recording.seen_by(3, 32, 24).visual.cameras
    assert len({camera.name for camera in cameras}) == 3
    assert len({camera.position for camera in cameras}) == 3
    assert {(camera.width, camera.height) for camera in cameras} == {(32, 24)}


def test_views_are_counted(recording: Recording):
    row = measure_views(recording, "cpu", stack=2, cameras=3, width=32, height=24, seconds=0.0)
    assert row["views"] == 6
    assert float(row["views_per_s"]) > 0


@pytest.fixture(scope="module")
def layouts(recording: Recording) -> list[DrawnLayout]:
    return [draw_layout(recording, seed, cameras=2, width=64, height=48) for seed in range(2)]


def test_drawn_layouts_differ(layouts: list[DrawnLayout]):
    one, other = layouts
    assert len(one.bodies) != len(other.bodies)
    assert one.inputs.visual.light != other.inputs.visual.light
    assert one.inputs.labels.instance_names[-4:] == other.inputs.labels.instance_names[-4:]


def test_layouts_together_are_those_alone(layouts: list[DrawnLayout]):
    assert rollouts.compare_layouts(layouts, "cpu") == (0, [])


def test_images_of_another_layout_are_a_problem(layouts: list[DrawnLayout], monkeypatch: pytest.MonkeyPatch):
    show = rollouts.Rollouts.show
    monkeypatch.setattr(rollouts.Rollouts, "show", lambda self, *step, **apart: show(self, *step, **apart)[::-1])
    differing, problems = rollouts.compare_layouts(layouts, "cpu")
    assert differing > 10
    assert problems[0].startswith("layout 0, camera_0: labels_differ")


def test_control_frames_of_layouts_are_counted(layouts: list[DrawnLayout], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timing, "SECONDS", 0.0)
    assert rollouts.measure_layouts(layouts, "cpu", together=2)["control_frames"] == 2


def test_missing_package_skips_a_part():
    def part() -> PartResult:
        raise ModuleNotFoundError("No module named 'warp'", name="warp")

    result = suite.run_part(part, absent={"warp": "part-3.bin of the bundle did not arrive"}, label="views")
    assert result.state is State.SKIPPED
    assert result.skipped == "no package warp; part-3.bin of the bundle did not arrive"


def test_missing_module_of_ours_fails(capsys: pytest.CaptureFixture[str]):
    def part() -> PartResult:
        raise ModuleNotFoundError("No module named 'nimbus.gone'", name="nimbus.gone")

    assert suite.run_part(part, absent={}, label="views").state is State.FAILED
    assert "Traceback" in capsys.readouterr().err


def test_report_names_state_and_reason():
    def part() -> PartResult:
        raise MissingError("no package ompl")

    results = {
        "run": suite.run_part(part, absent={}, label="run"),
        "equality": PartResult(rows=({"size": "64x48", "pixels": 3},), problems=("labels_differ 1e-2",)),
        "physics": PartResult(rows=({"copies": 1},), skipped="no package mujoco_warp"),
    }
    text = suite.report(results, "cpu")
    lines = {line.split()[0]: line for line in text.splitlines()[-3:]}
    assert "SKIPPED" in lines["run"] and lines["run"].endswith("no package ompl")
    assert "FAILED" in lines["equality"] and lines["equality"].endswith("labels_differ 1e-2")
    assert "passed" in lines["physics"] and lines["physics"].endswith("left out: no package mujoco_warp")


def test_headline_is_the_best_rate_with_three_cameras():
    rows = (
        {"size": "320x240", "cameras": 1, "control_frames_per_s": 90.0},
        {"size": "320x240", "cameras": 3, "control_frames_per_s": 20.4},
        {"size": "320x240", "cameras": 3, "control_frames_per_s": 31.6},
    )
    assert suite.headline({"views": PartResult(rows=rows)}) == [
        "control frames per second, 3 cameras of 320x240: 32 (goal 820)"
    ]
    assert suite.headline({"views": PartResult(skipped="no package warp")}) == []


def test_splats_are_measured_beside_a_missing_gsplat(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timing, "SECONDS", 0.0)
    monkeypatch.setattr(splats, "_CPU_COUNTS", (300,))
    found = splats.measure("cpu")
    assert not found.problems and float(found.rows[0]["views_per_s"]) > 0
    assert found.skipped in ("no package gsplat", "gsplat only renders on a GPU")


def test_motions_of_the_default_planner_are_free(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(motion, "_CPU_PROBLEMS", 1)
    found = motion.measure("cpu")
    assert (found.problems, found.rows[0]["solved"]) == ((), 1)
    assert [row["planner"] for row in found.rows] == ["ompl, one core", "reference", "reference, 8 at once"]
    assert found.rows[2]["equal_to_single"] == "1 of 1"
    assert found.skipped == "cuRobo plans on a GPU only"


def test_a_stage_that_fails_leaves_the_others(capsys: pytest.CaptureFixture[str]):
    stages = motion._Stages()

    def fail(name: str) -> motion.Measured:
        raise RuntimeError("in its process:\nTraceback\nno kernel")

    assert stages.run("first", lambda name: ({"planner": name}, []))
    assert not stages.run("second", fail, limit=60.0)
    result = stages.result()
    assert [row["planner"] for row in result.rows] == ["first"] and result.state is State.FAILED
    assert "second: RuntimeError: in its process: … no kernel" in result.problems
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("part", "package"), [(training, "torch"), (cycles, "bpy")], ids=["training", "cycles"])
def test_parts_without_their_package_are_skipped(part: ModuleType, package: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delenv("NIMBUS_BLENDER_PYTHON", raising=False)
    result = suite.run_part(lambda: part.measure("cpu"), absent={}, label=package)
    assert (result.state, result.skipped) == (State.SKIPPED, f"no package {package}")


def test_padded_and_packed_steps_agree():
    pytest.importorskip("torch")
    found = training.measure("cpu")
    assert not found.problems and {row["sequences"] for row in found.rows} == {"padded", "packed"}
    assert {row["precision"] for row in found.rows} == {"fp32", "bf16"}


@pytest.mark.parametrize(("mean", "problem"), [(0.4, ""), (0.001, "the frames are black")])
def test_cycles_runs_in_the_named_interpreter(mean: float, problem: str, tmp_path: Path, monkeypatch):
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\necho \'RESULT {{"seconds": 0.5, "mean": {mean}}}\'\n')
    program.chmod(0o755)
    monkeypatch.setenv("NIMBUS_BLENDER_PYTHON", str(program))
    found = cycles.measure("cpu")
    assert found.problems == ((problem,) if problem else ()) and found.rows == ({"processes": 1, "frames_per_s": 2.0},)


def test_the_renderer_needs_no_package_beyond_the_bundle(tmp_path: Path):
    """A machine with the bundle alone has Warp, NumPy and msgspec."""
    code = """
import sys
ABSENT = "pydantic yaml pxr newton ompl mink h5py scipy trimesh platformdirs bpy".split()
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            raise ModuleNotFoundError("blocked: " + name, name=name.split(".")[0])
sys.meta_path.insert(0, Blocker())
import benchmarks.gpu.equality, benchmarks.gpu.throughput, benchmarks.gpu.splats, benchmarks.gpu.physics
import benchmarks.gpu.rollouts
from benchmarks.gpu.__main__ import main
sys.argv[1:] = ["--device", "cpu", "cycles"]
sys.exit(main())
"""
    environment = {name: value for name, value in os.environ.items() if name != "NIMBUS_BLENDER_PYTHON"}
    environment["WARP_CACHE_PATH"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-300:]
    assert "SKIPPED" in done.stdout and "no package bpy" in done.stdout


def test_table_has_a_column_for_each_name():
    assert format_table([{"K": 1}, {"K": 8, "ms": 2.5}]).splitlines() == ["K   ms", "1     ", "8  2.5"]


@pytest.mark.slow
@pytest.mark.skipif(wp.is_cuda_available(), reason="this machine has a GPU")
def test_no_gpu_skips_and_exits_zero(tmp_path: Path):
    line = [sys.executable, "-m", "benchmarks.gpu", "--json", str(tmp_path / "gpu.json"), "equality", "views"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    parts = json.loads((tmp_path / "gpu.json").read_text())["parts"]
    assert {part["state"] for part in parts.values()} == {"SKIPPED"}
    assert all("no device 'cuda'" in part["skipped"] for part in parts.values())
