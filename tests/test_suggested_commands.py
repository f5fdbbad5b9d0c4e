"""Commands that messages suggest are quoted: users paste them into a shell, and datasets of others have names."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

import pytest

from nimbus.datagen.errors import quote_words
from nimbus.runner.cli import COMMANDS
from tools.sources import modules, parse

_COMMAND = re.compile(rf"\b(?:nimbus (?:{'|'.join(COMMANDS)})|pip install) [^',;]*$")
"""Text between a command and a value in it."""
_FLAG = re.compile(r"(?:^|\s)--[a-z-]+[ =]$")
"""Text before the value of a flag; locations have flags as well, and are no commands."""


def unquoted(tree: ast.AST) -> Iterator[str]:
    """Yield texts in which a value follows a command, or a flag in a fix, without :func:`quote_words`."""
    fixes = {id(text) for node in ast.walk(tree) if _is_fix(node) for text in ast.walk(node)}
    for node in ast.walk(tree):
        before = ""
        for part in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(part, ast.FormattedValue):
                is_command = _COMMAND.search(before) or (id(node) in fixes and _FLAG.search(before))
                if is_command and not ast.unparse(part.value).startswith("quote_words("):
                    yield ast.unparse(node)
                before += "{}"
            else:
                before += str(getattr(part, "value", ""))


def _is_fix(node: ast.AST) -> bool:
    """Return True for the fix of an error, as an argument or a variable."""
    if isinstance(node, ast.keyword):
        return node.arg == "instead"
    return isinstance(node, ast.Assign) and "instead" in ast.unparse(node.targets[0])


def test_suggested_commands_are_quoted():
    assert not {name for name, path in modules().items() if list(unquoted(parse(path)))}


@pytest.mark.parametrize(
    "line",
    [
        "f'run nimbus verify {folder}'",
        "f'take one: nimbus filter x --where \"{task}\"'",
        "f'{a}: pip install {package}'",
        "refuse(instead=f'use it with --cuts {path}, or remove it')",
        "instead = f'or --out={out}'",
    ],
)
def test_commands_with_unquoted_words_are_found(line: str):
    assert list(unquoted(ast.parse(line)))


def test_locations_and_quoted_words_are_not_found():
    lines = (
        "refuse(where=f'--out {out}', instead=f'run nimbus qa, then read {path}')",
        "f\"run {quote_words('nimbus', 'verify', folder)}, or 'nimbus verify' on {it}\"",
        "instead = f\"give {quote_words('--out', out)}\"",
    )
    assert [line for line in lines if list(unquoted(ast.parse(line)))] == []


def test_quoted_words_are_single_words_of_a_shell():
    words = ("nimbus", "verify", "a b'; curl x | sh #", "$(id)", "plain/name-1.yaml")
    assert shlex.split(quote_words(*words)) == list(words)
    assert quote_words(*words[:2], words[-1]) == "nimbus verify plain/name-1.yaml"
