"""Names in the layout of a foreign episode: each command that uses them refuses wrong ones in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nimbus.runner.cli import main

OUT = "../../../out/x"
ONE_NAME, NO_BODY = "two of its objects have one name", "the trajectory has no body 'no_body'"


def name_camera(layout: Any) -> None:
    layout["visual"]["cameras"][0]["name"] = OUT


def name_object(layout: Any) -> None:
    layout["physical"]["objects"][0]["name"] = OUT


def name_group(layout: Any) -> None:
    layout["physical"]["objects"][0]["group"] = OUT


def name_link(layout: Any) -> None:
    layout["visual"]["cameras"][0]["mount"] = "no_body"


def rename_object(layout: Any) -> None:
    layout["physical"]["objects"][0]["name"] = "no_body"


def repeat_object(layout: Any) -> None:
    layout["physical"]["objects"] *= 2


def change_seed(layout: Any) -> None:
    layout["key"] |= {"seed": -5, "index": -1}


def store_changed(path: Path, change: Callable[[Any], None]) -> None:
    """Change the layout of an episode."""
    with h5py.File(path, "r+") as file:
        stored: Any = file["layout"]
        layout = json.loads(stored[()].decode())
        change(layout)
        del file["layout"]
        file["layout"] = np.bytes_(json.dumps(layout).encode())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (name_camera, "visual.cameras[0].name: "),
        (name_object, "physical.objects[0].name: "),
        (name_group, "physical.objects[0].group: "),
        (name_link, NO_BODY),
        (rename_object, NO_BODY),
        (repeat_object, ONE_NAME),
        (change_seed, "key."),
    ],
)
def test_wrong_names_are_refused_in_one_line(copy: Path, change: Callable[[Any], None], text: str, capsys):
    path = min((copy / "episodes").iterdir())
    store_changed(path, change)
    out = copy.parent / "out"
    commands = {
        "export-usd": ["--episode", str(copy), path.stem, "--out", str(out / "x.usda")],
        "rerender": [str(copy), path.stem, "--out", str(out)],
        "certify": [str(copy), "--sample", "all"],
    }
    for command, words in commands.items():
        assert main([command, *words]) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"{path}: cannot be read: layout: ") and text in line and line.count("\n") == 1
    assert not out.exists()


def remove_object(layout: Any) -> None:
    del layout["physical"]["objects"][0]


def start_another_joint(layout: Any) -> None:
    layout["physical"]["robot"] = {"start": {"no_joint": 1.0}}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (remove_object, "its layout and its trajectory have different bodies, for example '"),
        (start_another_joint, "its layout is of another robot: robot panda has no joint 'no_joint'; "),
    ],
)
def test_a_layout_of_another_scene_is_not_replayed(copy: Path, change: Callable[[Any], None], text: str, capsys):
    path = min((copy / "episodes").iterdir())
    store_changed(path, change)
    assert main(["replay", str(copy), path.stem]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: {text}") and "physics" not in line and line.count("\n") == 1
