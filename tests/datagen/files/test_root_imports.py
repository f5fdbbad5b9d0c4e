"""Packages that read the current folder are imported in the root folder, whoever imports them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nimbus.datagen.files.root_imports import import_in_root
from nimbus.datagen.policies.open_policy import open_policy
from nimbus.datagen.tasks.plugin_guard import guarded_import


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the current folder; a stand-in for PyTorch, which notes the current folder of its import, is installed."""
    (tmp_path / "site" / "torch").mkdir(parents=True)
    (tmp_path / "site" / "torch" / "__init__.py").write_text("import os; FOLDER = os.getcwd(); from torch import nn\n")
    (tmp_path / "site" / "torch" / "nn.py").write_text("import os; FOLDER = os.getcwd()\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(sys, "meta_path", [one for one in sys.meta_path if "root_imports" not in type(one).__module__])
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "foreign").mkdir()
    monkeypatch.chdir(tmp_path / "foreign")
    yield tmp_path / "foreign"
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        del sys.modules[name]


def folders() -> tuple[str, str]:
    import torch  # pyright: ignore[reportMissingImports]

    return torch.FOLDER, torch.nn.FOLDER


def test_without_the_finder_it_is_imported_in_the_current_folder(foreign: Path):
    assert folders() == (str(foreign), str(foreign))


def test_it_is_imported_in_the_root_folder(foreign: Path):
    for _ in range(2):
        import_in_root()
    assert folders() == ("/", "/")
    assert Path.cwd() == foreign
    assert len([one for one in sys.meta_path if "root_imports" in type(one).__module__]) == 1


def test_matplotlib_reads_no_settings_of_the_current_folder(foreign: Path):
    """Versions before 3.11 evaluate an expression in them."""
    (foreign / "matplotlibrc").write_text("lines.linewidth: 47.11\n")
    code = "import matplotlib; print(matplotlib.matplotlib_fname(), matplotlib.rcParams['lines.linewidth'])"
    safe = f"from nimbus.datagen.files.root_imports import import_in_root; import_in_root(); {code}"
    lines = [subprocess.check_output([sys.executable, "-P", "-c", one], text=True) for one in (code, safe)]
    assert "47.11" in lines[0] and "47.11" not in lines[1]


def test_an_import_that_fails_returns_to_the_current_folder(foreign: Path):
    (foreign.parent / "site" / "torch" / "nn.py").write_text("raise OSError('no library')\n")
    import_in_root()
    with pytest.raises(OSError, match="no library"):
        folders()
    assert Path.cwd() == foreign


def test_skills_import_it_in_the_root_folder(foreign: Path):
    with guarded_import():
        assert folders() == ("/", "/")


def test_policies_in_python_import_it_in_the_root_folder(foreign: Path):
    """Relative paths that the policy itself opens still begin in the current folder."""
    policy = foreign.parent / "mine.py"
    policy.write_text(
        "import os, torch\nclass Mine:\n    identity = f'{torch.FOLDER} {os.getcwd()}'\n    def act(self, seen): ...\n"
    )
    assert open_policy(f"{policy}:Mine").identity == f"/ {foreign}"
    assert os.getcwd() == str(foreign)
