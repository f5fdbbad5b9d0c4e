"""Effects of a lens and a sensor on an image."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import asdict
from functools import lru_cache

import numpy as np
import pytest

from nimbus.datagen.episode.layout import Sensor
from nimbus.datagen.randomize.camera import SensorRandomization
from nimbus.datagen.render.camera_model.lens import Lens
from nimbus.datagen.render.raytracer.kernel_data import BRIGHTEST, TONES
from nimbus.datagen.render.raytracer.tone_tables import BYTE_OF_LIGHT
from nimbus.datagen.store.episode_file.encode import _without_defaults
from nimbus.datagen.tasks.task_file import CameraSettings
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


def test_antialiasing_smooths_colors_and_keeps_labels():
    (plain, _), (smooth, _) = seen(), seen(sensor=Sensor(antialiasing=2))
    for name in ("depth", "instance", "semantic", "normals", "boxes_2d", "visibility"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(smooth, name))
    changed = np.abs(plain.rgb.astype(int) - smooth.rgb).max(axis=-1)
    label = plain.instance
    edge = np.zeros(label.shape, bool)
    edge[:, :, 1:] |= label[:, :, 1:] != label[:, :, :-1]
    edge[:, 1:] |= label[:, 1:] != label[:, :-1]
    assert changed[edge].mean() > 3 * changed[~edge].mean()
    assert abs(plain.rgb.mean() - smooth.rgb.mean()) < 1.5


def test_filmic_curve_deepens_shadows_and_keeps_middle_gray():
    plain, filmic = BYTE_OF_LIGHT["plain"].astype(int), BYTE_OF_LIGHT["filmic"].astype(int)
    at = [round(light / BRIGHTEST * TONES) for light in (0.02, 0.18, 1.0)]
    shadow, gray, white = (filmic[at] - plain[at]).tolist()
    assert shadow < -3 and abs(gray) <= 1 and white < 0
    assert np.all(np.diff(filmic) >= 0) and filmic[-1] <= 255
    (one, _), (other, _) = seen(), seen(sensor=Sensor(tone="filmic"))
    assert not np.array_equal(one.rgb, other.rgb) and np.array_equal(one.instance, other.instance)


def test_sensor_options_are_stored_where_they_are_used():
    plain, film = (asdict(scene_layout()) for _ in range(2))
    film["visual"]["cameras"][0]["sensor"] |= {"tone": "filmic"}
    grainy = asdict(scene_layout())
    grainy["visual"]["cameras"][0]["sensor"] |= {"grain": 0.01}
    stored = [_without_defaults(layout)["visual"]["cameras"][0].get("sensor") for layout in (plain, film, grainy)]
    assert stored[0] is None and stored[1]["tone"] == "filmic" and "antialiasing" not in stored[1]
    assert not {"tone", "antialiasing"} & set(stored[2])


def test_cameras_and_randomizer_take_sensor_options():
    settings = CameraSettings.model_validate({"position": (1, 0, 1), "look_at": (0, 0, 0), "vertical_fov": "45 deg"})
    assert not {"antialiasing", "tone"} & set(settings.model_dump())
    film = settings.model_copy(update={"antialiasing": 2, "tone": "filmic"})
    assert film.camera("front").sensor == Sensor(antialiasing=2, tone="filmic")
    assert not {"antialiasing", "tone"} & set(SensorRandomization.model_validate({}).model_dump())
