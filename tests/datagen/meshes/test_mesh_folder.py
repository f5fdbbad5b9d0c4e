"""Further files of meshes are regular files of the mesh's folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.meshes.mesh_folder import folder_resolver

ROOT = Path(__file__).resolve().parents[3]


def test_a_file_of_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "textures").mkdir()
    (tmp_path / "textures" / "a.png").write_bytes(b"1")
    assert folder_resolver(tmp_path / "a.obj").get(" textures/a.png") == b"1"


@pytest.mark.parametrize("name", ["../a.png", "{}/a.png", "link.png", "none.png", "a\0b", "a" * 300, "."])
def test_other_files_are_missing(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.png").write_bytes(b"1")
    (tmp_path / "mesh").mkdir()
    (tmp_path / "mesh" / "link.png").symlink_to(tmp_path / "a.png")
    with pytest.raises(FileNotFoundError):
        folder_resolver(tmp_path / "mesh" / "a.obj").get(name.format(tmp_path))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises((FileNotFoundError, InputError)):
        folder_resolver(tmp_path / "a.obj").get("a.png")


def test_every_mesh_is_loaded_with_a_resolver() -> None:
    """trimesh's own resolver opens pipes, and names from the home folder."""
    for folder in ("exts", "runner", "skills"):
        for path in (ROOT / folder).rglob("*.py"):
            for call in re.finditer(r"trimesh\.load\w*\(", text := path.read_text()):
                assert "resolver=" in text[call.end() : call.end() + 150], f"{path}: {call[0]} without resolver="
