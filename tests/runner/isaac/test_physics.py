"""The engine of a run with Isaac Sim: selected, refused, recorded, and executed in stand-in instances."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.load.engines import find_unsupported_task
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import INFO_NAME, DatasetInfo, info_text
from nimbus.datagen.tasks.task import load_any_task
from nimbus.runner.cell.launcher import run_cell
from nimbus.runner.cell.transport.spec import CellSpec, Instances, Resources
from nimbus.runner.checks.replay import replay
from nimbus.runner.cli import main
from nimbus.runner.isaac.find import find_instances
from nimbus.runner.isaac.physics import choose_physics, is_verified, record_verification
from tests.support.isaac_installation import RTX, install


def installed(folder: Path) -> Instances:
    return Instances(executable="/isaac-sim/python", gpus=("GPU-a", "GPU-b"), folder=str(folder))


def test_physx_without_isaac_sim_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    words = ["run", "--task", "sort_trash", "--physics", "isaacsim", "--out", str(tmp_path / "out")]
    assert main(words) == 2
    line = "--physics isaacsim: PhysX runs inside Isaac Sim; add --sim isaacsim, or use --physics mujoco"
    assert line in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_physx_is_the_default_once_verified(tmp_path: Path):
    instances = installed(tmp_path)
    engine, line = choose_physics(None, simulator="isaacsim", instances=instances, task="sort_trash")
    assert engine == "newton" and "verify-isaacsim' has not passed" in line
    record_verification(instances)
    assert choose_physics(None, simulator="isaacsim", instances=instances, task="sort_trash")[0] == "isaacsim"
    engine, line = choose_physics(None, simulator="isaacsim", instances=instances, task="conveyor_pick")
    assert engine == "newton" and "moving belt" in line
    for engine, name in (("mujoco", "newton"), ("isaacsim", "isaacsim")):
        assert choose_physics(engine, simulator="isaacsim", instances=instances, task="sort_trash") == (name, "")


def test_a_dataset_goes_on_with_its_engine(tmp_path: Path):
    """Checks that pass after the start of a run do not change the engine of its continuation."""
    instances, folder = installed(tmp_path), tmp_path / "data"
    folder.mkdir()
    info = DatasetInfo(task="sort_trash", task_hash="0", seed=0, inputs={"physics": "newton"})
    (folder / INFO_NAME).write_text(info_text(info))
    record_verification(instances)
    engine, line = choose_physics(None, simulator="isaacsim", instances=instances, task="sort_trash", folder=folder)
    assert engine == "newton" and line == "MuJoCo executes and Isaac Sim renders, as in the existing episodes"


def test_a_verification_is_for_its_installation(tmp_path: Path):
    instances = installed(tmp_path)
    record_verification(instances)
    assert is_verified(replace(instances, gpus=("GPU-b",)))
    assert not is_verified(replace(instances, gpus=("GPU-c",)))
    assert not is_verified(replace(instances, executable="/other/python"))
    (tmp_path / "verified.json").write_text("[]")
    assert not is_verified(instances)


@pytest.mark.parametrize(
    ("task", "reason"),
    [("conveyor_pick", "moving belt"), ("navigate_homes", "navigation tasks have no physics"), ("sort_trash", "")],
)
def test_tasks_that_physx_cannot_run_are_known(task: str, reason: str):
    found = find_unsupported_task(load_any_task(task))
    assert (reason in found) if reason else not found


@pytest.mark.slow
@pytest.mark.long
def test_instances_plan_render_and_say_so(tmp_path: Path):
    """Skills run in an instance, whose physics is MuJoCo's; another instance renders. A replay in MuJoCo is refused."""
    instances = find_instances(environ=install(tmp_path / "isaac"), gpus=RTX)
    spec = CellSpec(
        folder=str(tmp_path / "out"),
        task="pick_and_place",
        episodes=1,
        simulator="isaacsim",
        physics="isaacsim",
        stack=16,
        instances=replace(instances, folder=str(tmp_path / "cache")),
        resources=Resources(workers=(1, 1), fixed_roles=True),
    )
    ended = run_cell(spec, watch=lambda: 0)
    assert ended.code == 0, ended.line
    (path,) = sorted((tmp_path / "out" / "episodes").glob("*.hdf5"))
    with EpisodeFile(path) as episode:
        assert episode.provenance.settings["physics"] == "isaacsim"
        assert episode.trajectory().outcome.success
    with pytest.raises(InputError, match="executed by PhysX in Isaac Sim"):
        replay(path)
