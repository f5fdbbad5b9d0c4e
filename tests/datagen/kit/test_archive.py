"""The archive for Kit: complete, without links, and loadable without Nimbus's dependencies."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nimbus.datagen.ui.runs.launch import environment
from tests.support import ROOT

EXTENSION = ROOT / "exts/nimbus.datagen"
BLOCKED = "newton", "mujoco", "warp", "usdex", "pxr", "pydantic", "yaml", "scipy", "h5py"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    path = runpy.run_path(str(EXTENSION / "pack.py"))["pack"](folder)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder / "extsUser")
    return folder / "extsUser/nimbus.datagen"


def run(unpacked: Path, code: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = environment(os.environ) | {"PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, env=env, cwd=unpacked.parent, capture_output=True, text=True)


def test_the_rooms_are_real_folders_with_all_their_files(unpacked: Path):
    assert not [path for path in unpacked.rglob("*") if path.is_symlink()]
    for room in ("runner", "skills", "scenes"):
        there = {path.relative_to(ROOT / room) for path in (ROOT / room).rglob("*") if path.is_file()}
        packed = {path.relative_to(unpacked / "nimbus" / room) for path in (unpacked / "nimbus" / room).rglob("*")}
        wanted = {path for path in there if "__pycache__" not in path.parts and path.name != "make_labels.py"}
        assert wanted <= packed, room
    assert (unpacked / "config/extension.toml").read_bytes() == (EXTENSION / "config/extension.toml").read_bytes()
    assert (unpacked / "docs/CHANGELOG.md").read_bytes() == (ROOT / "CHANGELOG.md").read_bytes()


BLOCKER = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Blocker())
"""


def test_the_panel_loads_from_it_without_our_dependencies(unpacked: Path):
    code = f"""{BLOCKER}
import nimbus.datagen.ui.runs.run_panel as model
import nimbus.datagen.ui.remote.remote_panel, nimbus.datagen.ui.remote.editor_process
print(model.__file__)
"""
    done = run(unpacked, code)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()).is_relative_to(unpacked)


def test_the_extension_starts_from_it_in_kit_without_our_dependencies(unpacked: Path):
    code = f"""{BLOCKER}
sys.path.append({str(ROOT)!r})
from tools.contract.kit_behaviour import played_kit
with played_kit() as kit:
    import nimbus.datagen.kit
    extension = nimbus.datagen.kit.NimbusExtension()
    extension.on_startup("nimbus.datagen-0.1.0")
    kit.show("Tools/Replicator/Nimbus")
    print(nimbus.datagen.kit.__file__)
    extension.on_shutdown()
"""
    done = run(unpacked, code)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()).is_relative_to(unpacked)


def test_the_command_line_runs_from_it(unpacked: Path):
    code = "import sys; from nimbus.runner.cli import main; sys.exit(main())"
    done = run(unpacked, code, "tasks")
    assert (done.returncode, done.stderr) == (0, "")
    assert "sort_trash" in done.stdout


def test_the_same_files_give_the_same_archive(tmp_path: Path):
    pack = runpy.run_path(str(EXTENSION / "pack.py"))["pack"]
    assert pack(tmp_path / "a").read_bytes() == pack(tmp_path / "b").read_bytes()
