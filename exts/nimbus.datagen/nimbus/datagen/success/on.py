"""On: an object rests on something."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.execute.contact_queries import WORLD, is_resting_on
from nimbus.datagen.execute.workcell import Workcell
from nimbus.datagen.registry import register
from nimbus.datagen.tasks.statements import ObjectsReference, Predicate, SupportReference, each

_HEIGHT = 0.005
"""[m] So near to the surface of a region its lowest point must be."""


@register("predicate", "on")
class On(Predicate):
    """The objects touch the support from above; a region: its surface, their middle within its edges."""

    main = "object"
    object: ObjectsReference = Field(description="What must rest on it; a group means each of its objects.")
    support: SupportReference = Field(description="The object, fixture or region that it must rest on.")

    def failure(self, world: Workcell) -> Outcome | None:
        """The first object that lies elsewhere."""
        for name in each(self.object):
            why = self._off_region(world, name) if self.support in world.regions else self._off_thing(world, name)
            if why:
                reason = Reason.ON_FLOOR if world.has_fallen(name) else Reason.NOT_ON
                return Outcome(success=False, reason=reason, detail=why)
        return None

    def _off_thing(self, world: Workcell, name: str) -> str:
        supports = is_resting_on(world, name)
        return "" if self.support in supports else f"{name} rests on {_listed(supports)}, not on {self.support}"

    def _off_region(self, world: Workcell, name: str) -> str:
        region = world.regions[self.support]
        low, high = world.bounds(name)
        off = np.abs((low + high)[:2] / 2 - region.center) - np.array(region.size) / 2
        height = low[2] - world.stage.surfaces[region.on].upper[2]
        if off.max() > 0 or abs(height) > _HEIGHT:
            return (
                f"{name} is {max(0.0, float(off.max())) * 100:.1f} cm off {self.support}, {height * 100:.1f} cm above"
            )
        supports = is_resting_on(world, name)
        return "" if WORLD in supports else f"{name} rests on {_listed(supports)}, not on {region.on}"


def _listed(supports: set[str]) -> str:
    return ", ".join(sorted(supports)) or "nothing"
