"""Output to standard streams, with control characters from files escaped."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from nimbus.datagen.errors import single_line, visible
from nimbus.datagen.files import start_folder


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


def error_line(error: Exception | str) -> str:
    """Return an error as one line for standard error."""
    return single_line(shorten_paths(str(error))) + "\n"


def shorten_paths(text: str) -> str:
    """Return a message with paths relative to the folder that this process has left, as its user wrote them."""
    if not start_folder.has_left() or (here := start_folder.start_folder()) == here.parent:
        return text
    # A path begins a word, or follows a scheme; within an address it is a part of a name.
    return re.sub(rf"(?<![^\s'\"=:(]){re.escape(f'{here}{os.sep}')}", "", text)


def shown_path(path: Path) -> str:
    """Return a path for a message: without ``..``, and relative to the folder in which the command was started."""
    place = path.absolute()
    if ".." in place.parts:
        place = place.resolve()
    return start_folder.shown_path(place)
