"""``nimbus export-usd``: stages that other USD programs open, with the content of the dataset."""
# The stubs of pxr say that most calls return None.
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.usd.layout_export import body_prims
from nimbus.datagen.usd.scene_stage import _Looks
from nimbus.datagen.usd.stage import read_stage
from nimbus.runner.cli import main
from tests.support import ROOT
from tests.support.usd_validation import validation_errors


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("usd") / "layout.usda"
    assert main(["export-usd", "sort_trash", "--seed", "3", "--index", "1", "--out", str(path)]) == 0
    return path


def opened(path: Path) -> Any:
    from pxr import Usd

    return Usd.Stage.Open(str(path))


def test_a_layout_passes_the_validators_of_usd(exported: Path):
    assert validation_errors(opened(exported)) == []


def test_a_layout_holds_objects_cameras_light_and_the_posed_robot(exported: Path):
    from pxr import UsdGeom, UsdPhysics

    stage = opened(exported)
    assert len(stage.GetPrimAtPath("/World/objects").GetChildren()) in (2, 3, 4)
    cameras = {prim.GetName() for prim in stage.Traverse() if prim.IsA(UsdGeom.Camera)}
    assert cameras == {"front", "camera_wrist"}
    assert stage.GetPrimAtPath("/World/Lights/sun").IsValid()
    bodies = body_prims(stage, read_stage("tabletop"))
    hand = np.array(UsdGeom.XformCache().GetLocalToWorldTransform(bodies["panda_hand"])).T
    assert hand[2, 3] > 0.2, "at home, not folded"
    drives = [prim for prim in stage.Traverse() if UsdPhysics.DriveAPI(prim, "angular")]
    home = np.degrees(load_robot("panda").arm.home)
    targets = [UsdPhysics.DriveAPI(prim, "angular").GetTargetPositionAttr().Get() for prim in drives]
    np.testing.assert_allclose(targets, home, rtol=1e-6)


def test_the_same_seed_gives_the_same_file(exported: Path, tmp_path: Path):
    again = tmp_path / exported.name
    assert main(["export-usd", "sort_trash", "--seed", "3", "--index", "1", "--out", str(again)]) == 0
    assert again.read_bytes() == exported.read_bytes()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["export-usd"], "a task or an episode is needed"),
        (["export-usd", "sort_trash", "--episode", "a", "b"], "a task or an episode is needed"),
        (["export-usd", "sort_tash"], "sort_trash"),
        (["export-usd", "sort_trash", "--out", "a.fbx"], "end it with .usda"),
    ],
)
def test_bad_input_is_one_line(words: list[str], line: str, capsys: pytest.CaptureFixture[str]):
    assert main(words) == 2
    assert line in capsys.readouterr().err


@pytest.mark.parametrize(("name", "why"), [("d.usda", "it is a folder"), ("file/a.usda", "is a file, not a folder")])
def test_a_place_where_no_stage_can_be_written_is_one_line(name: str, why: str, tmp_path: Path, capsys: Any):
    (tmp_path / "d.usda").mkdir()
    (tmp_path / "file").touch()
    assert main(["export-usd", "slide_block", "--out", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith(f"--out {tmp_path / name}: cannot be written: ") and why in said
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["d.usda", "file"]


def test_link_in_the_current_folder_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    """The current folder may be a dataset of another user."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("mine")
    for name in ("navigate_homes-scene-0.usda", "textures/abc.png"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).symlink_to(tmp_path / "mine")
    assert main(["export-usd", "navigate_homes"]) == 2
    assert "this is a link" in capsys.readouterr().err and (tmp_path / "mine").read_text() == "mine"
    Path("scene_textures").symlink_to("textures")
    with pytest.raises(InputError, match="this is a link"):
        _Looks(None, Path("scene.usda")).material(np.zeros((2, 2, 3), np.uint8), shines=False)


def test_scene_of_a_navigation_task_is_exported(tmp_path: Path):
    task = tmp_path / "drive.yaml"
    text = (ROOT / "scenes/tasks/navigate_homes.yaml").read_text()
    task.write_text(text.replace("{homes: 40, rooms: [4, 9]}", "{homes: 2, rooms: [2, 2]}"))
    path = tmp_path / "home.usda"
    assert main(["export-usd", str(task), "--out", str(path)]) == 0
    assert validation_errors(opened(path)) == []
    (tmp_path / "file").touch()
    assert main(["export-usd", str(task), "--out", str(tmp_path / "file/home.usda")]) == 2
