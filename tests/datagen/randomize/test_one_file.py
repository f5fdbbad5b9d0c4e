"""A user's randomizer is one file in a folder, without other changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen import registry
from nimbus.datagen.errors import InputError
from nimbus.datagen.randomize.tabletop import draw_physical
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.task import load_task
from tests.support.one_can import TEXT, assets

CODE = '''
"""Height: things are dropped onto the table."""

import dataclasses

from pydantic import Field

from nimbus.datagen.files.quantities import Metres, Range
from nimbus.datagen.randomize.base import Draft, Draws, LayoutRandomization
from nimbus.datagen.registry import register
from nimbus.datagen.random_streams import Streams


@register("randomizer", "drop")
class DropRandomization(LayoutRandomization):
    """Lets objects fall from a little above the table."""

    part = "physical"
    height: Range[Metres] = Field((0.0, 0.02), description="above where they would rest")

    def draw(self, draft: Draft, streams: Streams) -> Draws:
        drawn = {item.name: float(streams(item.name).uniform(*self.height)) for item in draft.objects}
        draft.objects = [
            dataclasses.replace(item, position=(*item.position[:2], item.position[2] + drawn[item.name]))
            for item in draft.objects
        ]
        return drawn
'''


def test_one_file_is_a_kind_with_parameters_draws_and_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    discover()
    monkeypatch.setattr(registry, "_components", dict(registry._components))
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "drop.py").write_text(CODE)
    path = tmp_path / "task.yaml"
    path.write_text(TEXT + "randomize: {drop: {height: [1 cm, 2 cm]}, mass: {}}\n")
    task = load_task(path, skill_folders=[folder])
    physical = draw_physical(task, assets(), seed=0, index=0)
    path.write_text(TEXT + "randomize: {mass: {}}\n")
    without = draw_physical(load_task(path), assets(), seed=0, index=0)
    height = physical.drawn["drop"]["items_0"]
    assert 0.01 <= height <= 0.02
    assert physical.objects[0].position[2] == pytest.approx(without.objects[0].position[2] + height)
    assert physical.drawn["mass"] == without.drawn["mass"]
    path.write_text(TEXT + "randomize: {drop: {height: [2 cm, 1 cm]}}\n")
    with pytest.raises(InputError, match=r"randomize\.drop\.height"):
        load_task(path, skill_folders=[folder])
