"""The facade from which plug-ins import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from nimbus.datagen import plugin
from nimbus.datagen.execute import toolkit
from tests.support import ROOT

DATAGEN = ROOT / "exts/nimbus.datagen/nimbus/datagen"
FACADES = {"nimbus.datagen.plugin", "nimbus.datagen.execute.toolkit"}


def imported(path: Path) -> set[str]:
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    return {node.module for node in nodes if node.module and node.module.startswith("nimbus")}


def test_facade_loads_no_simulator():
    code = "import sys, nimbus.datagen.plugin; print(*{'newton', 'warp', 'pxr', 'mujoco', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("module", [plugin, toolkit])
def test_facades_have_what_they_list(module):
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "skills").glob("[!_]*.py")), ids=lambda path: path.stem)
def test_skills_import_facades_only(path: Path):
    assert imported(path) <= FACADES | {"nimbus.datagen"}  # rotate asks the registry for pick


@pytest.mark.parametrize("path", sorted((DATAGEN / "success").glob("[!_]*.py")), ids=lambda path: path.stem)
def test_conditions_import_facades_only(path: Path):
    allowed = {"nimbus.datagen.success.placement", "nimbus.datagen.geometry.hulls"}
    assert imported(path) <= FACADES | allowed
