"""Run the shell blocks of the documentation: ``python -m tools.docs_site.run_commands [PAGE ...]``.

Each page has a temporary folder, in which its blocks run in order. A block with the text of a file is saved under the
name in the paragraph above it. Numbers of episodes and layouts are reduced, so all pages together take some minutes. A
block is left out only if its page marks it as not run. The exit code is 1 if a block fails, whose output is then
printed.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.docs_site.code_blocks import PAGES, ROOT, CodeBlock, code_blocks

_SHARED = ("docs", "scenes", "benchmarks")
"""Files of the project that commands name by relative path."""
_MOST = 3
"""Largest number of episodes or layouts that a command of a page makes in this run."""
_SECONDS = 3600
"""Time limit of a block [s]; only a block that hangs reaches it, even on a busy machine."""
_COUNT = re.compile(r"(--(?:episodes|layouts|count) )(\d+)")
log = logging.getLogger(__name__)


def run_page(page: str, folder: Path) -> list[str]:
    """Run the blocks of a page in a folder and return one line for each block that failed."""
    _prepare(folder)
    failures: list[str] = []
    for block in code_blocks(page):
        if block.saved_as and block.saved_as.partition("/")[0] not in _SHARED:
            file = folder / block.saved_as
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.code)
        elif block.language == "bash" and not block.not_run:
            failures += run_block(block, folder)
    return failures


def run_block(block: CodeBlock, folder: Path) -> list[str]:
    """Run a shell block in a folder; return its page and line if it failed."""
    commands = "\n".join(filter(None, (block.run_first, block.code)))
    commands = _COUNT.sub(lambda match: f"{match[1]}{min(int(match[2]), _MOST)}", commands)
    path = f"{folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    begin = time.monotonic()
    done = subprocess.run(
        ["timeout", "--kill-after=30", str(_SECONDS), "bash", "-ec", commands],  # ends the children of the shell, too
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    where = f"{block.page}:{block.line}"
    log.info("%s: %s in %.0f s", where, "passed" if done.returncode == 0 else "FAILED", time.monotonic() - begin)
    if done.returncode == 0:
        return []
    log.error("%s\n%s", commands, (done.stdout + done.stderr)[-3000:])
    return [where]


def _prepare(folder: Path) -> None:
    """Link the project's files into a folder and put a command ``nimbus`` into its ``bin`` and ``.venv/bin``."""
    for name in _SHARED:
        (folder / name).symlink_to(ROOT / name)
    (folder / "bin").mkdir()
    command = folder / "bin" / "nimbus"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "runner" / "runner.py"}" "$@"\n')
    command.chmod(0o755)
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(folder / "bin")


def main() -> int:
    """Run the blocks of the given pages, or of all pages."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "pages", nargs="*", help="pages below the project's folder, such as docs/export.md; default: all"
    )
    failures: list[str] = []
    for page in parser.parse_args().pages or PAGES:
        with tempfile.TemporaryDirectory(prefix="nimbus-docs-") as folder:
            failures += run_page(page, Path(folder))
    log.info("%s", f"{len(failures)} failed: {', '.join(failures)}" if failures else "all blocks ran")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
