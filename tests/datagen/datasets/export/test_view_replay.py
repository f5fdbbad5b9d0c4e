"""Views of actions are tested in physics: exported, read back from the files, and played in the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.policies.signal_view import SignalView
from tests.support.runs import TINY, run
from tests.support.view_replay import replay_view

PLAYED = [
    SignalView(actions="joint_relative", state="commanded"),
    SignalView(actions="tool_pose", rotation="quaternion"),
    SignalView(actions="tool_delta", rotation="euler"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "views"),
    [
        (TINY, PLAYED),
        pytest.param("so101_block", PLAYED[:2], marks=pytest.mark.long),
        pytest.param("handover_block", PLAYED, marks=pytest.mark.long),  # test_views tests two tools
    ],
    ids=["one arm", "five joints", "two arms"],
)
def test_played_views_succeed(task: Path | str, views: list[SignalView], tmp_path: Path):
    assert run("--episodes", "1", "--images", "none", out=tmp_path / "data", task=task) == 0
    for number, view in enumerate(views):
        played = replay_view(tmp_path / "data", view, task=task, out=tmp_path / str(number))
        assert [why for _, why in played] == [""], view
