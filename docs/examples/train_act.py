"""An image-based policy, trained on a CPU in minutes; like ACT, it returns chunks of 16 actions.

    nimbus run --task docs/examples/cube_to_goal.yaml --episodes 200 --out out/cube
    python docs/examples/train_act.py out/cube --out out/policy
    nimbus evaluate docs/examples/cube_to_goal.yaml --policy out/policy

The dataset is a Nimbus dataset with small images, which are all kept in memory. Training needs torch: in the
checkout, type pip install -e '.[train]' -c constraints.txt. The trained policy runs in NumPy.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nimbus.datagen.datasets.export.source import open_source
from nimbus.datagen.datasets.training.frames import ACTION, STATE
from nimbus.datagen.datasets.training.native import StoredFrames
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.torch_library import torch  # runs nothing of the current folder
from nimbus.datagen.policies.image_policy import CONVOLUTIONS, ImagePolicy
from nimbus.datagen.policies.trained_policy import TrainedSettings, settings_of, write_policy
from nimbus.datagen.store.episode_file.read import EpisodeFile

HORIZON = 16
FEATURE_COUNT, WIDTH = 128, 384
SHIFT = 4
"""Largest shift of images for augmentation [px]; all images of a batch have the same shift."""


@dataclass(frozen=True, kw_only=True)
class PictureRows:
    """Rows of all episodes, and their conventions."""

    pictures: dict[str, torch.Tensor]
    """(N, 3, H, W) uint8 by camera."""
    states: np.ndarray
    """(N, J)"""
    targets: np.ndarray
    """(N, 16, A)"""
    places: np.ndarray
    """(N, 3 M) positions of the objects that are in every episode [m]; the encoders learn to predict them."""
    settings: TrainedSettings
    episode_count: int


def read_rows(folder: Path, *, limit: int | None = None) -> PictureRows:
    """Read images, joints, actions and object positions of a dataset."""
    settings_of(folder, horizon=HORIZON, longest=0)
    items = open_source(folder).stored[:limit]
    frames = StoredFrames(folder)
    common = set.intersection(*(_object_names(item.path) for item in items))
    states, targets, places, pictures = [], [], [], {name: [] for name in frames.cameras}
    for number, item in enumerate(items):
        signals, count = frames.signals(number), item.step_count
        ahead = np.minimum(np.arange(count)[:, None] + np.arange(HORIZON), count - 1)
        states.append(signals[STATE])
        targets.append(signals[ACTION][ahead])
        with EpisodeFile(item.path) as episode:
            trajectory = episode.trajectory()
        bodies = [trajectory.body_names.index(name) for name in sorted(common)]
        places.append(trajectory.body_positions[:, bodies].reshape(count, -1))
        for name, rows in pictures.items():
            rows.append(torch.tensor(frames.images(number, name, 0, count)).permute(0, 3, 1, 2).contiguous())
    frames.close()
    return PictureRows(
        pictures={name: torch.cat(rows) for name, rows in pictures.items()},
        states=np.concatenate(states),
        targets=np.concatenate(targets),
        places=np.concatenate(places),
        settings=settings_of(folder, horizon=HORIZON, longest=max(item.step_count for item in items)),
        episode_count=len(items),
    )


def _object_names(path: Path) -> set[str]:
    with EpisodeFile(path) as episode:
        return {one.name for one in episode.layout().physical.objects}


class Actor(torch.nn.Module):
    """An encoder per camera, and a perceptron from their features and the joints to a chunk of actions."""

    def __init__(self, cameras: dict[str, tuple[int, int]], *, state: int, action: int, places: int) -> None:
        super().__init__()
        self.encoders = torch.nn.ModuleList(_make_encoder(*size) for size in cameras.values())
        features = FEATURE_COUNT * len(self.encoders)
        layers: list[torch.nn.Module] = []
        for size in (features + state, WIDTH):
            layers += [torch.nn.Linear(size, WIDTH), torch.nn.LayerNorm(WIDTH), torch.nn.GELU(approximate="tanh")]
        self.body = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, HORIZON * action))
        self.places = torch.nn.Linear(features, places)

    def forward(self, pictures: list[torch.Tensor], state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute actions (B, 16 A) and positions (B, 3 M) from joints and images (B, 3, H, W) centered at 0."""
        features = torch.cat(
            [encoder(picture) for encoder, picture in zip(self.encoders, pictures, strict=True)], dim=1
        )
        return self.body(torch.cat([features, state], dim=1)), self.places(features)


def _make_encoder(width: int, height: int) -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    before = 3
    for channels, kernel, stride in CONVOLUTIONS:
        layers += [torch.nn.Conv2d(before, channels, kernel, stride, 1), torch.nn.ReLU()]
        before, (width, height) = channels, ((size + 2 - kernel) // stride + 1 for size in (width, height))
    return torch.nn.Sequential(
        *layers, torch.nn.Flatten(), torch.nn.Linear(before * width * height, FEATURE_COUNT), torch.nn.ReLU()
    )


def train(data: PictureRows, *, steps: int, batch: int, seed: int) -> dict[str, np.ndarray]:
    """Clone the demonstrations: L1 between chunks of actions, and between true and predicted positions of objects."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    scales = {"x": (data.states, 0), "y": (data.targets, (0, 1)), "place": (data.places, 0)}
    means = {name: rows.mean(axis=axis) for name, (rows, axis) in scales.items()}
    spreads = {name: np.maximum(rows.std(axis=axis), 1e-3) for name, (rows, axis) in scales.items()}
    states, targets, places = (
        torch.tensor((rows - means[name]) / spreads[name], dtype=torch.float32) for name, (rows, _) in scales.items()
    )
    targets = targets.flatten(1)
    model = Actor(data.settings.cameras, state=states.shape[1], action=data.targets.shape[2], places=places.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps)
    begin = time.process_time()
    for step in range(steps):
        rows = torch.randint(len(states), (batch,))
        move = torch.randint(0, 2 * SHIFT + 1, (2,)).tolist()
        pictures = [_varied(data.pictures[name][rows], *move) for name in data.settings.cameras]
        actions, positions = model(pictures, states[rows] + 0.02 * torch.randn(batch, states.shape[1]))
        loss = torch.nn.functional.l1_loss(actions, targets[rows])
        total = loss + torch.nn.functional.l1_loss(positions, places[rows]) if places.shape[1] else loss
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        schedule.step()
        if step % max(1, steps // 10) == 0 or step == steps - 1:
            spent = time.process_time() - begin
            sys.stdout.write(
                f"step {step}: loss {loss.item():.4f}, with places {total.item():.4f}, {spent:.0f} s CPU\n"
            )
            sys.stdout.flush()
    return weights_of(model, tuple(data.settings.cameras)) | scaling_of(means, spreads, encoders=len(model.encoders))


def _varied(pictures: torch.Tensor, left: int, top: int) -> torch.Tensor:
    """Shift a batch of images, and make each lighter or darker."""
    height, width = pictures.shape[2:]
    moved = torch.nn.functional.pad(pictures.float() / 255 - 0.5, (SHIFT,) * 4, mode="replicate")
    return moved[:, :, top : top + height, left : left + width] * (0.85 + 0.3 * torch.rand(len(pictures), 1, 1, 1))


def scaling_of(means: dict[str, np.ndarray], spreads: dict[str, np.ndarray], *, encoders: int) -> dict[str, np.ndarray]:
    """Return the scaling of the perceptron's inputs (image features, then joints) and of its outputs."""
    features = FEATURE_COUNT * encoders
    return {
        "x_mean": np.concatenate([np.zeros(features), means["x"]]),
        "x_scale": np.concatenate([np.ones(features), spreads["x"]]),
        "y_mean": np.tile(means["y"], HORIZON),
        "y_scale": np.tile(spreads["y"], HORIZON),
    }


def weights_of(model: Actor, cameras: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Name the weights as :class:`ImagePolicy` does."""
    found = _of_layers(model.body)
    for name, encoder in zip(cameras, model.encoders, strict=True):
        found |= {f"{name}/{key}": value for key, value in _of_layers(encoder).items()}
    return found


def _of_layers(layers: torch.nn.Module) -> dict[str, np.ndarray]:
    kinds = {
        torch.nn.Conv2d: ("kernel", "offset"),
        torch.nn.Linear: ("weight", "bias"),
        torch.nn.LayerNorm: ("gain", "shift"),
    }
    found: dict[str, np.ndarray] = {}
    counts = dict.fromkeys(kinds, 0)
    for part in layers.children():
        if (names := kinds.get(type(part))) is None:
            continue
        for name, value in zip(names, (part.weight, part.bias), strict=True):
            found[f"{name}_{counts[type(part)]}"] = value.detach().numpy()
        counts[type(part)] += 1
    return found


def main() -> int:
    """Read, train, write; return 2 for bad input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--episodes", type=int, help="use only the first N episodes")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    try:
        data = read_rows(args.dataset, limit=args.episodes)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{data.episode_count} episodes, {len(data.states)} rows\n")
    weights = train(data, steps=args.steps, batch=args.batch, seed=args.seed)
    write_policy(args.out.resolve(), data.settings, weights, policy=ImagePolicy)
    sys.stdout.write(f"policy: {args.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
