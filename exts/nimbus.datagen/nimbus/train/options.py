"""Options shared by the recipes of ``docs/examples``."""

from __future__ import annotations

import argparse
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.torch_library import torch
from nimbus.train.trainer import DTYPES, Training


def parser_of(text: str | None) -> argparse.ArgumentParser:
    """Return the parser of a recipe, with the recipe's docstring as its help."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = Training(dataset=Path(), out=Path())
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=usual.steps)
    parser.add_argument(
        "--streams",
        type=int,
        default=usual.streams,
        help="number of micro-batches per step, and the largest number of ranks",
    )
    parser.add_argument("--size", type=int, default=usual.size, help="number of samples per micro-batch")
    parser.add_argument("--rate", type=float, default=usual.rate, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--dtype", choices=DTYPES, default=usual.dtype)
    parser.add_argument(
        "--pack",
        choices=("auto", "on", "off"),
        default=usual.pack,
        help="concatenate sequences instead of padding them",
    )
    parser.add_argument(
        "--decay", type=float, default=usual.decay, help="decay of the weights' moving average per step"
    )
    parser.add_argument("--minutes", type=float, default=usual.minutes, help="minutes between two checkpoints")
    parser.add_argument("--width", type=int, default=usual.width, help="width of a token, a multiple of 8")
    parser.add_argument("--depth", type=int, default=usual.depth, help="number of layers")
    parser.add_argument(
        "--shown", type=int, default=usual.shown, help="number of steps between two lines of metrics.jsonl"
    )
    parser.add_argument("--device", default=usual.device, help="cpu or cuda")
    parser.add_argument("--weights", type=Path, help="initial weights: a .safetensors file of this network")
    return parser


def training_of(args: argparse.Namespace, **more: object) -> Training:
    """Check the options, and convert them to settings.

    Raises:
        InputError: A number is out of range, or the device does not exist.
    """
    counts = dict.fromkeys(("steps", "streams", "size", "depth", "shown"), 1)
    for name, least in (counts | {"width": 8, "rate": 1e-12, "minutes": 0, "decay": 0}).items():
        if getattr(args, name) < least:
            raise InputError(f"{getattr(args, name)}", where=f"--{name}", instead=f"write at least {least}")
    if args.width % 8:
        raise InputError(f"{args.width}", where="--width", instead="write a multiple of 8")
    if args.device != "cpu":
        if not torch.cuda.is_available():
            raise InputError(f"there is no device '{args.device}'", where="--device", instead="write cpu")
    names = set(Training.__dataclass_fields__) & set(vars(args))
    return Training(**{name: getattr(args, name) for name in names}, **more)  # pyright: ignore[reportArgumentType]
