"""An Isaac Sim that is played by the contract, and a motion for it to show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from contract.kit_behaviour import Kit
from contract.names import Contract
from contract.rtx_behaviour import IsaacSim
from contract.standin import StandIn
from render_scene import states

from nimbus.datagen.trajectory import Outcome, StartState, Trajectory

WIDTH, HEIGHT = 8, 6


@contextmanager
def played_isaac() -> Iterator[IsaacSim]:
    """Isaac Sim, for as long as this lasts; its updates are told to whoever observes Kit's loop."""
    isaac, kit = IsaacSim(), Kit()
    isaac.update = lambda: kit.dispatch("omni.kit.app:GLOBAL_EVENT_UPDATE")
    standin = StandIn(Contract.load(), {})
    standin.behaviour.update(kit.behaviour(standin.make) | isaac.behaviour())
    with standin.installed():
        yield isaac


def trajectory() -> Trajectory:
    """A small motion of the arm."""
    names, positions, wxyz = states()
    nothing = np.zeros((len(positions), 0))
    return Trajectory(
        rate=15.0,
        time=np.arange(len(positions)) / 15.0,
        joint_names=(),
        joint_positions=nothing,
        joint_velocities=nothing,
        action_names=(),
        actions=nothing,
        body_names=names,
        body_positions=positions,
        body_wxyz=wxyz,
        segments=(),
        outcome=Outcome(success=True),
        start=StartState(joint_positions=nothing, joint_velocities=nothing),
    )
