"""Folder in which all files of a robot's model must lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.robots.model_folder import check_inside, model_folders
from tests.support.refusals import refusal


@pytest.mark.parametrize("mark", ["dataset.json", "meta/info.json"])
def test_the_folder_of_a_model_is_not_above_its_dataset(tmp_path: Path, mark: str):
    """A dataset may come from another user, and the files beside it are private."""
    (tmp_path / "package.xml").touch()
    model = tmp_path / "robots/arm.xml"
    assert model_folders(model) == (tmp_path,)
    (model.parent / mark).parent.mkdir(parents=True)
    (model.parent / mark).touch()
    assert model_folders(model) == (model.parent,)
    (tmp_path / "package.xml").unlink()
    assert model_folders(model) == (model.parent,)


@pytest.mark.parametrize("top", ["robot", "urdf", "mjcf"])
def test_the_name_of_a_models_folder_opens_no_private_folder(tmp_path: Path, top: str):
    """The user unpacks it in the home folder; only folders of assets beside it belong to the robot."""
    for place in (top, "meshes", "Pictures"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a.obj").touch()
    folders = model_folders(tmp_path / top / "arm.urdf")
    for place in (top, "meshes"):
        check_inside(tmp_path / place / "a.obj", folders, "a.obj", "arm.urdf")
    (tmp_path / "textures").symlink_to("Pictures")
    (tmp_path / "a.obj").touch()
    for name in ("Pictures/a.obj", "textures/a.obj", "meshes/../a.obj"):
        assert "is outside of the robot's folder" in refusal(check_inside, tmp_path / name, folders, name, "arm.urdf")
