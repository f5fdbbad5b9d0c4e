"""Distributed training of one network: DDP or FSDP2, and sums over ranks. FSDP2 has only been run on CPUs."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.torch_library import torch
from nimbus.train.ranks import RENDEZVOUS

_COLLECTIVE_TIMEOUT = timedelta(minutes=10)
"""Timeout of a collective call; the supervisor of the ranks detects a hang earlier."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The ranks of a training run, as one of them sees the group."""

    rank: int = 0
    ranks: int = 1
    device: str = "cpu"

    def join(self) -> None:
        """Join the process group."""
        if self.ranks == 1:
            return
        rendezvous = f"file://{Path(os.environ[RENDEZVOUS]).absolute()}" if RENDEZVOUS in os.environ else "env://"
        if self.device != "cpu":
            torch.cuda.set_device(self.device)
        backend = "gloo" if self.device == "cpu" else "nccl"
        torch.distributed.init_process_group(
            backend, init_method=rendezvous, rank=self.rank, world_size=self.ranks, timeout=_COLLECTIVE_TIMEOUT
        )

    def leave(self) -> None:
        """Leave the process group."""
        if self.ranks > 1:
            torch.distributed.destroy_process_group()

    def share(self, network: torch.nn.Module, *, is_sharded: bool) -> torch.nn.Module:
        """Wrap the network so that its gradients are averaged over the ranks."""
        if self.ranks == 1:
            return network
        if not is_sharded:
            return torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
        from torch.distributed.fsdp import fully_shard

        mesh = torch.distributed.init_device_mesh(self.device.split(":")[0], (self.ranks,))
        for block in network.blocks:  # pyright: ignore[reportGeneralTypeIssues]
            fully_shard(block, mesh=mesh)
        return fully_shard(network, mesh=mesh)

    def gather_gradients(self, model: torch.nn.Module, *, is_last: bool) -> AbstractContextManager[Any]:
        """Return a context for a backward pass; only a step's last one averages the gradients over the ranks."""
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            return nullcontext() if is_last else model.no_sync()
        if self.ranks > 1:
            model.set_requires_gradient_sync(is_last)  # pyright: ignore[reportCallIssue]
        return nullcontext()

    def sum(self, *values: float) -> list[float]:
        """Return the sum of each value over the ranks."""
        if self.ranks == 1:
            return list(values)
        row = torch.tensor(values, dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(row)
        return row.tolist()


def whole(value: torch.Tensor) -> torch.Tensor:
    """Gather a tensor that may be sharded over the ranks; every rank must call this."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value.detach()  # pyright: ignore


@torch.no_grad()
def fill(target: torch.Tensor, value: torch.Tensor) -> None:
    """Copy a complete tensor into one that may be sharded over the ranks."""
    if hasattr(target, "device_mesh"):
        from torch.distributed.tensor import distribute_tensor

        value = distribute_tensor(value.to(target.device), target.device_mesh, target.placements)  # pyright: ignore
    target.copy_(value)


def to_fp8(network: torch.nn.Module) -> None:
    """Convert the transformer's layers to FP8; this needs torchao and a suitable GPU.

    Raises:
        InputError: torchao is not installed, or the GPU does not support FP8.
    """
    try:
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training  # pyright: ignore
    except ImportError:
        raise InputError("torchao is not installed", where="--fp8", instead="pip install torchao") from None
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 9):
        raise InputError("the GPU does not support FP8", where="--fp8", instead="leave it out")
    # Packed batches have any number of tokens, but FP8 matrices need multiples of 16, so they are padded with zeros.
    convert_to_float8_training(network.blocks, config=Float8LinearConfig(pad_inner_dim=True))
