"""Physics in another process: equal calls, sent as text, give an equal state."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Disturbance, PhysicalLayout
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.hosted_world import HostedWorld, obey, parts_of
from nimbus.datagen.simulate.isaacsim import IsaacSimSimulation
from nimbus.datagen.simulate.physics_world import WorldParts
from nimbus.datagen.simulate.physx_world import PhysxWorld
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.usd.stage import read_stage
from tests.datagen.simulate.test_isaacsim import CAN, placed
from tests.support.played_physics import played_physics

discover_components()


class Host:
    """Program with the open stage, which is reached by lines of text."""

    def __init__(self) -> None:
        self.world: PhysxWorld | None = None
        self.orders: list[str] = []

    def exchange(self, order: dict[str, Any]) -> dict[str, Any]:
        order = json.loads(json.dumps(order))
        self.orders.append(order["do"])
        if order["do"] == "open":
            self.world = PhysxWorld.open(Path(order["path"]), parts_of(order))
        assert self.world is not None
        return json.loads(json.dumps(obey(self.world, order)))


class HostedSimulation(IsaacSimSimulation):
    def __init__(self, host: Host, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._host = host

    def _open_world(self, path: Path, parts: WorldParts) -> HostedWorld:
        return HostedWorld(self._host.exchange, path, parts)


def test_hosted_world_moves_as_one_in_this_process():
    """Joints, a free body, an object with parts, a push and slippery hands: equal to the bit."""
    push = Disturbance(body="items_0", time=0.0, duration=0.05, force=(0.3, 0.0, 0.0))
    oven = placed("oven", "furniture", "microwave", position=(0.5, 0.4, 0.0), anchored=True)
    layout, states = PhysicalLayout(objects=(CAN, oven), disturbance=push), []
    for host in (None, Host()):
        with played_physics():
            stage, robot = read_stage("tabletop"), load_robot("panda")
            simulation = IsaacSimSimulation(stage, robot, rate=20.0)
            if host is not None:
                simulation = HostedSimulation(host, stage, robot, rate=20.0)
            simulation.load(layout)
            simulation.restore(simulation.state())
            action = simulation.present_action()
            for _ in range(2):
                simulation.advance(action + 0.02)
            states.append(np.hstack([simulation.data.qpos, simulation.data.qvel]))
    np.testing.assert_array_equal(*states)
    assert host is not None and host.orders.count("act") == 2 * 12 + 2, "one message a step, one for each new state"


def test_unknown_call_is_refused():
    with pytest.raises(ValueError, match="no call 'fly'"):
        obey(cast(Any, SimpleNamespace(robot=None, parts={})), {"do": "act", "calls": [["fly"]]})
