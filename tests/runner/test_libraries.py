from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import mujoco
import pytest

from nimbus.runner.libraries import kernels_are_compiled, prepare_libraries


@pytest.mark.parametrize("module", ["run", "replay", "rerender"])
def test_the_shell_does_not_decide_on_threads(module: str):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    code = f"import os, sys, nimbus.runner.{module}; assert 'numpy' not in sys.modules; print(*map(os.getenv, {names}))"
    env = os.environ | dict.fromkeys(names, "8") | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "1 1 1\n"


def test_kernels_are_compiled_once_the_renderer_has_run(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import warp

    assert kernels_are_compiled("cpu")
    monkeypatch.setattr(warp.config, "kernel_cache_dir", str(tmp_path))
    assert not kernels_are_compiled("cpu")


def test_an_unstable_simulation_leaves_no_file_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.chdir(tmp_path)
    prepare_libraries()
    body = "<body><freejoint/><geom size='0.1'/></body>"
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    data.qvel[0] = 1e30
    with caplog.at_level(logging.DEBUG, logger="nimbus.mujoco"):
        mujoco.mj_step(model, data)
    assert "The simulation is unstable" in caplog.text
    assert not list(tmp_path.iterdir())
