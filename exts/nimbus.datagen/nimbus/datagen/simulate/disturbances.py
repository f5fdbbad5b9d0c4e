"""Disturbance in physics: a force on a body for some time, during which the body may be slippery."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nimbus.datagen.episode.layout import Disturbance
    from nimbus.datagen.geometry.mujoco_library import mujoco

_SLIPPERY_PRIORITY = 1
"""Priority of the geoms of a slippery body, with which their friction applies instead of the larger one of both
surfaces.
"""


class DisturbanceForce:
    """Force of a disturbance on a model while the disturbance lasts.

    Args:
        model: Model of the world with the body; the body's friction is changed while it is slippery.
        disturbance: The disturbance.
        step_rate: Rate of physics [Hz].
    """

    def __init__(self, model: mujoco.MjModel, disturbance: Disturbance, *, step_rate: float) -> None:
        self._model, self._disturbance = model, disturbance
        self._body = model.body(disturbance.body).id
        # Times are counted in steps of physics, so that a replay applies the force in exactly the same steps.
        self._first = round(disturbance.time * step_rate)
        self._stop = round((disturbance.time + disturbance.duration) * step_rate)
        self._geoms = np.flatnonzero(model.body_rootid[model.geom_bodyid] == model.body_rootid[self._body])
        self._friction, self._priority = model.geom_friction.copy(), model.geom_priority.copy()

    def apply(self, data: mujoco.MjData, step: int) -> None:
        """Set force and friction for a step of physics, counted from the start of the recording."""
        is_on = self._first <= step < self._stop
        data.xfrc_applied[self._body, :3] = self._disturbance.force if is_on else 0.0
        if self._disturbance.is_slippery:
            self._model.geom_friction[self._geoms] = 0.0 if is_on else self._friction[self._geoms]
            self._model.geom_priority[self._geoms] = _SLIPPERY_PRIORITY if is_on else self._priority[self._geoms]
