"""OMPL's planners over the scene."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.plan.ompl import sample_path
from nimbus.datagen.plan.path import path_is_free
from tests.support.panda_table import HOME, make_scene, table_model

SCENE = make_scene(table_model(cubby=True))
INTO_THE_CUBBY = np.array([2.464, -0.802, -1.834, -2.327, -0.194, 2.953, -0.227])
ACROSS = HOME - [1.2, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("planner", ["RRTConnect", "LBKPIECE1"])
def test_a_path_is_free_ends_at_a_goal_and_follows_from_its_seed(planner: str) -> None:
    assert not SCENE.in_collision(INTO_THE_CUBBY) and not SCENE.in_collision(ACROSS)

    def search(seed: int) -> np.ndarray:
        path = sample_path(SCENE, ACROSS, [INTO_THE_CUBBY], planner=planner, seed=seed, max_checks=60_000)
        assert path is not None
        return path

    path = search(1)
    np.testing.assert_array_equal(path[[0, -1]], [ACROSS, INTO_THE_CUBBY])
    assert path_is_free(path, lambda q: not SCENE.touches(q), step=0.01)
    assert search(1).tobytes() == path.tobytes() != search(2).tobytes()


def test_a_goal_in_collision_is_refused() -> None:
    with pytest.raises(ValueError, match="must be free"):
        sample_path(SCENE, HOME, [np.zeros(7)], planner="RRTConnect", seed=1, max_checks=50)


def test_the_limit_of_checks_is_kept() -> None:
    before = SCENE.check_count
    assert sample_path(SCENE, ACROSS, [INTO_THE_CUBBY], planner="RRTConnect", seed=1, max_checks=1) is None
    # The check of an edge is always completed once it has begun.
    assert SCENE.check_count - before < 100
