"""Fenced code blocks of the documentation's pages, with the remarks above them about how they are run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md"] + sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")
)
"""Pages below the project's folder."""
_BLOCK = re.compile(
    r"(?:^ *<!-- (?P<remark>not run|run first): (?P<text>.*?) -->\n)?"
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^ *```",
    re.DOTALL | re.MULTILINE,
)
_SAVED = re.compile(r"(?:[Ss]ave (?:this|it) as )?`([\w./-]+\.(?:ya?ml|py|usda))`[^`\n]*:\s*$")


@dataclass(frozen=True)
class CodeBlock:
    """A fenced code block of a page.

    ``<!-- not run: REASON -->`` above it excludes it from ``make docs-commands``; ``<!-- run first: COMMAND -->`` gives
    a command that prepares its input and is not shown to readers.
    """

    page: str
    """Path of the page below the project's folder."""
    line: int
    """Line of the page at which the block begins, from 1."""
    language: str
    """Language after the fence; empty for plain text."""
    code: str
    """Text between the fences."""
    not_run: str
    """Reason why the block is not run; empty for blocks that are run."""
    run_first: str
    """Shell command that prepares the block's input; empty if there is none."""
    saved_as: str
    """File that the paragraph above names for the block's text; empty if there is none."""


def code_blocks(page: str) -> list[CodeBlock]:
    """List the code blocks of a page, in order."""
    text = (ROOT / page).read_text()
    found: list[CodeBlock] = []
    for match in _BLOCK.finditer(text):
        above = _SAVED.search(text[: match.start()].rstrip())
        found.append(
            CodeBlock(
                page=page,
                line=text.count("\n", 0, match.start()) + 1,
                language=match["language"],
                code=re.sub(f"^{match['indent']}", "", match["code"], flags=re.MULTILINE),
                not_run=match["text"] if match["remark"] == "not run" else "",
                run_first=match["text"] if match["remark"] == "run first" else "",
                saved_as=above[1] if above else "",
            )
        )
    return found
