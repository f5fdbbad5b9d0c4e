"""Commands and files of the docs, run unchanged."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.registry import forget, registered
from nimbus.datagen.tasks.task import task_names
from nimbus.runner.cli import main, parse_command
from nimbus.runner.commands import COMMANDS
from tests.support import ROOT
from tests.support.doc_blocks import PAGES, blocks, broken_links, code_blocks, nimbus_commands, task_arguments
from tests.support.runs import sound
from tools.docs_site.code_blocks import CodeBlock
from tools.docs_site.run_commands import run_block

PAGE = (ROOT / "docs" / "your-own.md").read_text()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder beside Nimbus's scenes, with a command ``nimbus`` that records its words."""
    (tmp_path / "scenes").symlink_to(ROOT / "scenes")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "nimbus"
    command.write_text(f'#!/bin/sh\nprintf "%s\\0" "$PWD" "$@" > "{tmp_path}/$$.words"\n')
    command.chmod(0o755)
    return tmp_path


def bash(line: str, folder: Path) -> str:
    env = os.environ | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", line], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def obey(block: str, project: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a shell block, and then its Nimbus commands in this process; return their output."""
    bash(block, project)
    for path in sorted(project.glob("*.words"), key=lambda path: path.stat().st_mtime_ns):
        folder, *words = path.read_text().rstrip("\0").split("\0")
        path.unlink()
        with contextlib.chdir(folder):
            assert main([*words, "--serial"] if words[0] == "run" else words) == 0, words
    return capsys.readouterr().out


@pytest.fixture
def registry_as_before() -> Iterator[None]:
    """Forget the skills that a test registers."""
    before = registered()
    yield
    forget(registered() - before)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("registry_as_before")
def test_a_task_with_everything_of_ones_own_runs_as_the_page_says(project: Path, capsys: pytest.CaptureFixture[str]):
    shell, *_ = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    bash(shell, project)
    files = re.findall(r"`(own/[\w/.]+)`:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert len(files) == 9
    for name, text in files:
        (project / name).write_text(text)
    printed = [obey(block, project, capsys) for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)[1:]]
    assert "1 episodes stored of 1 asked" in printed[1]
    assert "1 layouts and plans, equal to the last bit" in printed[2] and "all is well" in printed[2]
    assert "1 of 1 with the same outcome" in printed[2]
    assert len(list((project / "own/traces").glob("*.npz"))) == 1
    assert not (project / "traces").exists()
    sound(project / "own" / "data")
    sound(project / "own" / "seen_anew")


def test_docs_name_every_kind_and_its_bin():
    trash = open_library("trash")
    page = (ROOT / "docs/objects.md").read_text()
    for bin_name in trash.classes:
        kinds = [kind.replace("_", " ") for kind in trash.kinds if trash.kind(kind).object_class == bin_name]
        assert f"| {bin_name} | {', '.join(kinds)} |" in page
    assert f"has {len(trash.kinds)} kinds" in page


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str):
    assert not broken_links(page)


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_known_with_their_flags(page: str):
    for words in nimbus_commands(page):
        assert parse_command(words) is not None, words


@pytest.mark.parametrize("page", PAGES)
def test_commands_name_existing_tasks(page: str):
    for words in nimbus_commands(page):
        for name in task_arguments(words):
            assert name in task_names() or name.endswith(".yaml"), words


@pytest.mark.parametrize("page", PAGES)
def test_shell_blocks_run_or_have_a_reason(page: str):
    """``make docs-commands`` runs every block without a reason not to run it; a reason names a requirement."""
    for block in code_blocks(page):
        if block.language not in ("bash", "sh", "console"):
            assert not re.search(r"^(nimbus|make|pip|python3?) ", block.code, re.MULTILINE) or block.language, block
            assert not block.run_first and not block.not_run, block
            continue
        assert block.language == "bash", block
        needs = re.search(r"\b(pip install|--device cuda|://|--model |docker|torchrun|make (run|gpu|test))", block.code)
        assert block.not_run or not needs, block
        assert not block.not_run or re.match(r"(needs|takes|installs|starts|opens|names) ", block.not_run), block


@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_can_be_read(page: str):
    for block in blocks(page, "python"):
        compile(textwrap.dedent(block), page, "exec")
    for block in blocks(page, "yaml"):
        list(yaml.safe_load_all(textwrap.dedent(block)))


def test_docs_name_most_commands():
    named = {words[0] for page in PAGES for words in nimbus_commands(page) if words}
    assert len(named & set(COMMANDS)) > 20


def test_a_block_that_fails_is_reported(tmp_path: Path):
    block = CodeBlock(
        "page.md", 3, "bash", "echo made > file\nfalse\n", not_run="", run_first="test ! -e file", saved_as=""
    )
    assert run_block(block, tmp_path) == ["page.md:3"]
    assert run_block(replace(block, code="cat file\n", run_first=""), tmp_path) == []


def test_every_page_is_in_the_navigation():
    pages = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert pages == {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")} | {
        "commands.md",
        "gallery.md",
    }
