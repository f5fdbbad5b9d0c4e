"""Text from files on a terminal: shown literally, never interpreted."""

from __future__ import annotations

import ast
import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from nimbus.datagen.errors import visible
from nimbus.runner.system.console import TerminalConsole, TerminalOutput
from nimbus.runner.system.output import write_error, write_json, write_out, write_progress
from tools.sources import modules, parse

ATTACK = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egpj.exe [bold red]markup[/] [link=http://evil.example]x[/link] :bomb:"


def is_harmless(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


@pytest.mark.parametrize("kind", [TerminalConsole, TerminalOutput])
def test_console_shows_text_as_it_is(kind: type[TerminalConsole]):
    output = io.StringIO()
    console = kind(file=output, force_terminal=True, color_system=None, width=400)
    table = Table(ATTACK, title=ATTACK)
    table.add_row(ATTACK)
    console.print(table)
    console.print(ATTACK, soft_wrap=True)
    text = output.getvalue()
    assert is_harmless(text) and "\\x1b]0;owned" in text
    assert text.count("[bold red]markup[/] [link=http://evil.example]x[/link] :bomb:") == 4


def test_styles_of_our_own_stay():
    output = io.StringIO()
    TerminalConsole(file=output, force_terminal=True, color_system="standard").print("a\x1b[0m", style="red")
    assert output.getvalue() == "\x1b[31ma\\x1b[0m\x1b[0m\n"


def test_plain_output_is_harmless(capsys: pytest.CaptureFixture[str]):
    write_out(f"{ATTACK}\n")
    write_error(f"{ATTACK}\n")
    seen = capsys.readouterr()
    assert seen.out == seen.err and is_harmless(seen.out)
    write_progress(f"3 {ATTACK}")
    assert is_harmless(capsys.readouterr().err.removeprefix("\r").removesuffix("\x1b[K"))


def test_json_is_harmless_and_means_the_same(capsys: pytest.CaptureFixture[str]):
    value = {"name": ATTACK, "all": "".join(map(chr, range(0x2100))), "face": "\U0001f600\U000e0001"}
    write_json(value)
    text = capsys.readouterr().out
    assert is_harmless(text) and json.loads(text) == value
    write_json(value, indent=None)
    (line,) = capsys.readouterr().out.splitlines()
    assert is_harmless(line) and json.loads(line) == value


@given(st.text())
def test_visible_text_is_printable_and_keeps_lines(text: str):
    assert is_harmless(visible(text)) and visible(text).count("\n") == text.count("\n")
    assert visible(visible(text)) == visible(text)


def test_output_passes_one_place():
    """Only these modules write to the terminal directly, or make a console that interprets markup."""
    own = {f"nimbus.runner.system.{name}" for name in ("console", "output")}
    # JSON for the process that started them.
    own |= {"nimbus.datagen.ui.runs.check", "nimbus.runner.isaac.find", "nimbus.datagen.teleoperate.device_host"}
    own |= {"nimbus.runner.runner"}  # an old Python cannot import the modules above
    found = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if name not in own
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and (_name(node) in _DIRECT or _is_write(node))
    ]
    assert not found


_DIRECT = {"Console", "print"}


def _name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_write(node: ast.Call) -> bool:
    """Return True for a write to a standard stream, also by ``writelines``."""
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith("write")
        and ast.unparse(node.func).startswith(("sys.stdout.write", "sys.stderr.write"))
    )


def test_errors_of_a_command_are_harmless(capsys: pytest.CaptureFixture[str]):
    from nimbus.runner.cli import main

    assert main(["verify", f"/no/{ATTACK}"]) == 2
    assert is_harmless(capsys.readouterr().err)
    assert "nimbus.runner.cli" in sys.modules
