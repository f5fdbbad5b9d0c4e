"""A cable in a session: an operator lifts its end, and the demonstration is exported with the points of the cable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.training.lerobot import LeRobotFrames
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Outcome
from nimbus.datagen.execute.toolkit import align_hand
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.policies.environment import with_cameras
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.stages import Request, Scene
from nimbus.datagen.tasks.task import parse_task
from nimbus.datagen.teleoperate.operator_input import OperatorInput, PoseTarget, ToolCommand
from nimbus.datagen.teleoperate.session import TeleoperationSession
from tests.support.operators import pointing
from tests.support.synthetic import make_rendered, write_dataset

TASK = """robot: panda
scene: table
rate: 15
regions: {start: {on: table, center: [0.5, 0.0], size: [0.02, 0.02]}}
objects:
  cable: {library: cables, kinds: [red_cable], region: start, yaw: [80 deg, 90 deg]}
steps: [wait: 1]
success: [gripper_clear]
instructions: ["Lift an end of {cable}."]
"""


def lift_end(session: TeleoperationSession) -> Iterator[OperatorInput]:
    """Yield inputs that close the fingers on the nearer end of the cable, and lift it."""
    end, inner = session.environment.simulation.points("cable_0")[[0, 3]]
    outward = (end - inner)[:2] / np.linalg.norm((end - inner)[:2])
    tool = session.tool_poses()["arm"]
    tool[:3, :3] = align_hand(outward)
    at = np.array([*(end[:2] - 0.02 * outward), 0.0105])
    over = at + [0.0, 0.0, 0.12]
    for place, opening, count in ((over, 1.0, 26), (at, 1.0, 16), (at, 0.0, 10), (over, 0.0, 16)):
        motion = PoseTarget(world_T_tool=pointing(tool, place))
        for _ in range(count):
            yield OperatorInput(arms={"arm": ToolCommand(motion=motion, opening=opening)})


@pytest.mark.long
def test_lifted_cable_is_exported_with_its_points(tmp_path: Path):
    task = parse_task(TASK)
    session = TeleoperationSession(task, load_assets(task), operator="Ada", device="script")
    session.reset(0)
    simulation = session.environment.simulation
    session.record()
    for given in lift_end(session):
        session.step(given)
    last = simulation.points("cable_0")
    assert simulation.is_stable
    assert last[0, 2] > 0.1 and last[-1, 2] < 0.01

    item = make_rendered(
        layout=with_cameras(session.environment.layout, ()),
        trajectory=session.environment.finish(Outcome(success=True)),
        labels=None,
        observations=iter(()),
        scene=Scene(request=Request(index=0), assets=None, provenance=Provenance(task_text=TASK, task_hash="0")),
    )
    write_dataset(tmp_path / "data", [item])
    export(tmp_path / "data", tmp_path / "out", view=SignalView(environment_state=True))
    name = "observation.environment_state"
    names = json.loads((tmp_path / "out/meta/info.json").read_text())["features"][name]["names"]
    points = [names.index(f"cable_0.point_{index}_{axis}") for index in range(25) for axis in "xyz"]
    rows = LeRobotFrames(tmp_path / "out").signals(0)[name][:, points].reshape(-1, 25, 3)
    assert rows[0, :, 2].max() < 0.01
    np.testing.assert_allclose(rows[-1], last, atol=0.02)
