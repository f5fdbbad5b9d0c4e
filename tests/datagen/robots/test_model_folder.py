"""Folder in which all files of a robot's model must lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.robots.model_folder import model_folder


@pytest.mark.parametrize("mark", ["dataset.json", "meta/info.json"])
def test_the_folder_of_a_model_is_not_above_its_dataset(tmp_path: Path, mark: str):
    """A dataset may come from another user, and the files beside it are private."""
    (tmp_path / "package.xml").touch()
    model = tmp_path / "robots/arm.xml"
    assert model_folder(model) == tmp_path
    (model.parent / mark).parent.mkdir(parents=True)
    (model.parent / mark).touch()
    assert model_folder(model) == model.parent
    (tmp_path / "package.xml").unlink()
    assert model_folder(model) == model.parent
