"""Checkpoints of a training run: tensors as safetensors, the rest as JSON, written atomically."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta
from safetensors import SafetensorError

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.atomic import replacing, sync_folder, write_atomic
from nimbus.datagen.files.bounded import check_regular, read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.geometry.torch_library import torch

NAME = "checkpoint.json"


@dataclass(frozen=True, kw_only=True)
class CheckpointFacts:
    """Content of ``checkpoint.json``, which is written last and names the complete tensors."""

    step: int
    """Number of completed steps."""
    tensors: Annotated[str, Meta(pattern=r"^step-[0-9]{8,12}\.safetensors$")]
    """Name of the file with the tensors."""
    training: dict[str, str]
    """All settings that determine the weights, as text by name: the dataset, sizes, batch, seed."""


def save(folder: Path, tensors: Mapping[str, torch.Tensor], *, step: int, training: dict[str, str]) -> None:
    """Write a checkpoint, then remove the earlier ones."""
    name = f"step-{step:08d}.safetensors"
    save_tensors(folder / name, tensors)
    facts = CheckpointFacts(step=step, tensors=name, training=training)
    write_atomic(folder / NAME, to_json(facts, indent=1) + "\n", durable=True, shared=False)
    sync_folder(folder)
    for path in folder.glob("step-*.safetensors"):
        if path.name != name:
            path.unlink()


def load(folder: Path, *, training: dict[str, str]) -> tuple[dict[str, torch.Tensor], int] | None:
    """Read a checkpoint: tensors by name, and the number of completed steps; None if there is none.

    Raises:
        InputError: The checkpoint is damaged, belongs to another training run, or is a link out of the folder.
    """
    path = file_in(folder, NAME)
    if not path.exists():
        return None
    facts = read_typed(CheckpointFacts, path)
    for name, mine in training.items():
        if (its := facts.training.get(name, "")) != mine:
            what = f"the checkpoint was written with another {name}: {its}, not {mine}"
            raise InputError(what, where=str(path), instead="give the original value, or another --out")
    return load_tensors(file_in(folder, facts.tensors)), facts.step


def save_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors durably to a safetensors file."""
    from safetensors.torch import save_file

    with replacing(path, durable=True, shared=False) as temporary:
        save_file({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, temporary)
    sync_folder(path.parent)


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read tensors from a safetensors file.

    Raises:
        InputError: The file does not exist, is not a regular file, or is damaged.
    """
    from safetensors.torch import load_file

    check_regular(path)
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        instead = "give a complete .safetensors file"
        raise InputError(f"cannot be read: {error}", where=str(path), instead=instead) from None


def unequal_shapes(mine: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor]) -> list[str]:
    """Return the names of tensors that only one of two sets has, and then of those with unequal shapes."""
    names = sorted(mine.keys() ^ found.keys())
    return names + [name for name in sorted(mine.keys() & found.keys()) if mine[name].shape != found[name].shape]
