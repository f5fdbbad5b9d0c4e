"""Code blocks, links and headings of the pages in ``docs/`` and of the README."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.support import ROOT
from tools.docs_site.code_blocks import PAGES, code_blocks

__all__ = ["PAGES", "blocks", "broken_links", "code_blocks", "nimbus_commands", "task_arguments"]
_BLOCK = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"\s*(?:\w+=\S+ +)*(?:\S*/)?nimbus (.*)")
_TASK_COMMANDS = {"doctor", "estimate", "evaluate", "close-the-loop", "improve", "studio"}
"""Commands whose first argument is a task."""
_GENERATED = {"docs/commands.md", "docs/gallery.md"}
"""Pages that `make docs` generates, to which links are valid."""


def blocks(page: str, language: str) -> list[str]:
    """List the code blocks of a page in a language."""
    return [block.code for block in code_blocks(page) if block.language == language]


def nimbus_commands(page: str) -> Iterator[list[str]]:
    """Yield the words after ``nimbus`` in every command of a page; shell variables are replaced by 1."""
    for block in blocks(page, "bash"):
        text = re.sub(r"(^|\s)#.*$", "", block.replace("\\\n", " "), flags=re.MULTILINE)
        text = re.sub(r"\"?\$\([^)]*\)\"?|\$\w+", "1", text)
        for command in re.split(r"&&|\|\||[;|\n]", text):
            if match := _COMMAND.match(command):
                yield [word for word in shlex.split(match[1]) if word != "&"]


def task_arguments(words: list[str]) -> Iterator[str]:
    """Yield the tasks in a command: the value of ``--task``, or the first argument of commands that take a task."""
    yield from (value for flag, value in itertools.pairwise(words) if flag == "--task")
    if words[0] in _TASK_COMMANDS and len(words) > 1 and not words[1].startswith("-"):
        yield words[1]


def broken_links(page: str) -> list[str]:
    """List the links of a page to missing files or missing headings."""
    folder, broken = (ROOT / page).parent, []
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", _BLOCK.sub("", (ROOT / page).read_text())):
        name, _, anchor = link.partition("#")
        target = (folder / name).resolve() if name else ROOT / page
        is_generated = target.is_relative_to(ROOT) and target.relative_to(ROOT).as_posix() in _GENERATED
        if not is_generated and (not target.exists() or (anchor and anchor not in _anchors(target))):
            broken.append(link)
    return broken


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings in the form of MkDocs and code hosts."""
    headings = re.findall(r"^#+ +(.+)$", _BLOCK.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s+", "-", heading) for heading in plain}
