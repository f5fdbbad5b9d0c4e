"""Golden values of drawn layouts, procedural textures, loaded scenes and written files."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.episode.layout import EpisodeKey
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.store.verify import dataset_hashes
from nimbus.datagen.tasks.plugins import discover, discover_components
from nimbus.datagen.tasks.task import Task, load_task
from nimbus.datagen.tasks.task_file import CameraSettings
from nimbus.datagen.textures.procedural import procedural_texture, texture_names
from tests.golden.values import GoldenFile, digest, leaves, sketch
from tests.golden.versions import GENERATOR, built_in, version_of
from tests.support import ROOT
from tests.support.one_can import TEXT, assets, task
from tests.support.synthetic import write_dataset

discover()
discover_components()
SKY = ROOT / "tests" / "support" / "sky.hdr"
SETTINGS: dict[str, dict[str, Any]] = {
    "distractors": {"region": "start", "count": [1, 3]},
    "dome": {"textures": [str(SKY)]},
    "lights": {"count": [1, 3]},
    "textures": {"share": 1},
}
"""Values of parameters without a default, and of those needed for a draw."""
FRONT = CameraSettings.model_validate(
    {"position": (1.5, 0.0, 0.95), "look_at": (0.4, 0.0, 0.14), "vertical_fov": "45 deg"}
)


TABLETOP = version_of("randomize", "tabletop") | GENERATOR


def layout(drawn_by: Task, scene: Any) -> dict[str, Any]:
    """Return the values of a layout by path; images are represented by their file names."""
    physical = draw_physical(drawn_by, scene, seed=3, index=1)
    key = EpisodeKey(task="golden", task_hash="0", seed=3, index=1, variant=1)
    visual = draw_visual(drawn_by, scene.stage, scene.robot, physical, key=key)
    plain = json.loads(json.dumps([asdict(physical), asdict(visual)]))
    if plain[0]["disturbance"] is None:
        del plain[0]["disturbance"]  # it is not stored either
    for camera in plain[1]["cameras"]:
        del camera["modalities"]  # this value comes from the task and is not drawn
        del camera["sensor"]["antialiasing"], camera["sensor"]["tone"]  # nor are these
    return {path: Path(value).name if isinstance(value, str) else value for path, value in leaves(plain)}


@lru_cache
def drawn(name: str) -> dict[str, Any]:
    """Return the layout of the small task with one randomizer, or with none."""
    text = TEXT + f"randomize: {json.dumps({name: SETTINGS.get(name, {})})}\n" if name else TEXT
    return layout(task(text), assets())


@pytest.mark.parametrize("name", built_in("randomizer"))
def test_randomizer_draws_golden_values(golden: GoldenFile, name: str) -> None:
    nominal = drawn("")
    changed = {path: value for path, value in drawn(name).items() if path not in nominal or nominal[path] != value}
    assert changed
    golden.check(f"randomizer {name}", digest(changed), version_of("randomizer", name) | TABLETOP)


@pytest.mark.parametrize("name", ["sort_trash", "cook_prep", "hang_ring"])
def test_nominal_layout_matches_golden_value(golden: GoldenFile, name: str) -> None:
    chosen = load_task(name)
    chosen = replace(chosen, cameras=dict(chosen.cameras) | {"front": FRONT})  # the task determines its position
    golden.check(f"layout of {name}", digest(layout(chosen, load_assets(chosen))), TABLETOP)


def test_loaded_scene_matches_golden_value(golden: GoldenFile) -> None:
    scene = assets()
    surfaces = {name: (surface.lower, surface.upper) for name, surface in scene.stage.surfaces.items()}
    fixtures = {name: (fixture.position, fixture.bounds) for name, fixture in scene.stage.fixtures.items()}
    reach = [np.mean(reached.cells) for reached in scene.reach.values()]
    value = [digest(surfaces, fixtures), *sketch(reach)]
    golden.check("load usd", value, version_of("load", "usd"), tolerance=0.02)


@pytest.mark.parametrize("name", texture_names())
def test_texture_matches_golden_digest(golden: GoldenFile, name: str) -> None:
    golden.check(f"texture {name}", digest(procedural_texture(name, 5)), version_of("render", "newton"))


def test_written_episodes_match_golden_hash(golden: GoldenFile, tmp_path: Path) -> None:
    write_dataset(tmp_path / "data")
    hashes = dataset_hashes(tmp_path / "data", fields=1)
    golden.check("store hdf5", [hashes[level][:12] for level in sorted(hashes)], version_of("store", "hdf5"))
