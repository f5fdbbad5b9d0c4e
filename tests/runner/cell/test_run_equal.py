"""A run makes the same dataset with any workers and any number of continuations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cells import Run, count, events, finish, finish_here, make_spec, run_here, sound
from tests.support.runs import TINY

EPISODES = 12
LONG = (pytest.mark.slow, pytest.mark.long)


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Return the hashes of the dataset that each pipeline makes in one process."""
    made = {}
    for pipeline in ("drive", "fused"):
        spec = make_spec(tmp_path_factory.mktemp("serial") / "data", pipeline=pipeline, episodes=EPISODES)
        made[pipeline] = finish_here(spec)
    return made


@pytest.mark.parametrize(
    ("pipeline", "resources"),
    [
        pytest.param("drive", {"workers": (1, 1), "fixed_roles": True}, id="1x1 fixed"),
        pytest.param("drive", {"workers": (1, 1), "fused": True}, id="1x1 fused roles"),
        pytest.param("drive", {"workers": (2, 1)}, id="2x1", marks=LONG),
        pytest.param("drive", {"workers": None}, id="auto", marks=LONG),
        pytest.param("drive", {"workers": (1, 1), "exec_workers": True}, id="executed", marks=pytest.mark.slow),
        pytest.param("fused", {"workers": (1, 3), "fixed_roles": True}, id="fused 1x3 fixed"),
        pytest.param("fused", {"workers": None}, id="fused auto", marks=LONG),
    ],
)
def test_any_crew_makes_what_one_process_makes(
    pipeline: str, resources: dict[str, Any], serial: dict[str, dict[str, str]], tmp_path: Path
):
    spec = make_spec(tmp_path / "data", pipeline=pipeline, episodes=EPISODES, **resources)
    assert finish(spec) == serial[pipeline]
    plans = count(spec, "plan" if pipeline == "drive" else "plan+render")
    assert set(plans.values()) == {1} and len(plans) == EPISODES
    if resources.get("fixed_roles") and pipeline == "drive":
        planned, rendered = ({pid for _, pid in events(spec, what)} for what in ("plan", "render"))
        assert not planned & rendered


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["drive", pytest.param("fused", marks=pytest.mark.long)])
def test_visual_variants_cost_one_plan_and_more_of_them_later_show_the_stored_one(pipeline: str, tmp_path: Path):
    spec = make_spec(tmp_path / "data", pipeline=pipeline, episodes=4, variants=2)
    finish_here(spec)
    what = "plan" if pipeline == "drive" else "plan+render"
    assert set(count(spec, what).values()) == {1}
    more = make_spec(tmp_path / "data", pipeline=pipeline, episodes=4, variants=3)
    finish(more)
    assert set(count(spec, what).values()) == {1}
    assert len(count(spec, "stored plan")) == 4
    at_once = make_spec(tmp_path / "whole" / "data", pipeline=pipeline, episodes=4, variants=3)
    assert finish_here(at_once) == sound(more)


@pytest.mark.slow
@pytest.mark.parametrize("serial_too", [False, True], ids=["cell", "serial"])
def test_a_stored_plan_that_cannot_be_read_is_made_again(serial_too: bool, tmp_path: Path):
    spec = make_spec(tmp_path / "data", episodes=2, variants=1)
    finish_here(spec)
    *_, damaged = sorted((tmp_path / "data" / "episodes").iterdir())
    damaged.write_bytes(bytes(damaged.stat().st_size))
    more = make_spec(tmp_path / "data", episodes=2, variants=2)
    run_here(more) if serial_too else Run(more).end(0)
    assert len(count(more, "stored plan")) == 1 and sorted(count(more, "plan").values()) == [1, 2]
    assert len(list((tmp_path / "data" / "episodes").iterdir())) == 4


@pytest.mark.slow
def test_more_episodes_later_are_added_to_those_that_are_there(tmp_path: Path):
    finish_here(make_spec(tmp_path / "data", episodes=5))
    more = make_spec(tmp_path / "data", episodes=9)
    finish(more)
    assert set(count(more, "plan").values()) == {1}
    loaded = len(events(more, "load"))
    Run(more).end(0)
    assert len(events(more, "load")) == loaded, "a run of which nothing is missing makes nothing"
    assert finish_here(make_spec(tmp_path / "whole" / "data", episodes=9)) == sound(more)


@pytest.mark.slow
def test_what_a_real_run_loads_leaves_one_thread_as_a_fork_needs(tmp_path: Path):
    code = f"""
import sys
from nimbus.runner.cell.worker.job import load_job
from nimbus.runner.system.processes import thread_count
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.system.threads import load_kernels, prepare_libraries
prepare_libraries()
assert "newton" not in sys.modules, "only physics needs it"
load_job(CellSpec(folder={str(tmp_path / "data")!r}, task={str(TINY)!r}))
load_kernels("cpu")
assert thread_count() == 1, thread_count()
assert "newton" in sys.modules, "workers share it"
assert "mujoco_warp._src.forward" not in sys.modules, "physics runs on MuJoCo's C code"
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
