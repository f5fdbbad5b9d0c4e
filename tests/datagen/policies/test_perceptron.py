"""The perceptron: its gradients are those of its loss, and it fits a smooth function."""

from __future__ import annotations

import numpy as np
import pytest

from nimbus.datagen.policies import perceptron
from nimbus.datagen.policies.perceptron import TrainingSettings, fit, predict

SMALL = TrainingSettings(steps=400, batch=32, width=16, depth=2, rate=1e-2)


def pairs(count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs (N, 3) and targets (N, 2), which are a smooth function of the inputs."""
    inputs = np.random.default_rng(0).uniform(-1, 1, (count, 3)) * [1.0, 100.0, 0.01] + [0.0, 5.0, 0.0]
    return inputs, np.stack([np.sin(3 * inputs[:, 0]), 40.0 + inputs[:, 1] * inputs[:, 0]], axis=1)


@pytest.mark.parametrize("name", ["weight_0", "bias_1", "gain_0", "shift_1", "weight_2", "bias_2"])
def test_slopes_are_those_of_the_loss(name: str):
    rng = np.random.default_rng(1)
    weights = {key: np.asarray(value) for key, value in perceptron._draw(3, 2, SMALL, rng).items()}
    x, y, counts = rng.normal(size=(8, 3)), rng.normal(size=(8, 2)), rng.uniform(0.5, 2, (8, 1))
    _, slopes = perceptron._slopes(weights, x, y, counts)  # pyright: ignore[reportArgumentType]
    way = rng.normal(size=weights[name].shape)
    losses = []
    for sign in (1, -1):
        moved = weights | {name: weights[name] + sign * 1e-6 * way}
        losses.append(perceptron._slopes(moved, x, y, counts)[0])  # pyright: ignore[reportArgumentType]
    assert (losses[0] - losses[1]) / 2e-6 == pytest.approx(float((slopes[name] * way).sum()), rel=1e-4, abs=1e-7)


def test_a_smooth_function_is_learned_and_repeats():
    inputs, targets = pairs()
    weights = fit(inputs, targets, settings=SMALL)
    error = np.abs(predict(weights, inputs) - targets).mean(axis=0) / targets.std(axis=0)
    assert error.max() < 0.1
    again = fit(inputs, targets, settings=SMALL)
    assert all(np.array_equal(weights[name], again[name]) for name in weights)


def test_rows_without_weight_are_not_learned():
    inputs, targets = pairs()
    spoiled = np.concatenate([targets, targets + 50.0])
    counts = np.repeat([1.0, 0.0], len(targets))
    weights = fit(np.concatenate([inputs, inputs]), spoiled, settings=SMALL, row_weights=counts)
    assert np.abs(predict(weights, inputs) - targets).mean() < 0.2 * 50.0


def test_training_goes_on_from_given_weights():
    inputs, targets = pairs()
    losses: list[float] = []
    first = fit(inputs, targets, settings=SMALL)
    fit(inputs, targets, settings=SMALL, start=first, report=lambda _, loss: losses.append(loss))
    assert losses[0] < 0.15
