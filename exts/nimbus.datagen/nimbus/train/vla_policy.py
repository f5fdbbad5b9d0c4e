"""A trained network as a policy for ``nimbus evaluate``; requires torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.torch_library import torch
from nimbus.datagen.policies.policy import Needs, PolicyEpisode, PolicyObservation
from nimbus.datagen.policies.trained_policy import TrainedPolicy, TrainedSettings
from nimbus.datagen.random_streams import generator
from nimbus.train.checkpoint import load_tensors, unequal_shapes
from nimbus.train.network import VlaNetwork, VlaSizes
from nimbus.train.sequences import pad_tokens

SAFE_WEIGHTS = "weights.safetensors"


class VlaPolicy(TrainedPolicy):
    """Policy that runs a trained network on one thread; the initial noise depends on the episode's seed.

    Args:
        folder: Folder with the weights and the settings.

    Raises:
        InputError: The weights are missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, weights=SAFE_WEIGHTS)
        torch.set_num_threads(1)
        self._network = VlaNetwork(sizes_of(self.settings))
        begin_with(self._network, self.path)
        self._network.eval()
        self.needs = Needs(cameras=tuple(self.settings.cameras))
        self._seed = 0

    def reset(self, episode: PolicyEpisode) -> None:
        """Seed the noise with the episode's seed."""
        self._seed = episode.seed

    def act(self, observation: PolicyObservation) -> NDArray[np.floating]:
        """Compute the next actions (K, A) [rad or m]."""
        shape = self.settings.horizon, len(self.settings.action_names)
        pictures = np.stack([observation.images[name] for name in self.settings.cameras])
        batch = {
            "pictures": pictures,
            "text": pad_tokens([observation.instruction])[0],
            "state": observation.state.astype(np.float32),
            "noise": generator(self._seed, "flow", observation.step).normal(size=shape).astype(np.float32),
        }
        return self._network.act({name: torch.tensor(value)[None] for name, value in batch.items()})[0].numpy()


def sizes_of(settings: TrainedSettings) -> VlaSizes:
    """Return the sizes of a network for the given settings.

    Raises:
        InputError: The cameras have images of several sizes.
    """
    found = set(settings.cameras.values())
    if len(found) != 1:
        what = f"the cameras' images differ in size: {sorted(found)}"
        raise InputError(what, where="cameras", instead="give all cameras of the task one size")
    ((width, height),) = found
    options = {name: int(value) for name, value in settings.options.items()}
    own = {"cameras": len(settings.cameras), "height": height, "image_width": width, "horizon": settings.horizon}
    return VlaSizes(**options | own | {"state": len(settings.joint_names), "action": len(settings.action_names)})


def begin_with(network: VlaNetwork, path: Path) -> None:
    """Load all weights from a file.

    Raises:
        InputError: The file is damaged, or belongs to another network.
    """
    tensors, mine = load_tensors(path), network.state_dict()
    if names := unequal_shapes(mine, tensors):
        what = f"the weights belong to another network: {', '.join(names[:3])} differ"
        raise InputError(what, where=str(path), instead="give weights that this recipe wrote for these cameras")
    network.load_state_dict(tensors)
