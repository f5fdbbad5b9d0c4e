"""A small policy in the manner of ACT, trained on CPU: from two pictures and the joints to the next 16 actions.

    python docs/examples/train_act.py out/sort_trash --steps 200 --out out/policy

The dataset is one of Nimbus, its shards, or its LeRobot v3.0 export. A run into the same --out goes on where the last
one stopped, also in the middle of an epoch. It wants torch: pip install 'nimbus-datagen[train]'.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from nimbus.datagen.datasets.training.frames import ACTION, IMAGES, STATE
from nimbus.datagen.datasets.training.reader import Reader, Sample, collate
from nimbus.datagen.datasets.training.samples import Samples

HORIZON = 16


class Act(nn.Module):
    """A transformer that reads the pictures' patches and the state, and answers one query for each action."""

    def __init__(self, *, state: int, action: int, width: int = 64) -> None:
        super().__init__()
        sizes = (3, 16, 32, width)
        layers = [nn.Conv2d(a, b, 4, stride=4 if a == 3 else 2, padding=1) for a, b in pairwise(sizes)]
        self.eye = nn.Sequential(
            *(part for layer in layers for part in (layer, nn.ReLU())), nn.AdaptiveAvgPool2d((4, 5))
        )
        self.state = nn.Linear(state, width)
        self.place = nn.Parameter(0.02 * torch.randn(64, width))
        self.queries = nn.Parameter(0.02 * torch.randn(HORIZON, width))
        self.transformer = nn.Transformer(width, 4, 2, 2, 2 * width, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, action)

    def forward(self, pictures: list[torch.Tensor], state: torch.Tensor) -> torch.Tensor:
        """(B, 16, A) actions from (B, 3, H, W) pictures in [0, 1] and a (B, D) state, both normalized."""
        seen = [self.eye(picture - 0.5).flatten(2).transpose(1, 2) for picture in pictures]
        tokens = torch.cat([self.state(state)[:, None], *seen], dim=1)
        queries = self.queries.expand(len(state), -1, -1)
        return self.head(self.transformer(tokens + self.place[: tokens.shape[1]], queries))


class Scale:
    """Mean and deviation of a signal over all episodes; an entry that never moves stays as it is."""

    def __init__(self, reader: Reader, name: str) -> None:
        rows = np.concatenate([reader.frames.signals(row)[name] for row in range(len(reader.frames.lengths))])
        deviation = rows.std(axis=0)
        self.mean = torch.tensor(rows.mean(axis=0))
        self.deviation = torch.tensor(np.where(deviation > 1e-4, deviation, 1))

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        """Values with mean 0 and deviation 1."""
        return (values - self.mean) / self.deviation


def batches(samples: Samples, size: int) -> Iterator[dict[str, Any]]:
    """Batches without end, one epoch after the other."""
    waiting: list[Sample] = []
    while True:
        for sample in samples:
            waiting.append(sample)
            if len(waiting) == size:
                batch = collate(waiting)
                yield {
                    name: value if isinstance(value, list) else torch.as_tensor(value) for name, value in batch.items()
                }
                waiting.clear()


def loss_of(model: Act, batch: dict[str, Any], cameras: tuple[str, ...], scales: dict[str, Scale]) -> torch.Tensor:
    """Mean absolute error of the actions that are not padding."""
    pictures = [batch[f"{IMAGES}{name}"].permute(0, 3, 1, 2).float() / 255 for name in cameras]
    found = model(pictures, scales[STATE](batch[STATE]))
    error = functional.l1_loss(found, scales[ACTION](batch[ACTION]), reduction="none")
    there = ~batch[f"{ACTION}_is_pad"]
    return (error.mean(-1) * there).sum() / there.sum()


def save(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, told: dict[str, Any]) -> None:
    """Plain arrays and JSON; the second file says that the first is whole."""
    arrays = {f"model/{name}": value.numpy() for name, value in model.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        arrays |= {f"adam/{number}/{name}": np.asarray(value) for name, value in state.items()}
    name = f"step-{told['step']}.npz"
    np.savez(folder / name, **arrays)
    (folder / "policy.tmp").write_text(json.dumps(told | {"arrays": name}))
    (folder / "policy.tmp").replace(folder / "policy.json")


def load(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What :func:`save` wrote."""
    told = json.loads((folder / "policy.json").read_text())
    with np.load(folder / told["arrays"]) as arrays:
        model.load_state_dict({name: torch.tensor(arrays[f"model/{name}"]) for name in model.state_dict()})
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name in arrays.files:
            if name.startswith("adam/"):
                _, number, key = name.split("/")
                state.setdefault(int(number), {})[key] = torch.tensor(arrays[name])
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
    return told


def main() -> None:
    """Train, and print the loss and how long the training waited for samples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=200, help="in all, those of earlier runs included")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    reader = Reader(args.dataset, windows={ACTION: range(HORIZON)}, features=(STATE, *_pictures(args.dataset)))
    scales = {name: Scale(reader, name) for name in (STATE, ACTION)}
    model = Act(state=len(scales[STATE].mean), action=len(scales[ACTION].mean))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    samples, step, losses = Samples(reader, seed=args.seed), 0, []
    if (args.out / "policy.json").exists():
        told = load(args.out, model, optimizer)
        step, losses = told["step"], told["losses"]
        samples.load_state_dict(told["samples"])
    source, begin = batches(samples, args.batch), time.perf_counter()
    while step < args.steps:
        loss = loss_of(model, next(source), reader.frames.cameras, scales)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        losses.append(float(loss.detach()))
        if step % 20 == 0 or step == args.steps:
            waited, loss = samples.wait_seconds / (time.perf_counter() - begin), np.mean(losses[-20:])
            sys.stdout.write(f"step {step:5d}  epoch {samples.epoch}  loss {loss:.4f}  waited {waited:.1%}\n")
    save(args.out, model, optimizer, {"step": step, "losses": losses, "samples": samples.state_dict()})


def _pictures(dataset: Path) -> tuple[str, ...]:
    with Reader(dataset) as reader:
        return tuple(f"{IMAGES}{name}" for name in reader.frames.cameras)


if __name__ == "__main__":
    main()
