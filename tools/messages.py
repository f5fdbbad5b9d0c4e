"""List the messages that users see, with file and line, for editing.

``python -m tools.messages`` prints all of them, sorted by file; ``--kind error`` one kind, ``--sample 60 --seed 1`` a
random sample. Values that are filled in at run time are shown as ``{…}``.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.sources import modules, parse, relative

_CALLS = {
    "InputError": "error",
    "StorageError": "error",
    "PolicyFault": "error",
    "PydanticCustomError": "error",
    "error": "error",
    "Diagnostic": "finding",
    "fail": "finding",
    "warn": "finding",
    "SkillFailure": "reason",
    "Option": "help",
    "Argument": "help",
    "activity": "progress",
    "end_phase": "progress",
    "note": "progress",
    "tell": "progress",
    "_announce": "progress",
    "write_error": "progress",
    "write_line": "output",
    "print": "output",
    "add_row": "output",
}
"""Kind of message by the name of the called function."""
KINDS = tuple(dict.fromkeys(_CALLS.values()))
_LEAST_LETTERS = 9
"""Smallest number of letters of a message; shorter texts, such as names and units, are not sentences."""


@dataclass(frozen=True)
class Message:
    """One text that a user may see."""

    path: Path
    line: int
    kind: str
    text: str


def find_messages() -> Iterator[Message]:
    """Yield the messages of all modules, by file and line."""
    for path in modules().values():
        found = {message for node in ast.walk(parse(path)) for message in _messages_of(node, path)}
        yield from sorted(found, key=lambda message: (message.line, message.text))


def _messages_of(node: ast.AST, path: Path) -> Iterator[Message]:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if kind := _CALLS.get(name):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                yield from _texts(argument, path, kind)
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        # Errors are often assembled before they are raised: ``what = …`` and ``instead = …``.
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        if names & {"what", "instead", "detail"}:
            yield from _texts(node.value, path, "error")


def _texts(node: ast.AST, path: Path, kind: str) -> Iterator[Message]:
    """Yield the texts in an expression; nested calls and subscripts are left out."""
    if isinstance(node, ast.Call | ast.Subscript | ast.Lambda):
        return
    text = _text_of(node)
    if text is not None:
        if len(text) >= _LEAST_LETTERS and " " in text:
            yield Message(path, node.lineno, kind, text)  # type: ignore[attr-defined]
        return
    for child in ast.iter_child_nodes(node):
        yield from _texts(child, path, kind)


def _text_of(node: ast.AST) -> str | None:
    """Return a string or an f-string with its values as ``{…}``; None for another expression."""
    if isinstance(node, ast.Constant):
        return " ".join(node.value.split()) if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
        return " ".join("".join(parts).split())
    return None


def main() -> int:
    """Print the messages; the exit code is always 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, help="print one kind only")
    parser.add_argument("--sample", type=int, help="print this many messages, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    arguments = parser.parse_args()
    messages = [message for message in find_messages() if arguments.kind in (None, message.kind)]
    if arguments.sample is not None:
        messages = random.Random(arguments.seed).sample(messages, min(arguments.sample, len(messages)))
    for message in messages:
        sys.stdout.write(f"{relative(message.path)}:{message.line}: {message.kind}: {message.text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
