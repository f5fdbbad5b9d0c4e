"""Multilayer perceptron in NumPy: its output, and its training by behavior cloning.

Each hidden layer is a linear map, a layer norm and a GELU. Weights are arrays by name: ``weight_i`` (O, I) and
``bias_i`` (O,) of all layers, ``gain_i`` and ``shift_i`` (O,) of hidden layers, and ``x_mean``, ``x_scale``,
``y_mean``, ``y_scale``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray

Weights = Mapping[str, NDArray[np.floating]]
Floats = NDArray[np.float32]

_SMALLEST_SCALE = 1e-3
"""Smallest scale of an input or output, in its unit, so that nearly constant values are not amplified."""
_EPSILON = 1e-5
_SLOPE, _CUBIC = math.sqrt(2.0 / math.pi), 0.044715


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Size of the network and schedule of the training."""

    steps: int = 5000
    batch: int = 256
    width: int = 512
    depth: int = 3
    """Number of hidden layers."""
    rate: float = 1e-3
    """Largest learning rate; the rate rises to it over the first 30 % of the steps and then falls to zero."""
    decay: float = 1e-4
    """Weight decay of AdamW; it is multiplied by the learning rate in each step."""
    seed: int = 0


def predict(weights: Weights, inputs: FloatArray) -> FloatArray:
    """Return the output of the network.

    Args:
        weights: As :func:`fit` returns them.
        inputs: (N, D)

    Returns:
        (N, O)
    """
    x = (inputs - weights["x_mean"]) / weights["x_scale"]
    for layer in range(_depth(weights)):
        x, _ = _hidden(weights, layer, x)
    last = _depth(weights)
    return (x @ weights[f"weight_{last}"].T + weights[f"bias_{last}"]) * weights["y_scale"] + weights["y_mean"]


def fit(
    inputs: FloatArray,
    targets: FloatArray,
    *,
    settings: TrainingSettings,
    row_weights: FloatArray | None = None,
    used: NDArray[np.bool_] | None = None,
    start: Weights | None = None,
    report: Callable[[int, float], None] | None = None,
) -> dict[str, Floats]:
    """Fit the network to pairs by the mean absolute error, in units of the standard deviation of each output.

    Args:
        inputs: (N, D)
        targets: (N, O)
        settings: Size and schedule.
        row_weights: (N,) weight of each pair; equal by default.
        used: (D,) True for the inputs that the network uses, all by default; the others get an infinite scale.
        start: Initial weights, whose scaling is kept.
        report: Called with the step and its loss, about 20 times.

    Returns:
        The weights.
    """
    rng = np.random.default_rng(settings.seed)
    scaling = {name: np.asarray(start[name]) for name in _SCALING} if start else _measure(inputs, targets)
    if used is not None:
        scaling["x_scale"] = np.where(used, scaling["x_scale"], np.inf)
    x = ((inputs - scaling["x_mean"]) / scaling["x_scale"]).astype(np.float32)
    y = ((targets - scaling["y_mean"]) / scaling["y_scale"]).astype(np.float32)
    counts = np.ones(len(x), np.float32) if row_weights is None else (row_weights / row_weights.mean()).astype("f4")
    drawn = _draw(x.shape[1], y.shape[1], settings, rng)
    weights = {name: np.array(start[name] if start else drawn[name], np.float32) for name in drawn}
    optimizer = _AdamW(weights, settings)
    for step in range(settings.steps):
        rows = rng.integers(len(x), size=settings.batch)
        loss, slopes = _slopes(weights, x[rows], y[rows], counts[rows, None])
        optimizer.step(slopes, step)
        if report and (step % max(1, settings.steps // 20) == 0 or step == settings.steps - 1):
            report(step, loss)
    return weights | {name: value.astype(np.float32) for name, value in scaling.items()}


_SCALING = ("x_mean", "x_scale", "y_mean", "y_scale")


def _measure(inputs: FloatArray, targets: FloatArray) -> dict[str, FloatArray]:
    found = {}
    for name, values in (("x", inputs), ("y", targets)):
        found[f"{name}_mean"] = values.mean(axis=0)
        found[f"{name}_scale"] = np.maximum(values.std(axis=0), _SMALLEST_SCALE)
    return found


def _depth(weights: Weights) -> int:
    return sum(name.startswith("gain_") for name in weights)


def _draw(inputs: int, outputs: int, settings: TrainingSettings, rng: np.random.Generator) -> dict[str, FloatArray]:
    sizes = [inputs, *[settings.width] * settings.depth, outputs]
    found: dict[str, FloatArray] = {}
    for layer, (size, out) in enumerate(zip(sizes, sizes[1:], strict=False)):
        bound = 1.0 / np.sqrt(size)
        found[f"weight_{layer}"] = rng.uniform(-bound, bound, (out, size))
        found[f"bias_{layer}"] = rng.uniform(-bound, bound, out)
        if layer < settings.depth:
            found[f"gain_{layer}"], found[f"shift_{layer}"] = np.ones(out), np.zeros(out)
    return found


def _hidden(weights: Weights, layer: int, x: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the output (N, O) of a hidden layer, and the values that its derivative needs."""
    normed = x @ weights[f"weight_{layer}"].T
    normed += weights[f"bias_{layer}"]
    normed -= normed.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", normed, normed)[:, None] / normed.shape[1]
    deviation = np.sqrt(variance + _EPSILON)
    normed *= 1.0 / deviation
    scaled = normed * weights[f"gain_{layer}"]
    scaled += weights[f"shift_{layer}"]
    squared = scaled * scaled
    bent = _CUBIC * squared
    bent += 1.0
    bent *= scaled
    bent *= _SLOPE
    np.tanh(bent, out=bent)
    output = bent + 1.0
    output *= scaled
    output *= 0.5
    return output, (x, deviation, normed, scaled, squared, bent)


def _slopes(weights: dict[str, Floats], x: Floats, y: Floats, counts: Floats) -> tuple[float, dict[str, Floats]]:
    """Return the loss of a batch, and its derivatives with respect to the weights."""
    depth, kept, slopes = _depth(weights), [], {}
    for layer in range(depth):
        x, needed = _hidden(weights, layer, x)
        kept.append(needed)
    away = x @ weights[f"weight_{depth}"].T + weights[f"bias_{depth}"] - y
    loss = float((counts * np.abs(away)).mean())
    back = counts * np.sign(away) / away.size
    for layer in range(depth, -1, -1):
        if layer < depth:
            x, deviation, normed, scaled, squared, bent = kept[layer]
            back *= _gelu_slope(scaled, squared, bent)
            slopes[f"gain_{layer}"], slopes[f"shift_{layer}"] = np.einsum("ij,ij->j", back, normed), back.sum(axis=0)
            back *= weights[f"gain_{layer}"]
            along = np.einsum("ij,ij->i", back, normed)[:, None] / normed.shape[1]
            back -= back.mean(axis=1, keepdims=True)
            normed *= along
            back -= normed
            back *= 1.0 / deviation
        slopes[f"weight_{layer}"], slopes[f"bias_{layer}"] = back.T @ x, back.sum(axis=0)
        if layer:
            back = back @ weights[f"weight_{layer}"]
    return loss, slopes


def _gelu_slope(scaled: Floats, squared: Floats, bent: Floats) -> Floats:
    """Return the derivative of the GELU from its input, the input's square and the tanh; overwrites the last two."""
    squared *= 3.0 * _CUBIC * _SLOPE
    squared += _SLOPE
    squared *= scaled  # the derivative of the tanh's argument, times the input
    slope = 1.0 + bent
    bent *= bent
    np.subtract(1.0, bent, out=bent)
    bent *= squared
    slope += bent
    slope *= 0.5
    return slope


class _AdamW:
    """Adam with decoupled weight decay, and a learning rate that rises and falls once."""

    def __init__(self, weights: dict[str, Floats], settings: TrainingSettings) -> None:
        self._weights, self._settings = weights, settings
        self._mean = {name: np.zeros_like(value) for name, value in weights.items()}
        self._square = {name: np.zeros_like(value) for name, value in weights.items()}

    def step(self, slopes: dict[str, Floats], step: int) -> None:
        rate = np.float32(self._settings.rate * _course(step / max(1, self._settings.steps)))
        correct = np.float32(np.sqrt(1.0 - 0.999 ** (step + 1)) / (1.0 - 0.9 ** (step + 1)))
        for name, slope in slopes.items():
            mean, square, value = self._mean[name], self._square[name], self._weights[name]
            mean *= np.float32(0.9)
            square *= np.float32(0.999)
            square += np.float32(0.001) * slope * slope
            slope *= np.float32(0.1)
            mean += slope
            np.sqrt(square, out=slope)
            slope += np.float32(1e-8)
            np.divide(mean, slope, out=slope)
            slope *= rate * correct
            value *= np.float32(1.0 - rate * self._settings.decay)
            value -= slope


def _course(done: float) -> float:
    """Return the learning rate relative to its maximum, by the completed fraction of the steps."""
    if done < 0.3:
        return 0.04 + 0.96 * 0.5 * (1.0 - np.cos(np.pi * done / 0.3))
    return 0.5 * (1.0 + np.cos(np.pi * (done - 0.3) / 0.7))
