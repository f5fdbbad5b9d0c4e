"""Prints the largest difference between an image policy in torch and in NumPy; run by a Python that has torch."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from nimbus.datagen.policies.image_policy import ImagePolicy
from nimbus.datagen.policies.policy import PolicyObservation
from nimbus.datagen.policies.trained_policy import TrainedSettings, write_policy


def main(folder: str, examples: str) -> None:
    """Write a policy with random weights, and query both."""
    sys.path.insert(0, examples)
    import torch  # pyright: ignore[reportMissingImports]
    from train_act import HORIZON, Actor, scaling_of, weights_of  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    cameras = {"front": (96, 96), "wrist": (64, 48)}
    model = Actor(cameras, state=9, action=8, places=3)
    random = np.random.default_rng(0)
    means, spreads = ({name: random.uniform(0.5, 1.5, size) for name, size in {"x": 9, "y": 8}.items()} for _ in "ab")
    scaling = scaling_of(means, spreads, encoders=2)
    conventions = {"joint_names": (), "action_names": (), "cameras": cameras}
    settings = TrainedSettings(task="t", robot="r", rate=15.0, horizon=HORIZON, limit=1, **conventions)
    write_policy(Path(folder), settings, weights_of(model, tuple(cameras)) | scaling, policy=ImagePolicy)
    pictures = {name: random.integers(0, 256, (h, w, 3), np.uint8) for name, (w, h) in cameras.items()}
    seen = PolicyObservation(
        step=0,
        state=random.normal(size=9),
        velocity=np.zeros(9),
        images=pictures,
        environment_state=np.zeros(0),
        instruction="",
    )
    state = torch.tensor((seen.state - means["x"]) / spreads["x"], dtype=torch.float32)[None]
    looks = [torch.tensor(picture).permute(2, 0, 1)[None].float() / 255 - 0.5 for picture in pictures.values()]
    with torch.no_grad():
        rows = model(looks, state)[0].reshape(HORIZON, 8).numpy()
    answer = ImagePolicy(Path(folder)).act(seen)
    sys.stdout.write(f"{np.abs(rows * spreads['y'] + means['y'] - answer).max()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
