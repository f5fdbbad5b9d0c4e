"""Views of a dataset: other actions and states, with their names and units, in every format and in the reader."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.quality.checks import check
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.datasets.training.lerobot import LeRobotFrames
from nimbus.datagen.datasets.training.native import StoredFrames
from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Outcome
from nimbus.datagen.errors import InputError
from nimbus.datagen.policies.control_modes import make_control
from nimbus.datagen.policies.environment import with_cameras
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.stages import Request, Scene
from nimbus.datagen.usd.stage import read_stage
from nimbus.gym import NimbusEnv
from nimbus.runner.cli import main
from tests.support.reading import tree
from tests.support.runs import TINY
from tests.support.synthetic import make_rendered, write_dataset
from tests.support.view_replay import VIEWS, views_of

ROWS = 20
FULL = SignalView(actions="tool_delta", rotation="euler", state="commanded", environment_state=True, done=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one episode of a moving robot; :func:`watched` returns the scene."""
    folder = tmp_path_factory.mktemp("data") / "data"
    env, scene = moved()
    provenance = Provenance(task_text=TINY.read_text(), task_hash="0")
    item = make_rendered(
        layout=with_cameras(env.layout(0), ()),
        trajectory=env._environment.finish(Outcome(success=True)),
        labels=None,
        observations=iter(()),
        scene=Scene(request=Request(index=0), assets=None, provenance=provenance),
    )
    write_dataset(folder, [item])
    np.save(folder.with_name("scene.npy"), scene)
    return folder


def moved() -> tuple[NimbusEnv, np.ndarray]:
    """Return an environment after some steps, and its states with scene features before each step."""
    env = NimbusEnv(TINY, cameras=(), environment_state=True, state="commanded", split="run")
    seen, rows = env.reset(seed=0)[0], []
    home = env._environment.present_action()
    for row in range(ROWS):
        rows.append(np.concatenate([seen["agent_pos"], seen["environment_state"]]))
        wave = 0.05 * np.sin(np.arange(8) + row / 4) * np.array([*[1.0] * 7, 0.0])
        seen = env.step(home + wave - np.array([*[0.0] * 7, 0.001 * row]))[0]
    return env, np.array(rows)


def test_reader_gives_what_the_environment_observes(data: Path):
    signals = StoredFrames(data, view=FULL).signals(0)
    seen = np.concatenate([signals["observation.state"], signals["observation.environment_state"]], axis=1)
    np.testing.assert_allclose(seen, np.load(data.with_name("scene.npy")), atol=1e-6)
    assert signals["next.done"].ravel().tolist() == signals["next.success"].ravel().tolist() == [0.0] * 19 + [1.0]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view.actions}-{view.rotation}")
def test_lerobot_holds_the_view_of_the_reader(data: Path, tmp_path: Path, view: SignalView):
    export(data, tmp_path / "out", view=view)
    found, wanted = LeRobotFrames(tmp_path / "out").signals(0), StoredFrames(data, view=view).signals(0)
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    feature = json.loads((tmp_path / "out/meta/info.json").read_text())["features"]["action"]
    assert feature["info"]["control_mode"] == view.actions
    assert len(feature["names"]) == len(feature["info"]["units"]) == feature["shape"][0] == found["action"].shape[1]
    assert found["observation.state"].shape[1] == 8
    assert not [finding for finding in check(open_view(tmp_path / "out")) if finding.is_certain]


def test_default_export_is_as_before(data: Path, tmp_path: Path):
    export(data, tmp_path / "one")
    export(data, tmp_path / "two", view=SignalView(rotation="6d"))
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert "view" not in json.loads((tmp_path / "one/nimbus.json").read_text())["origin"]


def test_view_replaces_an_export_without_it(data: Path, tmp_path: Path):
    assert export(data, tmp_path / "out").is_new
    assert export(data, tmp_path / "out", view=FULL).is_new
    assert not export(data, tmp_path / "out", view=FULL).is_new


def test_units_frame_and_reference_are_told(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", view=FULL)
    features: dict[str, Any] = json.loads((tmp_path / "out/meta/info.json").read_text())["features"]
    assert features["action"]["names"] == ["x", "y", "z", "roll", "pitch", "yaw", "gripper"]
    told = features["action"]["info"]
    assert (told["units"], told["frame"], told["rotation"]) == (["m"] * 3 + ["rad"] * 3 + ["m"], "world", "euler")
    assert "measured" in told["relative_to"]
    assert features["observation.state"]["info"] == {"form": "commanded", "units": ["rad"] * 7 + ["m"]}
    assert "items_0.r32" in features["observation.environment_state"]["names"]
    assert features["next.done"] == {"dtype": "bool", "shape": [1], "names": None}


def test_modality_names_parts_of_the_view(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", to="lerobot-v2.1", view=dataclasses.replace(FULL, rotation="6d"))
    found = json.loads((tmp_path / "out/meta/modality.json").read_text())
    assert found["action"]["eef_position"] == {"start": 0, "end": 3, "absolute": False}
    assert found["action"]["eef_rotation"]["rotation_type"] == "rotation_6d"
    assert found["action"]["gripper"] == {"start": 9, "end": 10}
    assert found["state"]["gripper"] == {"start": 7, "end": 8}
    assert found["state"]["environment_state"]["original_key"] == "observation.environment_state"


def test_hdf5_formats_hold_the_view(data: Path, tmp_path: Path):
    wanted = StoredFrames(data, view=FULL).signals(0)
    for to, file, prefix in (("robomimic", "dataset.hdf5", "data/demo_0/"), ("aloha", "episode_0.hdf5", "")):
        export(data, tmp_path / to, to=to, view=FULL)
        with h5py.File(tmp_path / to / file) as found:
            action, state = ("actions_abs", "obs/joint_pos") if prefix else ("action", "observations/qpos")
            for name, rows in ((action, wanted["action"]), (state, wanted["observation.state"])):
                np.testing.assert_allclose(np.asarray(found[prefix + name]), rows, atol=1e-6)
            told = json.loads(str((found["data"] if prefix else found).attrs["view"]))
        assert told["action"]["control_mode"] == "tool_delta"


def test_reader_gives_the_same_view_of_shards(data: Path, tmp_path: Path):
    export(data, tmp_path / "shards", to="shards")
    mine, others = (Reader(folder, view=FULL).sample(0, 3) for folder in (tmp_path / "shards", data))
    assert mine.keys() == others.keys() and "observation.environment_state" in mine
    assert all(np.array_equal(mine[name], others[name]) for name in mine)


@pytest.mark.parametrize("robot", ["dual_panda", pytest.param("so101", marks=pytest.mark.long), "baxter"])
def test_modes_lead_back_to_the_tools_of_every_robot(robot: str):
    loaded = load_robot(robot)

    simulation = NewtonSimulation(read_stage("tabletop"), loaded, rate=15)
    simulation.load(PhysicalLayout(objects=()))
    poses = make_control("tool_pose", loaded)
    poses.begin(simulation)
    posture = np.array(loaded.home_action)
    commands = posture + 0.02 * np.sin(np.arange(len(posture)))[None] * np.arange(1, 4)[:, None]
    for view in views_of(robot):
        control = make_control(view.actions, loaded, rotation=view.rotation)
        control.begin(simulation)
        rows = control.from_commands(commands, posture)
        assert rows.shape[1] == len(control.names) == len(control.units)
        back = control.to_commands(rows.astype(np.float32).astype(float), posture)
        reached, wanted = poses.from_commands(back, posture), poses.from_commands(commands, posture)
        np.testing.assert_allclose(reached, wanted, atol=5e-3)


def test_mode_that_an_arm_cannot_follow_is_refused():
    with pytest.raises(InputError, match="'arm' of so101 has 5 joints"):
        make_control("tool_delta", load_robot("so101"), where="--actions")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--actions", "tool"], "unknown 'tool'"),
        (["--rotation", "matrix"], "unknown 'matrix'"),
        (["--state", "comanded"], "did you mean 'commanded'"),
        (["--to", "shards", "--actions", "tool_pose"], "--actions: shards contain the stored files unchanged"),
    ],
)
def test_mistakes_are_one_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
):
    assert main(["export", str(data), "--out", str(tmp_path / "out"), *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_export_without_any_sight_of_objects_says_so(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["export", str(data), "--to", "lerobot", "--out", str(tmp_path / "out")]
    said = "neither images nor poses of objects; nimbus export --environment-state includes the poses\n"
    assert main(words) == 0
    assert said in capsys.readouterr().out
    assert main([*words, "--environment-state"]) == 0
    assert "neither" not in capsys.readouterr().out


def test_dataset_without_a_readable_task_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_dataset(tmp_path / "data")
    assert main(["export", str(tmp_path / "data"), "--out", str(tmp_path / "out"), "--state", "commanded"]) == 2
    assert "task" in capsys.readouterr().err
    with pytest.raises(InputError, match="only the view of its export"):
        export(tmp_path / "data", tmp_path / "lerobot")
        Reader(tmp_path / "lerobot", view=FULL)


def test_episode_of_another_robot_is_refused(data: Path, tmp_path: Path):
    folder = Path(shutil.copytree(data, tmp_path / "data"))
    [path] = (folder / "episodes").iterdir()
    with h5py.File(path, "r+") as file:
        bodies: Any = file["observations/body_positions"]
        bodies[...] += 0.01
    with pytest.raises(InputError, match="created with another version of the robot file 'panda'"):
        export(folder, tmp_path / "out", view=SignalView(actions="tool_pose"))
