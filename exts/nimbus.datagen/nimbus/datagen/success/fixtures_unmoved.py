"""Fixtures unmoved: bins and other furniture are where they were."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.files.quantities import Metres, Radians
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import Predicate


@register("predicate", "fixtures_unmoved")
class FixturesUnmoved(Predicate):
    """No fixture was pushed away or tipped."""

    tolerance: Metres = Field(0.01, gt=0, description="How far a fixture may have moved.")
    turn: Radians = Field(0.1, gt=0, description="How far it may have turned or tipped.")

    def failure(self, world: Workcell) -> Outcome | None:
        """The first fixture that moved."""
        for name in world.stage.fixtures:
            change = np.linalg.inv(world.start_poses[name]) @ world.pose(name)
            distance = float(np.linalg.norm(change[:3, 3]))
            tilt = float(np.arccos(np.clip((np.trace(change[:3, :3]) - 1) / 2, -1, 1)))
            if distance > self.tolerance or tilt > self.turn:
                detail = f"{name} moved {distance * 100:.1f} cm and turned {tilt:.2f} rad"
                return Outcome(success=False, reason=Reason.FIXTURE_MOVED, detail=detail)
        return None
