"""A stand-in for Isaac Sim in which MuJoCo answers its calls for physics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tools.contract.kit_behaviour import Kit
from tools.contract.mujoco_physics import MujocoPhysics
from tools.contract.names import Contract
from tools.contract.standin import StandIn


@contextmanager
def played_physics(*, several_points: bool = False) -> Iterator[MujocoPhysics]:
    """Provide an importable stand-in for Isaac Sim within the context.

    Args:
        several_points: Compute several contact points for each pair of shapes.
    """
    isaac = MujocoPhysics(several_points=several_points)
    standin = StandIn(Contract.load(), {})
    standin.behaviour.update(Kit().behaviour(standin.make) | isaac.behaviour())
    with standin.installed():
        yield isaac


def physics_of(kit: Kit, standin: StandIn) -> MujocoPhysics:
    """Return the physics of the open stage of a stand-in for Kit; its calls are added to the stand-in."""
    isaac = MujocoPhysics()
    played = isaac.behaviour()
    open_stage = standin.behaviour["omni.usd:UsdContext.open_stage_async"]

    async def open_both(context: Any, path: str) -> tuple[bool, str]:
        opened = await open_stage(context, path)
        if opened[0]:
            isaac.stage, isaac._model = kit.usd_stage, None
        return opened

    def play(**options: Any) -> None:
        isaac.done.append("play")
        kit.timeline = "playing"

    app = "isaacsim.core.experimental.utils.impl.app:play"
    standin.behaviour.update(played | {"omni.usd:UsdContext.open_stage_async": open_both, app: play})
    return isaac
