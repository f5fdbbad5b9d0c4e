"""Output to standard streams, with control characters from files escaped."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nimbus.datagen.errors import visible


def write_out(text: str) -> None:
    """Write to standard output, with control characters escaped."""
    sys.stdout.write(visible(text))


def write_error(text: str) -> None:
    """Write to standard error, with control characters escaped."""
    sys.stderr.write(visible(text))


def write_progress(text: str) -> None:
    """Replace the last line of standard error by a text."""
    sys.stderr.write(f"\r{visible(text)}\x1b[K")


def write_json(value: object, *, indent: int | None = 2) -> None:
    """Write a value as JSON to standard output, with unprintable characters escaped.

    Args:
        value: Plain values, NumPy values and dataclasses.
        indent: Spaces per level; None for a single line.
    """
    from nimbus.datagen.files.codec import to_json  # imports NumPy, whose threads must be limited first

    text = to_json(value, indent=indent) + "\n"
    harmless = (letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)
    sys.stdout.write("".join(harmless))


def shown_path(path: Path) -> str:
    """Return a path for a message: without ``..``, and relative if it is inside the working directory."""
    place = path.absolute()
    if ".." in place.parts:
        place = place.resolve()
    here = Path.cwd()
    return str(place.relative_to(here) if place.is_relative_to(here) else place)
