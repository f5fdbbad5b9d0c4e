"""Layouts that each registered randomizer draws for the task with one can."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from nimbus.datagen import registry
from nimbus.datagen.episode.layout import EpisodeKey, PhysicalLayout, VisualLayout
from nimbus.datagen.randomize.base import LayoutRandomization
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.tasks.plugins import discover
from tests.support.one_can import TEXT, assets, task

discover()
NEEDED = {
    "distractors": {"region": "start", "count": [1, 3]},
    "dome": {"textures": [str(Path(__file__).with_name("sky.hdr"))]},
    "lights": {"count": [1, 3]},
    "push": {"time": [0, 0.01]},
    "textures": {"share": 1},
}
"""Values of parameters without a default, and of those needed for a draw."""
NAMES = [
    name
    for name in registry.names("randomizer")
    if issubclass(registry.lookup("randomizer", name), LayoutRandomization)
]


@lru_cache
def drawn(*names: str, index: int = 0) -> tuple[PhysicalLayout, VisualLayout]:
    text = TEXT + "randomize: " + json.dumps({name: NEEDED.get(name, {}) for name in names}) + "\n"
    physical = draw_physical(task(text), assets(), seed=1, index=index)
    key = EpisodeKey(task="t", task_hash="h", seed=1, index=index)
    return physical, draw_visual(task(text), assets().stage, assets().robot, physical, key=key)
