from __future__ import annotations

import logging
from pathlib import Path

import mujoco
import pytest

from nimbus.runner.libraries import prepare_libraries


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
