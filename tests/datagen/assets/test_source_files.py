"""No link in a source leads the import to a file outside of it, and all its modules read by one."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trimesh

from nimbus.datagen.assets import digests, licenses
from nimbus.datagen.assets.found import FoundAsset, FoundPart
from nimbus.datagen.assets.layouts import recognize
from tools.sources import ROOTS, parse

SECRET = "hunter2"
OBJECT = "0123456789abcdef0123456789abcdef"
DOOR = """<robot name="cabinet"><link name="base"/><link name="machine"><visual><geometry>
  <mesh filename="door.obj"/></geometry></visual></link><joint name="j" type="revolute"><limit lower="0" upper="1"/>
  <parent link="base"/><child link="machine"/></joint></robot>"""
TEXTS = {
    "46440/semantics.txt": f"machine hinge {SECRET}",
    "46440/meta.json": json.dumps({"model_cat": SECRET}),
    "Shoe/metadata.pbtxt": f'categories {{ first: "{SECRET}" }}',
    "001_bottle/model_data0.json": json.dumps({"scale": 4711}),
    "lvis-annotations.json": json.dumps({SECRET: [OBJECT]}),
}
"""Texts that published datasets keep beside their assets."""
MESHES = ("46440/door.obj", "Shoe/meshes/model.obj", f"{OBJECT}.glb", "001_bottle/visual/base0.glb")


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Return a source with assets of the layouts that have texts beside them, and without these texts."""
    for name in MESHES:
        (tmp_path / "pack" / name).parent.mkdir(parents=True, exist_ok=True)
        trimesh.creation.box((1, 1, 1)).export(tmp_path / "pack" / name)
    (tmp_path / "pack/46440/mobility.urdf").write_text(DOOR)
    return tmp_path / "pack"


def test_texts_beside_assets_are_read(pack: Path):
    for name, text in TEXTS.items():
        plain = str(recognize(str(pack)))
        (pack / name).write_text(text)
        assert str(recognize(str(pack))) != plain, name


@pytest.mark.parametrize("name", TEXTS)
def test_text_that_is_a_link_out_of_the_source_is_not_read(pack: Path, name: str):
    before = recognize(str(pack))
    (pack.parent / "private").write_text(TEXTS[name])
    (pack / name).symlink_to(pack.parent / "private")
    assert recognize(str(pack)) == before


@pytest.mark.parametrize("name", ["LICENSE", "a.dist-info/METADATA", "a.dist-info/licenses/LICENSE"])
def test_license_that_is_a_link_out_of_the_source_is_not_read(pack: Path, name: str):
    private, place = pack.parent / "private", pack / name
    private.write_text("License: GPL-3.0\n")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(private)
    licenses.forget_licenses()
    assert "GPL" not in licenses.find_license(pack, "46440/door.obj")
    place.unlink()
    (pack / "named_here").write_text("License: GPL-3.0\n")
    place.symlink_to(pack / "named_here")  # repositories link the license of each part to that of the whole
    licenses.forget_licenses()
    assert licenses.find_license(pack, "46440/door.obj") == "GPL-3.0"


def test_link_beside_a_stage_is_not_hashed(pack: Path):
    asset = FoundAsset(name="a", path="a.usda", layout="mesh", parts=(FoundPart(mesh="a.usda"),))
    (pack / "a.usda").write_text("#usda 1.0\n")
    private, found = pack.parent / "private", set()
    (pack / "look.png").symlink_to(private)
    for text in ("one", "other"):
        private.write_text(text)
        digests.forget_digests()
        found.add(digests.digest_asset(pack, asset))
    assert len(found) == 1
    (pack / "own.png").write_text("one")
    digests.forget_digests()
    assert digests.digest_asset(pack, asset) not in found


def _readings(tree: ast.Module) -> Iterator[str]:
    """Yield the calls of a module that read or list files by themselves; those without links are left out."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            is_strict = any(given.arg == "follow" and ast.unparse(given.value) == "False" for given in call.keywords)
            if name in READINGS and not is_strict:
                yield f"{name}, line {call.lineno}"


READINGS = {
    "open",
    "read_bytes",
    "read_text",
    "read_plain",
    "read_typed",
    "file_digest",
    "rglob",
    "loadtxt",
    "load_scene",
}


def test_other_modules_of_the_import_read_no_file_by_themselves():
    folder = ROOTS["nimbus.datagen"] / "assets"
    modules = [path for path in sorted(folder.rglob("*.py")) if path.name != "source_files.py"]
    assert len(modules) > 20
    assert {path.name: found for path in modules if (found := list(_readings(parse(path))))} == {}


@pytest.mark.parametrize("line", ["path.read_text()", "open(path)", "read_bytes(path)", "folder.rglob('*')"])
def test_other_readings_are_found(line: str):
    assert list(_readings(ast.parse(line)))
    assert not list(_readings(ast.parse("read_bytes(path, follow=False)")))
