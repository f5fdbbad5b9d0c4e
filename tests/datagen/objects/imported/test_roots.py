"""References of an asset to other files: found below its root, and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.assets import digests
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported import roots
from nimbus.datagen.objects.imported.roots import below


def test_a_path_of_another_machine_is_found(tmp_path: Path):
    (tmp_path / "meshes/textures").mkdir(parents=True)
    (tmp_path / "meshes/textures/a.png").touch()
    for name in ("textures/a.png", "/elsewhere/meshes/textures/a.png", "package://p/textures/a.png", "C:\\a.png"):
        assert below(tmp_path, tmp_path / "meshes", name) == "meshes/textures/a.png"
    assert below(tmp_path, tmp_path / "meshes", "../../a.png") == "meshes/textures/a.png"


@pytest.mark.parametrize("name", ["a/" * 100_000 + "b.png", "x" * 100_000, "../" * 33 + "b.png"])
def test_a_long_reference_is_not_searched(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(roots.Path, "resolve", lambda _: pytest.fail("searched"))
    assert below(tmp_path, tmp_path, name) == ""


def test_references_are_counted(tmp_path: Path):
    names = "".join(f"mtllib {number}.mtl\n" for number in range(2001))
    (tmp_path / "a.obj").write_text(names)
    with pytest.raises(InputError, match="names 2001 files; the limit is 2000"):
        list(digests._references(tmp_path, "a.obj"))
    (tmp_path / "a.obj").write_text(100_000 * "mtllib a.mtl\n")
    (tmp_path / "a.mtl").write_text("newmtl a\n")
    assert list(digests._references(tmp_path, "a.obj")) == ["a.mtl"]
