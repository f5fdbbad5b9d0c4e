"""Isaac Sim, played: MuJoCo answers its calls for physics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tools.contract.kit_behaviour import Kit
from tools.contract.mujoco_physics import MujocoPhysics
from tools.contract.names import Contract
from tools.contract.standin import StandIn


@contextmanager
def played_physics() -> Iterator[MujocoPhysics]:
    """An Isaac Sim that imports find, for as long as this lasts."""
    isaac = MujocoPhysics()
    standin = StandIn(Contract.load(), {})
    standin.behaviour.update(Kit().behaviour(standin.make) | isaac.behaviour())
    with standin.installed():
        yield isaac
