"""Training rows of a state policy, and the inputs of its network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.trajectory import DISTURBED, SkillSegment
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.policies.perceptron import TrainingSettings
from nimbus.datagen.policies.state_policy import input_choices, state_vector
from nimbus.datagen.policies.state_training import HORIZON, Demonstrations, choose_inputs, find_learned_rows
from nimbus.datagen.policies.trained_policy import TrainedSettings
from tests.support.synthetic import make_trajectory

POSE = ("x", "y", "z", "r11", "r21", "r31", "r12", "r22", "r32")
NAMES = (
    *(f"arm.tool.{entry}" for entry in POSE),
    *(f"box.{entry}" for entry in ("present", *POSE, "width", "depth", "height")),
)
WITH_ROTATIONS, WITH_SHAPES = input_choices(1, NAMES)


def rows(turns: FloatArray) -> FloatArray:
    """Return inputs for a box with rotations (T, 3, 3) in front of a hand at rest."""
    count = len(turns)
    pose = np.concatenate([np.zeros((count, 3)), turns[:, :, 0], turns[:, :, 1]], axis=1)
    hand = np.tile([0, 0, 0.5, 1, 0, 0, 0, 1, 0], (count, 1))
    scene = np.concatenate([hand, np.ones((count, 1)), pose, np.tile([0.06, 0.03, 0.1], (count, 1))], axis=1)
    return state_vector(np.zeros((count, 1)), np.zeros((count, 1)), scene, NAMES)


def random_turns(count: int) -> FloatArray:
    wxyz = np.random.default_rng(0).normal(size=(count, 4))
    return quat_to_matrix(wxyz / np.linalg.norm(wxyz, axis=1, keepdims=True))


def test_rows_of_pushes_are_not_learned():
    parts = [(0, 30, "pick"), (30, 36, DISTURBED), (36, 40, "policy"), (40, 60, "pick")]
    segments = tuple(
        SkillSegment(start=start, stop=stop, skill=skill, target="items_0", phase="") for start, stop, skill in parts
    )
    made = replace(make_trajectory(steps=60), segments=segments)
    left_out = np.flatnonzero(~find_learned_rows(made, without="policy"))
    assert left_out.tolist() == list(range(30 - HORIZON + 1, 40))
    assert find_learned_rows(make_trajectory(steps=60)).all()


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4), st.sampled_from([(1, -1, -1), (-1, 1, -1), (-1, -1, 1)]))
def test_shape_ignores_half_turns_of_a_box(values: list[float], half_turn: tuple[int, int, int]):
    wxyz = np.array(values) + (2, 0, 0, 0)
    turn = quat_to_matrix(wxyz / np.linalg.norm(wxyz))
    one, other = rows(np.array([turn, turn * half_turn]))
    np.testing.assert_allclose(one[WITH_SHAPES], other[WITH_SHAPES], atol=1e-12)
    assert np.abs(one[WITH_ROTATIONS] - other[WITH_ROTATIONS]).max() > 0.5


@pytest.mark.parametrize(("used", "column"), [(WITH_ROTATIONS, "r21"), (WITH_SHAPES, "shape")])
def test_network_gets_what_held_out_episodes_ask_for(used: FloatArray, column: str):
    inputs = rows(random_turns(600))
    target = inputs[:, 2 + NAMES.index(f"box.{column}")] if column != "shape" else inputs[:, -9]
    names = ("a",)
    settings = TrainedSettings(
        task="t", robot="r", rate=15.0, joint_names=names, action_names=names, feature_names=NAMES, horizon=1, limit=1
    )
    data = Demonstrations(
        inputs=inputs, targets=target.reshape(-1, 1, 1), episodes=np.arange(600) // 30, settings=settings
    )
    small = TrainingSettings(steps=800, width=16, depth=1, batch=64)
    assert np.array_equal(choose_inputs(data, small), used)
    few = replace(data, episodes=data.episodes // 10)
    assert np.array_equal(choose_inputs(few, small), WITH_ROTATIONS)
