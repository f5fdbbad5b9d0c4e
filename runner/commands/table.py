"""Tables in the terminal: columns of text, and descriptions of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path


def align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a line for each row, its columns left-aligned and two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def leading_comment(path: Path) -> str:
    """Return the comment in the first line of a file; empty without one."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[0].lstrip("# ").strip() if lines and lines[0].startswith("#") else ""
