"""Folder in which all files of a robot's model must lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.files.access_limits import landlock_version
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.robots.model_folder import check_inside, model_folders
from tests.support.refusals import refusal


@pytest.mark.parametrize("mark", ["dataset.json", "meta/info.json"])
def test_the_folder_of_a_model_is_not_above_its_dataset(tmp_path: Path, mark: str):
    """A dataset may come from another user, and the files beside it are private."""
    (tmp_path / "package.xml").touch()
    model = tmp_path / "robots/arm.xml"
    assert tmp_path / "meshes" in model_folders(model)
    (model.parent / mark).parent.mkdir(parents=True)
    (model.parent / mark).touch()
    assert model_folders(model) == (model.parent,)
    (tmp_path / "package.xml").unlink()
    assert model_folders(model) == (model.parent,)


@pytest.mark.parametrize("top", ["robot", "urdf", "mjcf"])
def test_folders_beside_a_model_belong_to_a_robot(tmp_path: Path, top: str):
    for place in (top, "meshes", "images"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a.obj").touch()
    for name in ("README.md", "LICENSE", "arm.urdf.xacro", "meta-information.json"):
        (tmp_path / name).touch()
    (tmp_path / ".github").mkdir()
    folders = model_folders(tmp_path / top / "arm.urdf")
    for place in (top, "meshes"):
        check_inside(tmp_path / place / "a.obj", folders, "a.obj", "arm.urdf")
    (tmp_path / "textures").symlink_to("images")
    (tmp_path / "a.obj").touch()
    for name in ("images/a.obj", "textures/a.obj", "meshes/../a.obj"):
        assert "is outside of the robot's folder" in refusal(check_inside, tmp_path / name, folders, name, "arm.urdf")


@pytest.mark.parametrize("other", ["Pictures", ".cache"])
def test_the_name_of_a_models_folder_opens_no_private_folder(tmp_path: Path, other: str):
    """The archive of a robot chooses this name, and the user unpacks it among other files."""
    for place in ("robot", "meshes", "assets"):
        (tmp_path / place).mkdir()
    model = tmp_path / "robot/arm.urdf"
    assert tmp_path / "meshes" in model_folders(model)
    (tmp_path / other).mkdir()
    assert model_folders(model) == (model.parent,)


def test_a_package_is_its_folders_of_models_and_meshes(tmp_path: Path):
    """The archive of a robot may have its ``package.xml`` at the top, and be unpacked among other files."""
    model = tmp_path / "robots/one/arm.urdf"
    (tmp_path / "package.xml").touch()
    folders = model_folders(model)
    for name in ("meshes/a.obj", "robots/two/a.obj", "urdf/a.obj", "robots/one/a.obj"):
        check_inside(tmp_path / name, folders, name, "arm.urdf")
    for name in ("a.obj", "docs/a.obj", "bank/a.obj"):
        assert "is outside of the robot's folder" in refusal(check_inside, tmp_path / name, folders, name, "arm.urdf")


def read_beside(file: str, name: str) -> str:
    """Read a file beside the folder of a model; this is called in a limited process."""
    try:
        return (Path(file).parents[1] / name).read_text()
    except OSError as error:
        return error.strerror or ""


@pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
@pytest.mark.parametrize("mark", ["package.xml", "README.md"])
def test_a_link_in_the_folder_of_a_robot_opens_no_other_folder(tmp_path: Path, mark: str):
    for name in ("robot/urdf", "robot/meshes", "private"):
        (tmp_path / name).mkdir(parents=True)
    for name in (f"robot/{mark}", "robot/meshes/a.txt", "private/a.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "robot/textures").symlink_to(tmp_path / "private")
    (model := tmp_path / "robot/urdf/arm.urdf").write_text("<robot/>")
    assert tmp_path / "robot/textures" not in model_folders(model)

    def read(name: str) -> str:
        given = {"file": model, "name": name}
        return run_limited(f"{__name__}:read_beside", given, where="arm", reads=model_folders(model))

    assert read("meshes/a.txt") == "robot/meshes/a.txt"
    assert read("textures/a.txt") == "Permission denied"


def test_the_home_folder_is_no_folder_of_a_robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An archive may contain a ``package.xml`` beside its top folder."""
    model = tmp_path / "home/robot/arm.urdf"
    model.parent.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "home"):
        (folder / "package.xml").touch()
    (tmp_path / "home/meshes").mkdir()
    assert tmp_path / "home/meshes" in model_folders(model)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert model_folders(model) == (model.parent,)
    (model.parent / "package.xml").touch()
    assert model_folders(model) == (model.parent,)
