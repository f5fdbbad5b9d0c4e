"""Files that USD uses for a stage: only those that were listed, checked and hashed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nimbus.datagen.navigate.read.usd_stage import usd_files
from nimbus.datagen.objects.imported.read_usd import read_usd
from nimbus.datagen.objects.imported.scene_check import read_scene, stage_files
from nimbus.datagen.objects.imported.used_files import check_used_files
from nimbus.datagen.usd.stage import _files
from tests.support.refusals import refusal

SAID = '#usda 1.0\n(\n defaultPrim = "World"\n expressionVariables = {{\n  string PIC = "{}"\n }}\n)\n'
ROOM = SAID.format("../private") + 'def Xform "World" (\n references = @./part.usda@\n)\n{\n}\n'
TEXTURE = 'def Shader "paint"\n{\n asset inputs:file = @`"./${PIC}.png"`@\n}\n'
LATER = 'def Shader "paint"\n{\n asset[] inputs:file.timeSamples = { 3: [@`"./${PIC}.png"`@] }\n}\n'
REFERENCE = 'def "part" (\n references = @`"./${PIC}.usda"`@\n)\n{\n}\n'


def opened(path: Path) -> Any:
    from pxr import Usd

    return Usd.Stage.Open(str(path))


def scene(folder: Path, inside: str) -> Path:
    """Write a scene whose part names one file by itself, and another one where the room refers to it."""
    (folder / "scene").mkdir()
    for name in ("private", "scene/decoy"):
        (folder / f"{name}.png").write_bytes(b"pixels")
        (folder / f"{name}.usda").write_text('#usda 1.0\n(\n defaultPrim = "a"\n)\ndef "a"\n{\n}\n')
    (folder / "scene/part.usda").write_text(f'{SAID.format("decoy")}def Xform "World"\n{{\n{inside}}}\n')
    room = folder / "scene/room.usda"
    room.write_text(ROOM)
    return room


@pytest.mark.parametrize("inside", [TEXTURE, LATER, REFERENCE])
def test_a_file_that_is_composed_but_not_listed_is_refused(tmp_path: Path, inside: str):
    """Else a private file of the user would be drawn into the dataset."""
    room = scene(tmp_path, inside)
    told = refusal(check_used_files, opened(room), _files(room), room)
    assert f"uses '{tmp_path}/private" in told


@pytest.mark.parametrize("read", [read_scene, usd_files, stage_files, read_usd])
def test_no_stage_of_others_has_expression_variables(tmp_path: Path, read):
    room = scene(tmp_path, TEXTURE)
    assert "has expression variables" in refusal(read, str(room) if read is read_scene else room)


def test_a_reference_that_is_an_expression_is_refused(tmp_path: Path):
    path = tmp_path / "a.usda"
    path.write_text('#usda 1.0\ndef "a" (\n references = @`"./b.usda"`@\n)\n{\n}\n')
    assert "refers to the expression" in refusal(read_scene, str(path))


def test_listed_files_may_be_used(tmp_path: Path):
    room = scene(tmp_path, LATER)
    check_used_files(opened(room), [*_files(room), tmp_path / "private.png"], room)


def test_the_check_changes_no_layer(tmp_path: Path):
    path = tmp_path / "a.usda"
    path.write_text('#usda 1.0\ndef "a"\n{\n asset none = @@\n asset same = @`"./a.usda"`@\n}\n')
    stage = opened(path)
    before = stage.GetRootLayer().ExportToString()
    stage_files(path)
    assert stage.GetRootLayer().ExportToString() == before


def test_a_file_under_another_type_is_compared_too(tmp_path: Path):
    """USD states the strongest type of an attribute, and the value may be a weaker one."""
    room = scene(tmp_path, TEXTURE.replace('`"./${PIC}.png"`', "./t.<UDIM>.png"))
    (tmp_path / "scene/t.1001.png").write_bytes(b"listed")
    (tmp_path / "scene/t.<UDIM>.png").symlink_to("../private.png")
    room.write_text(room.read_text()[:-2] + ' over "paint"\n {\n  string inputs:file\n }\n}\n')
    assert "t.<UDIM>.png', which is not among" in refusal(check_used_files, opened(room), _files(room), room)


def test_a_scene_may_refer_to_itself(tmp_path: Path):
    path = tmp_path / "a.usda"
    path.write_text('#usda 1.0\ndef "a"\n{\n}\ndef "b" (\n references = </a>\n)\n{\n}\n')
    assert read_scene(str(path)) == [str(path)]
