"""Position of a frame as an equality constraint of inverse kinematics."""

from __future__ import annotations

import mink

from nimbus.datagen.arrays import FloatArray


class PointTask(mink.FrameTask):
    """Task with only the position of a frame, in three rows.

    mink ignores the costs of a task that is a constraint. A frame task without a cost of orientation would still add
    three rows for the orientation, and an arm with five joints cannot meet six equations.

    Args:
        frame_name: Name of the frame.
        frame_type: Its type: ``body``, ``geom`` or ``site``.
    """

    def __init__(self, frame_name: str, frame_type: str) -> None:
        super().__init__(frame_name, frame_type, position_cost=1.0, orientation_cost=0.0)

    def compute_error(self, configuration: mink.Configuration) -> FloatArray:
        """Return the error of the position (3,) in the target's frame [m]."""
        return super().compute_error(configuration)[:3]

    def compute_jacobian(self, configuration: mink.Configuration) -> FloatArray:
        """Return the Jacobian (3, J) of the error [m/rad]."""
        return super().compute_jacobian(configuration)[:3]
