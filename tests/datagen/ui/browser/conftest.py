"""A running studio without a browser."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.runs import run
from tests.support.shared import make_once


@pytest.fixture(scope="session")
def served_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if importlib.util.find_spec("viser") is None:
        pytest.skip("viser is not installed")
    from nimbus.datagen.ui.browser.studio import Studio
    from nimbus.runner.system.threads import prepare_libraries

    prepare_libraries()
    base = tmp_path_factory.getbasetemp()  # its parent has what test processes share
    folders = {"folder": tmp_path_factory.mktemp("studio"), "folders": [base, base.parent]}
    studio = Studio("sort_trash", host="127.0.0.1", port=8300, **folders)
    assert studio.tasks.wait(timeout=300)
    yield studio
    studio.close()


@pytest.fixture
def studio(served_studio: Any) -> Iterator[Any]:
    """Return the studio with sort_trash; every change is undone."""
    studio, home = served_studio, served_studio.draft
    yield studio
    assert studio.tasks.wait(timeout=300)
    while studio.draft.can_undo:
        studio.draft.undo()
    studio.draft.save(over_others=True)
    if studio.draft is not home:
        home.path.unlink(missing_ok=True)
        studio.editor.open("sort_trash")
    assert studio.tasks.wait(timeout=300)
    studio.editor.report("")


@pytest.fixture
def moving(studio: Any) -> Any:
    """Show a motion of thirty steps in which everything rises."""
    from nimbus.datagen.ui.scene_look import Plot

    look = studio.player.look
    rise = np.linspace(0, 0.2, 30)[:, None, None] * (0, 0, 1)
    motion = replace(
        look.motion,
        positions=look.motion.positions[:1] + rise,
        wxyz=np.repeat(look.motion.wxyz[:1], 30, axis=0),
        plots=tuple(Plot(title=name, names=("a", "b"), rows=rise[:, 0, :2]) for name in ("one", "other")),
    )
    studio.player.show(replace(look, motion=motion), "rising")
    assert studio.tasks.wait(timeout=300)
    yield studio
    studio.player.show(look, "")


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:

    def make(folder: Path) -> None:
        assert run("--episodes", "1", out=folder) == 0

    return make_once(tmp_path_factory, "one_episode", make)
