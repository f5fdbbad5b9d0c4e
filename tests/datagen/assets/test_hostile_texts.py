"""Long and deep foreign texts of assets are read in linear time, or skipped without affecting the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.assets import digests, layouts, licenses, urdf

LONG = 300_000
"""Length of a text for which a regular expression with quadratic time takes minutes."""


def test_references_of_long_lines(tmp_path: Path):
    (tmp_path / "a.mtl").write_text("map_Kd  \nbump \x0b\nmap_Kd -s 1 a.png \r\nmap_Kd x" + " " * LONG + "y\n")
    (tmp_path / "a.png").touch()
    (tmp_path / "a.obj").write_text("mtllib x" + " \r" * LONG + "y\nmtllib a.mtl \r\n")
    assert set(digests._references(tmp_path, "a.obj")) == {"a.mtl", "a.png"}


def test_category_of_many_openings(tmp_path: Path):
    path = tmp_path / "metadata.pbtxt"
    path.write_text("categories {" * 80_000)
    assert layouts._pbtxt_category(tmp_path, path) == ""
    path.write_text('categories { last: "a" }\ncategories {\n first: "Shoe"\n}')
    assert layouts._pbtxt_category(tmp_path, path) == "Shoe"


def test_license_of_many_words(tmp_path: Path):
    info = tmp_path / "a.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("assets " * 100_000 + "\nThe assets here are licensed under CC0.\n")
    assert licenses.find_license(tmp_path, "b.obj") == "CC0-1.0"


@pytest.mark.parametrize("scale", ["1" + "0" * 400, "[NaN]", "[-1]", "[]", "Infinity", "[" * 100_000])
def test_scale_that_is_none(scale: str, tmp_path: Path):
    path = tmp_path / "model_data0.json"
    path.write_text('{"scale": ' + scale + "}")
    assert layouts._robotwin_scale(tmp_path, path)[0] is None


def test_deep_json_is_no_category(tmp_path: Path):
    path = tmp_path / "meta.json"
    path.write_text("[" * 100_000)
    assert urdf._category(tmp_path, path) == ""
    (tmp_path / "lvis-annotations.json").write_text("[" * 100_000)
    assert layouts._objaverse_categories(tmp_path, ["lvis-annotations.json"]) == {}
    (tmp_path / "a.gltf").write_text("[" * 100_000)
    assert digests._uris(tmp_path, tmp_path / "a.gltf") == []
