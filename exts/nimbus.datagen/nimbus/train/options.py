"""Options shared by the recipes of ``docs/examples``."""

from __future__ import annotations

import argparse
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.train.trainer import DTYPES, Training


def parser_of(text: str | None) -> argparse.ArgumentParser:
    """Make the parser of a recipe, with the recipe's docstring as its help."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = Training(dataset=Path(), out=Path())
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=usual.steps)
    parser.add_argument("--streams", type=int, default=usual.streams, help="micro-batches of a step; ranks at most")
    parser.add_argument("--size", type=int, default=usual.size, help="samples of a micro-batch")
    parser.add_argument("--rate", type=float, default=usual.rate, help="learning rate at its highest")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--dtype", choices=DTYPES, default=usual.dtype)
    parser.add_argument("--pack", choices=("auto", "on", "off"), default=usual.pack, help="sequences without padding")
    parser.add_argument("--decay", type=float, default=usual.decay, help="of the average of the weights")
    parser.add_argument("--minutes", type=float, default=usual.minutes, help="between two checkpoints")
    parser.add_argument("--width", type=int, default=usual.width, help="of the network, a multiple of 8")
    parser.add_argument("--depth", type=int, default=usual.depth, help="layers of the network")
    parser.add_argument("--shown", type=int, default=usual.shown, help="steps between two lines of metrics.jsonl")
    parser.add_argument("--device", default=usual.device, help="cpu or cuda")
    parser.add_argument("--weights", type=Path, help="a .safetensors file of this network to begin with")
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
        import torch

        if not torch.cuda.is_available():
            raise InputError(f"'{args.device}' is not there", where="--device", instead="write cpu")
    names = set(Training.__dataclass_fields__) & set(vars(args))
    return Training(**{name: getattr(args, name) for name in names}, **more)  # pyright: ignore[reportArgumentType]
