"""Hints for the operator, in terms of the keys."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from nimbus.datagen.success.placement import On
from nimbus.datagen.tasks.steps import Step
from nimbus.datagen.teleoperate.operator_hints import way_to_region


def hint_at(x: float, y: float) -> str:
    """Return the hint for a cube at a place; its goal is 20 cm wide around (0.5, 0.0) [m]."""
    bounds = np.array([x - 0.02, y - 0.02, 0.0]), np.array([x + 0.02, y + 0.02, 0.04])
    region = SimpleNamespace(center=(0.5, 0.0), size=(0.2, 0.2), on="table")
    scene = SimpleNamespace(regions={"goal": region}, bounds=lambda _: bounds)
    condition = On(object="cube_0", support="goal")
    step = Step(name="on", statement=condition, keys=(), kind="predicate")
    environment: Any = SimpleNamespace(
        scene=scene,
        task=SimpleNamespace(success=(step,)),
        resolve=lambda one: one.model_copy(update={"object": ("cube_0",)}),
    )
    return way_to_region(environment)


def test_way_to_the_goal_names_axes_and_keys():
    assert hint_at(0.55, -0.139) == "move cube_0 3.9 cm toward +y (A)"
    assert hint_at(0.62, 0.15) == "move cube_0 2.0 cm toward -x (S) and 5.0 cm toward -y (D)"
    assert hint_at(0.55, 0.05) == ""
