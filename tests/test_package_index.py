"""No text lets pip look for Nimbus on a package index, where its name is free: code of others could come from there."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tests.support import ROOT
from tests.support.doc_blocks import PAGES, blocks

NAME = "nimbus-datagen"
_NAME = r"(?<![\w./-])nimbus[-_.]datagen(?![\w/-]|\.\w)"
_OF_A_FILE = r"(?!\s*(?:\[[\w, ]*\])?\s*@\s*file:)"
_INSTALLER = re.compile(
    rf"\b(?:pip[\d.]*|pipx|uv)(?:\s+\S+){{0,3}}?\s+(?:install|add|download|wheel|run)(?:\s+\S+){{0,8}}?\s+{_NAME}{_OF_A_FILE}",
    re.IGNORECASE,
)
"""Command of an installer with the name, also over several lines."""
_REQUIREMENT = re.compile(r"(?<![\w./-])nimbus[-_]datagen\s*(?:\[[\w, -]*\]|[=<>!~]=|[<>])" + _OF_A_FILE, re.IGNORECASE)
"""Name with an extra or a version, which only a requirement has."""
_LISTED = re.compile(rf"^\s*(?:-\s+)?{_NAME}\s*$", re.IGNORECASE | re.MULTILINE)
"""Line of a requirements file, or an item of a YAML list."""
_QUOTES = str.maketrans("\"'`,()", " " * 6)
SUFFIXES = {".md", ".py", ".toml", ".txt", ".yaml", ".yml", ".cfg", ".sh", ".j2", ".args", ""}


def requirements_in(text: str) -> list[str]:
    """Return the places of a text that name Nimbus as a requirement of an installer."""
    plain = text.translate(_QUOTES)
    return [
        " ".join(found[0].split()) for form in (_INSTALLER, _REQUIREMENT, _LISTED) for found in form.finditer(plain)
    ]


def dependencies(project: dict[str, Any]) -> Iterator[str]:
    """Yield all requirements in a ``pyproject.toml``."""
    table = project.get("project", {})
    yield from project.get("build-system", {}).get("requires", [])
    yield from table.get("dependencies", [])
    for group in (table.get("optional-dependencies", {}), project.get("dependency-groups", {})):
        yield from (line for lines in group.values() for line in lines if isinstance(line, str))


def from_an_index(line: str) -> bool:
    """Return True if pip looks for Nimbus on an index to satisfy a requirement."""
    try:
        wanted = Requirement(line)
    except InvalidRequirement:
        return False
    return canonicalize_name(wanted.name) == NAME and not (wanted.url or "").startswith("file:")


def sources() -> list[Path]:
    """Return the texts of the project: documentation, code, Makefile, projects and manifests; without the tests."""
    paths = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in ("benchmarks", "docs", "exts", "integrations", "requirements", "runner", "scenes", "skills", "tools"):
        paths += [Path(place, name) for place, _, names in os.walk(ROOT / folder) for name in names]
    return [path for path in paths if path.suffix in SUFFIXES and not path.is_symlink()]


def test_no_text_installs_nimbus_from_an_index():
    found = {path.relative_to(ROOT).as_posix(): requirements_in(path.read_text()) for path in sources()}
    assert len(found) > 1000
    assert {name: places for name, places in found.items() if places} == {}


def test_no_project_requires_nimbus_from_an_index():
    projects = [path.read_text() for path in sources() if path.name == "pyproject.toml"]
    shown = [block for page in PAGES for block in blocks(page, "toml") if "[project]" in block]
    assert len(projects) > 1 and shown
    lines = [line for text in (*projects, *shown) for line in dependencies(tomllib.loads(text))]
    assert len(lines) > 30 and not list(filter(from_an_index, lines))


@pytest.mark.parametrize(
    "text",
    [
        "pip install nimbus-datagen",
        "$ python3 -m pip install --upgrade 'nimbus-datagen[store]'",
        "needs torch: pip install\n'nimbus-datagen[train]'",
        "raise ImportError(\"type: pip install 'nimbus_datagen'\")",
        "RUN pip install --no-cache-dir boto3 Nimbus.Datagen",
        'run(["pip", "install", "nimbus-datagen"])',
        "uv add nimbus-datagen",
        "runtime_env:\n  pip:\n    - nimbus-datagen\n",
        "an image with 'nimbus-datagen[cluster]'",
        "nimbus-datagen==0.1.0",
        'dependencies = ["nimbus-datagen>=0.1"]',
    ],
)
def test_texts_that_install_from_an_index_are_found(text: str):
    assert requirements_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install -e '.[store]' -c constraints.txt",
        "pip install dist/nimbus_datagen-0.1.0-py3-none-any.whl",
        "pip install -e /CHECKOUT/exts/nimbus.datagen",
        "pip install 'nimbus-datagen[gym] @ file:///CHECKOUT'",
        'version("nimbus-datagen")',
        'name = "nimbus-datagen"',
        "isaacsim --enable nimbus.datagen",
    ],
)
def test_texts_without_an_index_are_not_found(text: str):
    assert not requirements_in(text)


def test_requirements_of_projects_are_told_apart():
    text = """
    [build-system]
    requires = ["nimbus_datagen"]
    [project]
    dependencies = ["Nimbus.Datagen[gym]>=0.1; python_version > '3'", "nimbus-datagen @ https://host/x.whl", "numpy"]
    [project.optional-dependencies]
    all = ["nimbus-datagen[store]", "nimbus-datagen @ file:///CHECKOUT"]
    """
    assert list(map(from_an_index, dependencies(tomllib.loads(text)))) == [True, True, True, False, True, False]
