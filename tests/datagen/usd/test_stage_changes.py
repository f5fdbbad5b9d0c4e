"""Layers that change one stage into another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nimbus.datagen.usd.stage_changes import write_stage_changes


def test_changed_types_of_prims_are_written(tmp_path: Path):
    from pxr import Sdf, Usd

    for name, kind in (("before", "SphereLight"), ("after", "RectLight")):
        stage: Any = Usd.Stage.CreateNew(str(tmp_path / f"{name}.usda"))
        stage.DefinePrim("/World/lamp", kind)
        stage.Save()
    layer = tmp_path / "changes.usda"
    assert write_stage_changes(layer, before=tmp_path / "before.usda", after=tmp_path / "after.usda") == 1
    opened: Any = Usd.Stage.Open(*(Sdf.Layer.FindOrOpen(str(path)) for path in (tmp_path / "before.usda", layer)))
    assert opened.GetPrimAtPath("/World/lamp").GetTypeName() == "RectLight"
