from dataclasses import replace

import numpy as np
import pytest

from nimbus.datagen.episode.layout import SurfaceLook
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.registry import lookup
from nimbus.datagen.render.newton import NewtonRenderer
from nimbus.datagen.stages import Planned, Request, Scene, TimedObservations
from nimbus.datagen.tasks.scene_assets import VisibleAssets
from nimbus.runner.isaac.job import RenderAssets
from tests.support.render_scene import layout, render, stage_and_robot, trajectory

LAYOUTS = (layout(), layout(surfaces={"table": SurfaceLook(texture="laminate")}))


def planned(*, success=True, variants=1) -> Planned[VisibleAssets]:
    stage, robot = stage_and_robot()
    scene = Scene(
        request=Request(index=0),
        assets=RenderAssets(stage=stage, robot=robot, libraries={"trash": open_library("trash")}),
        provenance=Provenance(task_text="", task_hash=""),
    )
    return Planned(
        scene=scene, layouts=LAYOUTS[:variants], trajectory=trajectory(success=success), attempt=1, times={"plan": 2.0}
    )


def test_a_plan_is_rendered_in_chunks_for_each_visual_variant():
    renderer = NewtonRenderer(stack=2)
    for rendered in renderer.process(planned(variants=2)):
        chunks = list(rendered.observations)
        assert [chunk.start for chunk in chunks] == [0, 2, 4]
        assert [chunk.step_count for chunk in chunks] == [2, 2, 1]
        assert rendered.labels is not None and rendered.attempt == 1


def test_layout_without_cameras_loads_no_renderer(monkeypatch: pytest.MonkeyPatch):
    item, renderer = planned(), NewtonRenderer()
    bare = replace(item.layouts[0], visual=replace(item.layouts[0].visual, cameras=()))
    monkeypatch.setattr(renderer, "_make", lambda *_, **__: pytest.fail("a renderer was made"))
    (rendered,) = renderer.process(replace(item, layouts=(bare,)))
    assert rendered.labels is None and list(rendered.observations) == []


def test_pixels_are_made_when_they_are_asked_for_in_renders_time():
    (rendered,) = NewtonRenderer(stack=1)(iter([planned()]))
    assert rendered.times["plan"] == 2.0 and rendered.times["render"] > 0
    shown = TimedObservations(rendered)
    observations = iter(shown)
    next(observations)
    first = shown.cpu_time
    assert first > 0
    next(observations)
    assert shown.cpu_time > first


def test_variants_may_be_read_after_all_were_taken():
    renderer = NewtonRenderer(stack=2)
    one, other = renderer.process(planned(variants=2))
    first, second = next(one.observations), next(other.observations)
    expected, _ = render(LAYOUTS[0], stack=2, steps=slice(0, 2))
    np.testing.assert_array_equal(first.cameras["front"].rgb, expected["front"].rgb)
    assert np.any(first.cameras["front"].rgb != second.cameras["front"].rgb)
    assert [chunk.start for chunk in one.observations] == [2, 4]


def test_a_failed_attempt_has_no_pictures():
    (rendered,) = NewtonRenderer().process(planned(success=False))
    assert rendered.labels is None
    assert list(rendered.observations) == []


def test_the_renderer_is_registered():
    assert lookup("render", "newton") is NewtonRenderer
