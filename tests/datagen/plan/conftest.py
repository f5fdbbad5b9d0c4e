"""The Panda at its table, created for every test."""

from __future__ import annotations

import mujoco
import pytest

from nimbus.datagen.plan.ompl import OmplPlanner
from nimbus.datagen.plan.scene import PlanningScene
from tests.support import panda_table


@pytest.fixture(scope="session")
def model() -> mujoco.MjModel:
    return panda_table.table_model()


@pytest.fixture
def scene(model: mujoco.MjModel) -> PlanningScene:
    return panda_table.make_scene(model)


@pytest.fixture
def exact(model: mujoco.MjModel) -> PlanningScene:
    return panda_table.make_scene(model, margin=0.0)


@pytest.fixture
def planner() -> OmplPlanner:
    return OmplPlanner(velocity_limits=panda_table.VELOCITY, acceleration_limits=panda_table.ACCELERATION)
