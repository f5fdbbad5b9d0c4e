"""Consecutive episodes in a stand-in for Isaac Sim: stages are closed, and progress is reported."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from nimbus.datagen import progress
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.render.isaacsim.renderer import IsaacSimRenderer
from nimbus.datagen.stages import Planned, Request, Scene
from nimbus.datagen.tasks.scene_assets import VisibleAssets
from nimbus.runner.isaac.job import RenderAssets
from tests.support.isaac_scene import HEIGHT, WIDTH, played_isaac
from tests.support.render_scene import STEPS, layout, stage_and_robot, trajectory
from tools.contract.rtx_behaviour import IsaacSim

BATCHES = math.ceil(STEPS / 2)


@pytest.fixture
def isaac() -> Iterator[IsaacSim]:
    with played_isaac() as played:
        yield played


def episode() -> Planned[VisibleAssets]:
    stage, robot = stage_and_robot()
    assets = RenderAssets(stage=stage, robot=robot, libraries={"trash": open_library("trash")})
    scene = Scene(request=Request(index=0), assets=assets, provenance=Provenance(task_text="", task_hash=""))
    return Planned(scene=scene, layouts=(layout(width=WIDTH, height=HEIGHT),), trajectory=trajectory())


def show(renderer: IsaacSimRenderer) -> None:
    for rendered in renderer.process(episode()):
        assert len(list(rendered.observations)) == BATCHES


def names(isaac: IsaacSim) -> list[str]:
    """Return the names of the calls since the last time."""
    done = [entry if isinstance(entry, str) else entry[0] for entry in isaac.done]
    isaac.done.clear()
    return done


def test_a_stage_is_left_stopped_and_without_sensors_before_the_next_one_is_opened(isaac: IsaacSim):
    renderer = IsaacSimRenderer(stack=2, warm_up=1, settle=1)
    show(renderer)
    assert names(isaac)[0] != "stop capture", "nothing was shown before"
    shown = renderer._shown
    assert shown is not None
    show(renderer)
    left = ["stop capture", "complete", "stop", "update"]
    assert names(isaac)[:4] == left
    assert shown[1]._sensors == {}
    assert [path.name for path in renderer._folder.path.iterdir()] == ["00002"], "the other is open no more"
    renderer.close()
    assert names(isaac) == left
    renderer.close()
    assert names(isaac) == []


def test_rounds_of_kits_loop_are_progress_while_a_stage_opens_and_not_while_it_renders(isaac: IsaacSim):
    told: list[object] = []
    progress.subscribe(lambda _: told.append("."), patience=told.append)
    try:
        renderer = IsaacSimRenderer(stack=2, warm_up=1, settle=1)
        show(renderer)
        last = len(told) - told[::-1].index(600.0)
        assert told[last:] == [0.0, *["."] * (2 * BATCHES - 1)], "of each batch its begin and its end"
        assert told.count(600.0) == 2, "the stage, and the first batch"
        opening = told[told.index(600.0) + 1 : told.index(0.0)]
        assert len(opening) >= 2 and set(opening) == {"."}
        told.clear()
        show(renderer)
        assert told.count(600.0) == 2, "the first batch of a stage waits for what is loaded late"
    finally:
        progress.subscribe(lambda _: None)
