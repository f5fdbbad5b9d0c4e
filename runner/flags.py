"""What a flag of the command line takes: each of these reads a text, or says what it should be."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from nimbus.datagen.errors import suggest
from nimbus.runner.cell.transport.spec import MOST_WORKERS


def whole(low: int, high: int) -> Callable[[str], int]:
    """A whole number in a range."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[-+]?[0-9]{1,20}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"expected a whole number from {low} to {high}, found '{text}'")
        return int(text)

    return parse


def one_of(known: tuple[str, ...]) -> Callable[[str], str]:
    """A name of several."""

    def parse(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"unknown '{text}'; {suggest(text, known)}")
        return text

    return parse


def sample(text: str) -> int | None:
    """How many of a dataset's episodes, or ``all``: None."""
    return None if text == "all" else whole(1, 10**7)(text)


def stack(text: str) -> int | None:
    """Time steps rendered at once, or ``auto``: None."""
    return None if text == "auto" else whole(1, 4096)(text)


def price(text: str) -> float:
    """An amount of money."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise argparse.ArgumentTypeError(f"expected a price such as 0.85, found '{text}'")
    return float(text)


def size(text: str) -> int:
    """[bytes] of a size such as ``256MB``."""
    match = re.fullmatch(r"([0-9]{1,6})(MB|GB)", text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"expected a size such as 256MB or 1GB, found '{text}'")
    return int(match[1]) * {"MB": 10**6, "GB": 10**9}[match[2]]


def workers(text: str) -> tuple[int, int] | None:
    """Planners and renderers such as ``2x1``, or ``auto``: None."""
    if text == "auto":
        return None
    match = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", text)
    if match is None or not int(match[1]) or not int(match[2]):
        what = f"expected 'auto' or planners x renderers such as 2x1, found '{text}'"
        raise argparse.ArgumentTypeError(what)
    planners, renderers = int(match[1]), int(match[2])
    if planners + renderers > MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"{text} are {planners + renderers} workers, at most {MOST_WORKERS} can work")
    return planners, renderers
