"""Small image policy in NumPy: computes a chunk of actions from the joints and three convolutions per camera.

``docs/examples/train_act.py`` trains one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.policies.perceptron import predict
from nimbus.datagen.policies.policy import Needs, PolicyObservation
from nimbus.datagen.policies.trained_policy import TrainedPolicy, read_weights

CONVOLUTIONS = ((24, 6, 4), (32, 4, 2), (32, 3, 1))
"""Channels, kernel width [px] and stride [px] of each convolution; all are padded by one pixel."""


class ImagePolicy(TrainedPolicy):
    """Policy that runs a trained network on images.

    Args:
        folder: Folder with weights and settings.

    Raises:
        InputError: Files are missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._weights = read_weights(self.path)
        self.needs = Needs(cameras=tuple(self.settings.cameras))

    def act(self, observation: PolicyObservation) -> NDArray[np.floating]:
        """Compute the next actions (K, A) [rad or m]."""
        weights = self._weights
        features = [
            encode_picture(observation.images[name], _below(weights, f"{name}/")) for name in self.settings.cameras
        ]
        return predict(weights, np.concatenate([*features, observation.state])[None]).reshape(self.settings.horizon, -1)


def encode_picture(picture: NDArray[np.uint8], weights: Mapping[str, FloatArray]) -> FloatArray:
    """Run the network of one camera.

    Args:
        picture: (H, W, 3)
        weights: ``kernel_i`` (O, I, k, k) and ``offset_i`` (O,) of the convolutions, ``weight_0`` and ``bias_0`` of
            the layer after them.

    Returns:
        (F,) features.
    """
    x = picture.transpose(2, 0, 1) / 255.0 - 0.5
    for layer, (_, width, stride) in enumerate(CONVOLUTIONS):
        x = np.pad(x, ((0, 0), (1, 1), (1, 1)))
        windows = sliding_window_view(x, (width, width), axis=(1, 2))[:, ::stride, ::stride]
        x = np.tensordot(weights[f"kernel_{layer}"], windows, axes=([1, 2, 3], [0, 3, 4]))
        x = np.maximum(x + weights[f"offset_{layer}"][:, None, None], 0.0)
    return np.maximum(weights["weight_0"] @ x.ravel() + weights["bias_0"], 0.0)


def _below(weights: Mapping[str, FloatArray], prefix: str) -> dict[str, FloatArray]:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
