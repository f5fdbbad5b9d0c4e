"""What a lens and a sensor make of a picture."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Sensor
from nimbus.datagen.render.camera_model.lens import Lens
from tests.support.render_scene import layout as scene_layout
from tests.support.render_scene import render


@lru_cache
def seen(distortion: tuple[float, float] = (0.0, 0.0), sensor: Sensor = Sensor()):  # noqa: B008 (frozen)
    made = scene_layout()
    cameras = tuple(dataclasses.replace(each, distortion=distortion, sensor=sensor) for each in made.visual.cameras)
    shown, renderer = render(dataclasses.replace(made, visual=dataclasses.replace(made.visual, cameras=cameras)))
    return shown["front"], renderer


def test_a_barrel_draws_what_is_at_the_edge_towards_the_middle_and_labels_with_it():
    (plain, _), (bent, renderer) = seen(), seen((-0.1, 0.0))
    assert not np.array_equal(plain.rgb, bent.rgb) and np.array_equal(plain.intrinsics, bent.intrinsics)
    table = renderer.labels.instance_names.index("table")
    assert (bent.instance == table).sum() != (plain.instance == table).sum()
    for label in np.unique(bent.instance[0])[1:]:
        rows, columns = np.nonzero(bent.instance[0] == label)
        box = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
        assert tuple(bent.boxes_2d[0, label]) == box


def test_a_bent_pixel_shows_what_its_ray_meets():
    camera = dataclasses.replace(scene_layout().visual.cameras[0], distortion=(-0.3, 0.05))
    lens = Lens(camera)
    x, y = lens._rays(camera)
    square = x**2 + y**2
    factor = 1 - 0.3 * square + 0.05 * square**2
    focal = 0.5 * camera.height / math.tan(0.5 * camera.vertical_fov)
    u, v = np.meshgrid(np.arange(camera.width) + 0.5, np.arange(camera.height) + 0.5)
    assert np.allclose(x * factor * focal + camera.width / 2, u) and np.allclose(
        y * factor * focal + camera.height / 2, v
    )
    with pytest.raises(ValueError, match="folds the image"):
        Lens(dataclasses.replace(camera, distortion=(-5.0, 0.0)))


def test_exposure_brightens_blur_smooths_grain_roughens_and_labels_stay():
    plain, _ = seen()
    brighter, _ = seen(sensor=Sensor(exposure=1.0))
    blurred, _ = seen(sensor=Sensor(blur=1.5))
    grainy, _ = seen(sensor=Sensor(grain=0.05, seed=3))
    assert brighter.rgb.mean() > 1.2 * plain.rgb.mean()

    def roughness(frames) -> float:
        return float(np.abs(np.diff(frames.rgb.astype(float), axis=2)).mean())

    assert roughness(blurred) < 0.9 * roughness(plain) < 0.9 * roughness(grainy)
    noise = grainy.rgb.astype(float) - plain.rgb
    assert 0.03 < noise[(plain.rgb > 60) & (plain.rgb < 195)].std() / 255 < 0.06
    assert not np.array_equal(noise[0], noise[1]), "every step has its own"
    for frames in (brighter, blurred, grainy):
        assert np.array_equal(frames.instance, plain.instance) and np.array_equal(frames.depth, plain.depth)


def test_depth_gets_noise_that_grows_with_it_and_holes():
    plain, _ = seen()
    noisy, _ = seen(sensor=Sensor(depth_noise=0.01, depth_seed=3))
    holed, _ = seen(sensor=Sensor(depth_holes=0.1, depth_seed=3))
    hit = plain.depth > 0
    scaled = (noisy.depth - plain.depth)[hit] / plain.depth[hit] ** 2
    assert 0.008 < scaled.std() < 0.012 and np.array_equal(noisy.rgb, plain.rgb)
    assert 0.05 < ((holed.depth == 0) & hit).mean() < 0.15


def test_noise_of_a_step_does_not_depend_on_what_is_rendered_with_it():
    made = scene_layout()
    sensor = Sensor(grain=0.05, depth_noise=0.01, depth_holes=0.05, seed=3, depth_seed=4)
    cameras = tuple(dataclasses.replace(each, sensor=sensor) for each in made.visual.cameras)
    made = dataclasses.replace(made, visual=dataclasses.replace(made.visual, cameras=cameras))
    whole, _ = render(made)
    alone, _ = render(made, steps=slice(2, 3))
    assert np.array_equal(whole["front"].rgb[2], alone["front"].rgb[0])
    assert np.array_equal(whole["front"].depth[2], alone["front"].depth[0])
