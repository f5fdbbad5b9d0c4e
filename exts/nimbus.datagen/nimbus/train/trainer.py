"""One rank of a training run: mixed precision, gradient accumulation, averaged weights, checkpoints."""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nimbus.datagen.datasets.export.source import open_source
from nimbus.datagen.datasets.training.frames import ACTION, IMAGES, STATE
from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import refuse_links
from nimbus.datagen.geometry.torch_library import torch
from nimbus.datagen.policies.trained_policy import settings_of, write_conventions
from nimbus.runner.system.output import write_out
from nimbus.train import checkpoint
from nimbus.train.network import VlaNetwork
from nimbus.train.parallel import Group, fill, to_fp8, whole
from nimbus.train.ranks import write_heartbeat
from nimbus.train.sequences import PACKING_THRESHOLD, Arrays, make_batch, padding_share, scaling_of, to_tokens
from nimbus.train.streams import Streams, check_ranks
from nimbus.train.vla_policy import SAFE_WEIGHTS, VlaPolicy, begin_with, sizes_of

DTYPES = ("fp32", "bf16", "fp64")
_WARMUP_STEPS = 100
"""Number of steps over which the learning rate rises."""
_SAMPLED_EPISODES = 500
"""Number of episodes whose instructions are measured to estimate the padding."""
_MAX_GRADIENT_NORM = 1.0
"""Largest norm of the gradient."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of a training run."""

    dataset: Path
    out: Path
    steps: int = 2000
    streams: int = 4
    """Number of micro-batches per step, and the largest number of ranks."""
    size: int = 8
    """Number of samples in a micro-batch."""
    rate: float = 1e-3
    """Learning rate."""
    seed: int = 0
    dtype: str = "fp32"
    pack: str = "auto"
    """``on``, ``off``, or ``auto`` to choose by the measured padding."""
    decay: float = 0.999
    """Decay of the weights' moving average per step."""
    minutes: float = 5.0
    """Time between two checkpoints [min]."""
    device: str = "cpu"
    shard: bool = False
    """True for FSDP2 instead of DDP."""
    fp8: bool = False
    weights: Path | None = None
    """Initial weights as safetensors."""
    horizon: int = 16
    """Number of actions in a chunk."""
    width: int = 128
    """Width of a token."""
    depth: int = 4
    """Number of layers."""
    shown: int = 10
    """Number of steps between two lines of ``metrics.jsonl``."""

    @property
    def content(self) -> dict[str, str]:
        """Return the options that determine the weights, as text by name."""
        names = ("steps", "streams", "size", "rate", "seed", "dtype", "decay")
        return {f"--{name}": str(getattr(self, name)) for name in names}


class Trainer:
    """Data, network and optimizer of one rank.

    Args:
        wanted: Settings.
        rank: Number of this rank.
        ranks: Number of ranks.

    Raises:
        InputError: The dataset, the weights or the checkpoint do not fit, or the folder of the output has links.
    """

    def __init__(self, wanted: Training, *, rank: int = 0, ranks: int = 1) -> None:
        check_ranks(ranks, wanted.streams)
        if wanted.device == "cpu":
            torch.set_num_threads(1)
        self.wanted = wanted
        source = open_source(wanted.dataset)
        refuse_links(wanted.out)
        wanted.out.mkdir(parents=True, exist_ok=True)
        longest = max(item.step_count for item in source.items)
        conventions = settings_of(wanted.dataset, horizon=wanted.horizon, longest=longest)
        sizes = sizes_of(replace(conventions, options={"width": wanted.width, "depth": wanted.depth}))
        self.cameras = tuple(conventions.cameras)
        features = (STATE, *(f"{IMAGES}{name}" for name in self.cameras))
        reader = self.reader = Reader(wanted.dataset, windows={ACTION: range(wanted.horizon)}, features=features)
        self.streams = Streams(reader, seed=wanted.seed, count=wanted.streams, size=wanted.size, rank=rank, ranks=ranks)
        numbers = range(0, len(source.items), max(1, len(source.items) // _SAMPLED_EPISODES))
        token_counts = [len(to_tokens(reader.frames.task(number))) for number in numbers]
        self.padding = padding_share(list(map(sizes.token_count, token_counts)), batch=wanted.size)
        self.is_packed = wanted.pack == "on" or (wanted.pack == "auto" and self.padding > PACKING_THRESHOLD)
        self.conventions = replace(conventions, dataset=source.content_hash, options=sizes.as_options())
        torch.manual_seed(wanted.seed)
        network = self.network = VlaNetwork(sizes, is_packed=self.is_packed)
        held = checkpoint.load(wanted.out, training=self._identity)
        if wanted.weights is not None:
            begin_with(network, wanted.weights)
        elif held is None:
            for name, parts in scaling_of(reader).items():
                for part, values in zip(("mean", "scale"), parts, strict=True):
                    fill(network.get_buffer(f"{name.removeprefix('observation.')}_{part}"), torch.from_numpy(values))
        if wanted.fp8:
            to_fp8(network)
        network.to(wanted.device, torch.float64 if wanted.dtype == "fp64" else torch.float32)
        self.group = Group(rank=rank, ranks=ranks, device=wanted.device)
        self.group.join()
        self.model = self.group.share(network, is_sharded=wanted.shard)
        self.parameters = dict(network.named_parameters())
        self.optimizer = torch.optim.AdamW(self.parameters.values(), lr=wanted.rate, weight_decay=1e-4)
        for value in self.parameters.values():
            moments = {name: torch.zeros_like(value, requires_grad=False) for name in ("exp_avg", "exp_avg_sq")}
            self.optimizer.state[value] = {"step": torch.tensor(0.0), **moments}
        self.average = {name: value.detach().clone() for name, value in self.parameters.items()}
        self.step = 0
        if held is not None:
            tensors, self.step = held
            mine = self._tensors()
            if names := checkpoint.unequal_shapes(mine, tensors):
                what = f"the checkpoint belongs to another network: {', '.join(names[:3])} differ"
                raise InputError(what, where=str(wanted.out), instead="restore it from a copy, or give another --out")
            for name, target in mine.items():
                fill(target, tensors[name])
            for state in self.optimizer.state.values():
                state["step"].fill_(self.step)

    @property
    def _identity(self) -> dict[str, str]:
        """Return all settings that determine the weights, as text by name."""
        sizes = ", ".join(f"{name} {value}" for name, value in self.conventions.options.items())
        return {"dataset": self.conventions.dataset, "network": sizes, **self.wanted.content}

    def run(self) -> bool:
        """Train to the last step; return False if the run was stopped before."""
        asked: list[int] = []
        numbers = (signal.SIGTERM, signal.SIGINT)
        handlers = {one: signal.signal(one, lambda number, _: asked.append(number)) for one in numbers}
        saved = time.monotonic()
        self._begun, self._shown = self.step, (self.step, saved, 0.0)
        try:
            while self.step < self.wanted.steps:
                part = self._train_step()
                is_due = self.group.rank == 0 and time.monotonic() - saved > 60 * self.wanted.minutes
                loss, stops, saves = self.group.sum(part, bool(asked), is_due)
                self.step += 1
                write_heartbeat(self.wanted.out, self.group.rank, self.step)
                self._show(loss)
                if stops or saves or self.step == self.wanted.steps:
                    self._save()
                    saved = time.monotonic()
                if stops:
                    break
            if self.step == self.wanted.steps:
                self.write_policy(self.average)
            return self.step == self.wanted.steps
        finally:
            self.streams.close()
            self.group.leave()
            for one, handler in handlers.items():
                signal.signal(one, handler)

    def _train_step(self) -> float:
        """Accumulate the gradients of this rank's micro-batches and update the weights.

        Return this rank's part of the loss.
        """
        step, wanted = self.step, self.wanted
        count, loss, parts = self.streams.sample_count(step), 0.0, self.streams.read(step)
        for number, samples in enumerate(parts):
            batch = make_batch(
                samples or [self.streams.spare()], self.cameras, seed=wanted.seed, epoch=self.streams.epoch(step)
            )
            with self.group.gather_gradients(self.model, is_last=number == len(parts) - 1):
                with self._mixed():
                    part = self.model(self.to_tensors(batch)).sum() * (bool(samples) / count)
                (part * self.group.ranks).backward()  # DDP and FSDP take the mean over the ranks
            loss += float(part.detach())
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), _MAX_GRADIENT_NORM)
        warmth = min(1.0, (step + 1) / _WARMUP_STEPS)
        self.optimizer.param_groups[0]["lr"] = wanted.rate * warmth * (1 + math.cos(math.pi * step / wanted.steps)) / 2
        self.optimizer.step()
        self.optimizer.zero_grad()
        share = 1 - min(wanted.decay, (1 + step) / (10 + step))
        with torch.no_grad():
            for name, value in self.parameters.items():
                self.average[name].lerp_(value, share)
        return loss

    def to_tensors(self, batch: Arrays) -> dict[str, torch.Tensor]:
        """Move a batch to the device; numbers are converted to the type of the weights, images stay unchanged."""
        kind = torch.float64 if self.wanted.dtype == "fp64" else torch.float32
        tensors = {name: torch.from_numpy(value).to(self.wanted.device) for name, value in batch.items()}
        return {name: value.to(kind) if value.is_floating_point() else value for name, value in tensors.items()}

    def _mixed(self) -> Any:
        is_mixed = self.wanted.dtype == "bf16"
        return torch.autocast(self.wanted.device.split(":")[0], torch.bfloat16) if is_mixed else nullcontext()

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Return a checkpoint's tensors by name: weights, their average, the scaling, and the optimizer's moments."""
        found = {f"model/{name}": value for name, value in (*self.parameters.items(), *self.network.named_buffers())}
        found |= {f"average/{name}": value for name, value in self.average.items()}
        for name, value in self.parameters.items():
            found |= {f"adam/{name}/{key}": self.optimizer.state[value][key] for key in ("exp_avg", "exp_avg_sq")}
        return found

    def _save(self) -> None:
        tensors = {name: whole(value) for name, value in self._tensors().items()}
        if self.group.rank == 0:
            checkpoint.save(self.wanted.out, tensors, step=self.step, training=self._identity)

    def write_policy(self, parameters: Mapping[str, torch.Tensor]) -> None:
        """Write the weights as a policy for ``nimbus evaluate``."""
        weights = {name: whole(value) for name, value in parameters.items()} | dict(self.network.named_buffers())
        if self.group.rank == 0:
            folder = self.wanted.out / "policy"
            write_conventions(folder, self.conventions, policy=VlaPolicy)
            checkpoint.save_tensors(folder / SAFE_WEIGHTS, {name: value.float() for name, value in weights.items()})
            write_out(f"policy: {folder}\n")

    def _show(self, loss: float) -> None:
        before, begin, waited_before = self._shown
        is_regular = self.step % self.wanted.shown == 0 or self.step == self.wanted.steps
        if self.group.rank or not (is_regular or before == self._begun):
            return
        now, waited, steps = time.monotonic(), self.streams.wait_seconds, self.step - before
        line = {
            "step": self.step,
            "epoch": self.streams.epoch(self.step - 1),
            "loss": loss,
            "step_ms": round(1e3 * (now - begin) / steps, 1),
            "data_wait_ms": round(1e3 * (waited - waited_before) / steps, 1),
        }
        self._shown = self.step, now, waited
        with (self.wanted.out / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        write_out("  ".join(f"{name} {value:.4g}" for name, value in line.items()) + "\n")
        sys.stdout.flush()
