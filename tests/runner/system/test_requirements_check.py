"""A checkout in a Python without the required packages."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.runner.system.requirements_check import missing_requirements, requirements_error
from tests.support import ROOT
from tests.support.runs import RUNNER


def bare(*words: str) -> subprocess.CompletedProcess[str]:
    """Return the runner in this Python without its packages."""
    line = [sys.executable, "-I", "-S", str(RUNNER), *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [("--task", "sort_trash"), ("skills",), ("run", "-h")])
def test_a_python_without_the_packages_is_answered_in_one_line_with_what_to_type(words: tuple[str, ...]):
    done = bare(*words)
    assert (done.returncode, done.stdout) == (2, "")
    named = "coacd, example-robot-data, fast-simplification and "
    assert done.stderr.startswith(f"not installed in {sys.executable}: {named}")
    assert done.stderr.endswith(f"or type: {sys.executable} -P -m pip install -e {ROOT} -c {ROOT}/constraints.txt\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("--version",)])
def test_help_needs_no_package(words: tuple[str, ...]):
    done = bare(*words)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


def test_this_python_lacks_nothing():
    assert requirements_error(["--task", "sort_trash"], checkout=ROOT) == ""


def test_what_is_missing_is_named_as_it_is_installed():
    assert missing_requirements(
        ["numpy>=2", "no-such-thing", "newton[sim]>=1.8,<1.9", "nor_this[extra]>=1; python_version>'3'"]
    ) == [
        "no-such-thing",
        "nor_this",
    ]


def test_an_environment_that_is_there_already_is_named(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["no-such-thing"]\n')
    said = requirements_error(["tasks"], checkout=tmp_path)
    assert f"no-such-thing; type: make -C {tmp_path} run, or " in said
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").touch()
    assert f"no-such-thing; use {tmp_path}/.venv/bin/python, or " in requirements_error(["tasks"], checkout=tmp_path)


def test_an_old_python_is_refused_in_one_line():
    """The script says so by itself, because old versions cannot import Nimbus; it is read as one of them would."""
    start = (
        "import runpy, sys; sys.version_info = (3, 10, 13); sys.modules['nimbus'] = None; runpy.run_path(sys.argv[1])"
    )
    line = [sys.executable, "-P", "-c", start, str(RUNNER), "--version"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("Nimbus needs Python 3.11 or 3.12, this is 3.10.13; type: make ")
    ast.parse(RUNNER.read_text(), feature_version=(3, 6))
