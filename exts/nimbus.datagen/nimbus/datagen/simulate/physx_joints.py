"""Access to joints in Isaac Sim by name, across articulations."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray

if TYPE_CHECKING:
    from isaacsim.core.experimental.prims import Articulation


class Joints:
    """Joints that are read and commanded together; separate arms are separate articulations.

    Args:
        places: Prim paths of the articulations; physics must have been started.
        names: Names of the joints, each of one of the articulations; values (J,) have this order.

    Raises:
        ValueError: A joint is in none of them.
    """

    def __init__(self, places: Sequence[str], names: Sequence[str]) -> None:
        from isaacsim.core.experimental.prims import Articulation

        self.names = tuple(names)
        self._parts: list[tuple[Articulation, NDArray[Any], NDArray[Any]]] = []
        """Each articulation, with the indices of its joints in this class's order and in PhysX's order."""
        left = set(names)
        for place in places:
            thing: Articulation = Articulation(place)
            own = [name for name in names if name in (thing.dof_names or ())]
            if not own:
                continue
            columns = np.array([names.index(name) for name in own], int)
            self._parts.append((thing, columns, np.asarray(thing.get_dof_indices(own).numpy()).ravel()))
            left.difference_update(own)
        if left:
            raise ValueError(f"joints {sorted(left)} are in none of the articulations {list(places)}")

    def positions(self) -> FloatArray:
        """Return the positions (J,) [rad, m]."""
        values = np.empty(len(self.names))
        for part, columns, dofs in self._parts:
            thing: Articulation = part
            values[columns] = thing.get_dof_positions(dof_indices=dofs).numpy().ravel()
        return values

    def velocities(self) -> FloatArray:
        """Return the velocities (J,) [rad/s, m/s]."""
        values = np.empty(len(self.names))
        for part, columns, dofs in self._parts:
            thing: Articulation = part
            values[columns] = thing.get_dof_velocities(dof_indices=dofs).numpy().ravel()
        return values

    def put(self, positions: FloatArray, velocities: FloatArray) -> None:
        """Set positions (J,) [rad, m] and velocities (J,) [rad/s, m/s] at once."""
        for part, columns, dofs in self._parts:
            thing: Articulation = part
            thing.set_dof_positions(positions[None, columns], dof_indices=dofs)
            thing.set_dof_velocities(velocities[None, columns], dof_indices=dofs)

    def command(self, positions: FloatArray, velocities: FloatArray) -> None:
        """Set the targets (J,) of the drives [rad, m] and the velocities (J,) of these targets [rad/s, m/s]."""
        for part, columns, dofs in self._parts:
            thing: Articulation = part
            thing.set_dof_position_targets(positions[None, columns], dof_indices=dofs)
            thing.set_dof_velocity_targets(velocities[None, columns], dof_indices=dofs)

    def set_friction(self, frictions: FloatArray) -> None:
        """Set the dry friction (J,) of the joints, at rest and in motion [N m, N]."""
        for part, columns, dofs in self._parts:
            thing: Articulation = part
            thing.set_dof_friction_properties(frictions[None, columns], frictions[None, columns], dof_indices=dofs)
