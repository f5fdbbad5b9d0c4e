"""Tables without spaces at the ends of their lines, for what searches and compares them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def trim_lines(console: Console) -> Iterator[None]:
    """What is printed inside is written at the end, each line without the spaces that pad it."""
    with console.capture() as captured:
        yield
    console.file.write("\n".join(line.rstrip(" ") for line in captured.get().split("\n")))
