"""``nimbus objects``: list and contact sheet of the available objects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image
from trimesh.visual import ColorVisuals

from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.robots.robot import load_robot
from nimbus.runner.cli import main
from nimbus.runner.media import object_sheet


def test_it_lists_libraries_with_their_first_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["objects"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} >= {"trash", "blocks", "kitchen", "tools", "containers", "pegs", "beads"}
    assert any(line.startswith("trash") and "21 kinds  Household trash" in line for line in lines)


def test_it_tells_of_a_library_and_draws_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine").mkdir()
    for name, color in (("coral", (250, 40, 40, 255)), ("leaf", (40, 250, 40, 255))):
        box = trimesh.creation.box([0.05, 0.04, 0.03])
        box.visual = ColorVisuals(box, face_colors=color)
        box.export(tmp_path / "mine" / f"{name}.ply")
    sheet = tmp_path / "sheet.png"
    assert main(["objects", f"{tmp_path}/mine/", "--sheet", str(sheet)]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["kind", "class", "variants"] and [row.split()[0] for row in rows] == ["coral", "leaf"]
    assert all("50 x 40 x 30" in row and "24" in row and int(row.split()[-1]) > 5 for row in rows)
    with Image.open(sheet) as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    red = (pixels[..., 0] > 2 * pixels[..., 1]).nonzero()
    green = (pixels[..., 1] > 2 * pixels[..., 0]).nonzero()
    assert len(red[0]) > 2000 < len(green[0])
    assert red[1].max() < pixels.shape[1] / 2 < green[1].min()


def test_second_answer_builds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    assert main(["objects", "pegs"]) == 0
    first = capsys.readouterr().out
    with monkeypatch.context() as patch:
        patch.setattr(ObjectLibrary, "model", lambda *_: pytest.fail("a model is built"))
        assert main(["objects", "pegs"]) == 0
    assert capsys.readouterr().out == first
    (kept,) = (tmp_path / "figures").iterdir()
    kept.write_text("{")
    assert main(["objects", "pegs"]) == 0
    assert capsys.readouterr().out == first


def test_other_hand_or_version_counts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    library, gripper = open_library("pegs"), load_robot("panda").gripper.shape
    found = object_sheet.kind_figures(library, gripper)
    narrow = object_sheet.kind_figures(library, replace(gripper, opening=0.01))
    assert [one.grasps for one in found.values()] != [one.grasps for one in narrow.values()]
    monkeypatch.setattr(object_sheet, "GRASP_VERSION", object_sheet.GRASP_VERSION + 1)
    assert object_sheet.kind_figures(library, gripper) == found
    assert len(list((tmp_path / "figures").iterdir())) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["kitchn"], "unknown object library 'kitchn'; did you mean 'kitchen'"),
        (["beads", "--robot", "pandda"], "--robot: unknown robot 'pandda'; did you mean 'panda'"),
        (["beads", "--sheet", "sheet.odd"], "sheet.odd: cannot be written"),
        (["--sheet", "sheet.png"], "--sheet: a sheet shows one library"),
    ],
)
def test_what_it_cannot_tell_is_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["objects", *words]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
