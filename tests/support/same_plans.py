"""Comparison of attempts by all hashed content."""

from __future__ import annotations

import hashlib

import numpy as np

from nimbus.datagen.stages import Planned


def content_of(made: Planned) -> str:
    """Return a digest of an attempt: motion, bodies, contacts, segments and outcome, without times."""
    trajectory = made.trajectory
    arrays = (
        trajectory.joint_positions,
        trajectory.joint_velocities,
        trajectory.actions,
        np.zeros(0) if trajectory.executed_actions is None else trajectory.executed_actions,
        trajectory.body_positions,
        trajectory.body_wxyz,
        trajectory.start.joint_positions,
        *trajectory.contacts.values(),
    )
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays))
    digest.update(repr((trajectory.segments, trajectory.outcome, made.final, made.layouts[0].key.id)).encode())
    return digest.hexdigest()
