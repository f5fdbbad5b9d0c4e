"""A policy on states, trained on a CPU in a minute: from joints and the poses of objects to the next 16 actions.

    python docs/examples/train_state.py out/cube --out out/policy
    nimbus evaluate cube_to_goal --policy out/policy

The dataset is one of Nimbus; pictures are not needed (nimbus run --images none). It wants torch:
pip install 'nimbus-datagen[train]'.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.policies.features import SceneFeatures
from nimbus.datagen.policies.state_policy import ENTRY, ENTRY_TEXT, SETTINGS, WEIGHTS, StatePolicySettings, state_vector
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.info import read_info
from nimbus.datagen.tasks.task import parse_task
from nimbus.runner.system.threads import prepare_libraries

HORIZON = 16
WIDTH, DEPTH = 512, 3


@dataclass(frozen=True, kw_only=True)
class Demonstrations:
    """Rows of all episodes: inputs (N, D), targets (N, 16, A), and the conventions."""

    inputs: np.ndarray
    targets: np.ndarray
    settings: StatePolicySettings
    episode_count: int


def read_demonstrations(folder: Path, *, limit: int | None = None) -> Demonstrations:
    """Read the states and actions of a dataset."""
    info = read_info(folder)
    paths = sorted((folder / "episodes").glob("*.hdf5"))[:limit]
    if not paths:
        raise InputError("it holds no episode", where=str(folder), instead="run until there is one")
    prepare_libraries()
    features: SceneFeatures | None = None
    settings: StatePolicySettings | None = None
    inputs, targets, longest = [], [], 0
    for path in paths:
        with EpisodeFile(path) as episode:
            layout, trajectory = episode.layout(), episode.trajectory()
            if features is None:
                task = parse_task(episode.provenance.task_text, name=info.task)
                robot = load_assets(task).robot
                features = SceneFeatures(task, robot)
                settings = StatePolicySettings(
                    task=info.task,
                    robot=robot.name,
                    rate=trajectory.rate,
                    joint_names=trajectory.joint_names,
                    action_names=trajectory.action_names,
                    feature_names=features.names,
                    horizon=HORIZON,
                    limit=0,
                    dataset=info.task_hash,
                )
        scene = features.rows(
            layout.physical.objects, trajectory.body_names, trajectory.body_positions, trajectory.body_wxyz
        )
        inputs.append(state_vector(trajectory.joint_positions, trajectory.joint_velocities, scene, features.names))
        count = trajectory.step_count
        ahead = np.minimum(np.arange(count)[:, None] + np.arange(HORIZON), count - 1)
        targets.append(trajectory.actions[ahead])
        longest = max(longest, count)
    assert settings is not None
    settings = StatePolicySettings(**{**vars(settings), "limit": 2 * longest})
    return Demonstrations(
        inputs=np.concatenate(inputs), targets=np.concatenate(targets), settings=settings, episode_count=len(paths)
    )


def train(data: Demonstrations, *, steps: int, seed: int) -> dict[str, np.ndarray]:
    """Clone the demonstrations: L1 between chunks of actions, each signal in units of its deviation."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    x_mean, x_scale = data.inputs.mean(axis=0), np.maximum(data.inputs.std(axis=0), 1e-3)
    y_mean, y_scale = data.targets.mean(axis=(0, 1)), np.maximum(data.targets.std(axis=(0, 1)), 1e-3)
    inputs = torch.tensor((data.inputs - x_mean) / x_scale, dtype=torch.float32)
    targets = torch.tensor((data.targets - y_mean) / y_scale, dtype=torch.float32).flatten(1)
    layers: list[nn.Module] = []
    size = inputs.shape[1]
    for _ in range(DEPTH):
        layers += [nn.Linear(size, WIDTH), nn.LayerNorm(WIDTH), nn.GELU()]
        size = WIDTH
    model = nn.Sequential(*layers, nn.Linear(size, targets.shape[1]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=steps)
    for step in range(steps):
        rows = torch.randint(len(inputs), (256,))
        loss = functional.l1_loss(model(inputs[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % max(1, steps // 5) == 0 or step == steps - 1:
            sys.stdout.write(f"step {step}: loss {loss.item():.4f}\n")
    return _weights(model) | {"x_mean": x_mean, "x_scale": x_scale, "y_mean": y_mean, "y_scale": y_scale}


def _weights(model: nn.Sequential) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    layer = -1
    for part in model:
        if isinstance(part, nn.Linear):
            layer += 1
            found |= {f"weight_{layer}": part.weight.detach().numpy(), f"bias_{layer}": part.bias.detach().numpy()}
        elif isinstance(part, nn.LayerNorm):
            found |= {f"gain_{layer}": part.weight.detach().numpy(), f"shift_{layer}": part.bias.detach().numpy()}
    return found


def main() -> int:
    """Read, train, write; 2 for bad input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--episodes", type=int, help="use the first N only")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    try:
        data = read_demonstrations(args.dataset, limit=args.episodes)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{data.episode_count} episodes, {len(data.inputs)} rows, {data.inputs.shape[1]} inputs\n")
    weights = train(data, steps=args.steps, seed=args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    np.savez(args.out / WEIGHTS, allow_pickle=False, **weights)
    (args.out / SETTINGS).write_text(to_json(data.settings, indent=1) + "\n")
    (args.out / ENTRY).write_text(ENTRY_TEXT)
    sys.stdout.write(f"policy: {args.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
