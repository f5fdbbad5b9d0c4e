"""Mutations of bytes, texts, plain values and files, each drawn from a random stream."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MARK = "<script>fuzz()</script>"
"""Markup that no page may contain unescaped."""
BELL = "\x1b]0;fuzz\x07"
"""Control sequence that must not be sent to any terminal."""
OUTSIDE = "../../../outside"
"""Path to a folder into which no input may write, relative to an input two folders deep."""

NUMBERS = (0, -1, 1, -15, 0.5, 1e-300, 1e300, -1e300, 1e9, -1e9, 2**31, 2**63 - 1, 2**63, 2**64, 10**40)
TEXTS = (
    "",
    " ",
    MARK,
    BELL,
    "\0",
    "x" * 100_000,
    f"{OUTSIDE}/stolen",
    "/etc/passwd",
    "/dev/zero",
    "{chunk_index:09d}",
    "{episode_index}",
    "nan",
    "-0",
    "\N{RIGHT-TO-LEFT OVERRIDE}txt",
    "[bold red]markup[/]",
    "'; DROP TABLE attempts; --",
)
_DEEP: Any = []
for _ in range(200):
    _DEEP = [_DEEP]
PLAIN = (None, True, False, [], {}, [[]], [None], {"": None}, _DEEP, *NUMBERS, *TEXTS, float("nan"), float("inf"))
"""Values that replace expected ones."""


def pick(options: Any, random: np.random.Generator) -> Any:
    """Draw one of several options."""
    return options[int(random.integers(len(options)))]


def spoil_bytes(data: bytes, random: np.random.Generator) -> bytes:
    """Flip, overwrite, cut, repeat or insert bytes, once to eight times."""
    spoilt = bytearray(data or b"\0")
    for _ in range(int(random.integers(1, 9))):
        at = int(random.integers(len(spoilt)))
        count = int(random.integers(1, 65))
        match int(random.integers(6)):
            case 0:
                spoilt[at] ^= 1 << int(random.integers(8))
            case 1:
                spoilt[at : at + count] = random.bytes(count)
            case 2:
                spoilt[at : at + 8] = pick((b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f" * 2), random)
            case 3:
                del spoilt[at : at + count]
            case 4:
                spoilt[at:at] = spoilt[max(0, at - count) : at]
            case _:
                del spoilt[max(1, at) :]
        spoilt = spoilt or bytearray(b"\0")
    return bytes(spoilt)


def spoil_text(text: str, random: np.random.Generator) -> str:
    """Replace a number, a word or a line of a text, or remove, repeat or exchange lines."""
    lines = text.splitlines(keepends=True) or [""]
    at = int(random.integers(len(lines)))
    match int(random.integers(7)):
        case 0 | 1 | 2:
            pattern = pick((r"-?\d+(?:\.\d+)?", r"[A-Za-z_][\w.]*", r'"[^"]*"'), random)
            found = list(re.finditer(pattern, text))
            if not found:
                return text + str(pick(TEXTS, random))
            match = pick(found, random)
            return text[: match.start()] + str(pick((*NUMBERS, *TEXTS), random)) + text[match.end() :]
        case 3:
            del lines[at]
        case 4:
            lines.insert(at, lines[at])
        case 5:
            other = int(random.integers(len(lines)))
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines.insert(at, str(pick(TEXTS, random)) + "\n")
    return "".join(lines)


def spoil_plain(value: Any, random: np.random.Generator) -> Any:
    """Replace, remove or add one value at a random location in plain data."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        name = pick(list(value), random)
        match int(random.integers(8)):
            case 0:
                return {key: held for key, held in value.items() if key != name}
            case 1:
                return value | {str(pick(TEXTS, random)): value[name]}
            case _:
                return value | {name: spoil_plain(value[name], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        at = int(random.integers(len(value)))
        if random.random() < 0.2:
            return value[:at] + value[at + 1 :] if random.random() < 0.5 else [*value, value[at]]
        return [*value[:at], spoil_plain(value[at], random), *value[at + 1 :]]
    return pick(PLAIN, random)


def spoil_json(path: Path, random: np.random.Generator) -> None:
    """Damage a JSON file, or a file with one JSON value per line."""
    text = path.read_text(encoding="utf-8")
    if random.random() < 0.15:
        path.write_text(spoil_text(text, random), encoding="utf-8", errors="surrogatepass")
        return
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    at = int(random.integers(len(lines)))
    lines[at] = json.dumps(spoil_plain(json.loads(lines[at]), random))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def spoil_file(path: Path, random: np.random.Generator) -> None:
    """Damage the bytes of any file."""
    path.write_bytes(spoil_bytes(path.read_bytes(), random))


def replace_file(path: Path, random: np.random.Generator) -> str:
    """Replace a file by a pipe, a folder, a link, a sparse file or nothing; return the kind of the replacement."""
    path.unlink()
    kinds: dict[str, Callable[[], object]] = {
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "empty file": path.touch,
        "nothing": lambda: None,
        "link to a device": lambda: path.symlink_to("/dev/zero"),
        "link to itself": lambda: path.symlink_to(path.name),
        "link to a secret": lambda: path.symlink_to("/etc/passwd"),
        "sparse file": lambda: _hole(path),
    }
    name = pick(sorted(kinds), random)
    kinds[name]()
    return name


def _hole(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def files_of(folder: Path, *suffixes: str) -> list[Path]:
    """List the files below a folder, sorted, either all or those with some suffixes."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in found if not suffixes or path.suffix in suffixes]
