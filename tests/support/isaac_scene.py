"""A stand-in for Isaac Sim made from the contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tools.contract.kit_behaviour import Kit
from tools.contract.names import Contract
from tools.contract.rtx_behaviour import IsaacSim
from tools.contract.standin import StandIn

WIDTH, HEIGHT = 8, 6


@contextmanager
def played_isaac() -> Iterator[IsaacSim]:
    """Provide Isaac Sim within the context; observers of Kit's loop are notified of its updates."""
    isaac, kit = IsaacSim(), Kit()
    isaac.update = lambda: kit.dispatch("omni.kit.app:GLOBAL_EVENT_UPDATE")
    standin = StandIn(Contract.load(), {})
    standin.behaviour.update(kit.behaviour(standin.make) | isaac.behaviour())
    with standin.installed():
        yield isaac
