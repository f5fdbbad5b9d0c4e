import numpy as np
import pytest

from nimbus.datagen.randomize.material import BACKDROP, FLOOR, TABLE
from nimbus.datagen.render.textures import procedural_texture, texture_names


@pytest.mark.parametrize("name", texture_names())
def test_a_texture_is_neither_flat_nor_extreme_and_follows_its_seed(name):
    image = procedural_texture(name, 3)
    assert image.dtype == np.uint8 and image.shape[2] == 3
    assert 0.5 < image.astype(float).std(axis=(0, 1)).mean() < 70
    assert 25 < image.mean() < 245
    again = procedural_texture.__wrapped__(name, 3)
    np.testing.assert_array_equal(image, again)
    assert np.any(image != procedural_texture(name, 4))


@pytest.mark.parametrize("name", texture_names())
def test_a_texture_has_no_seam(name):
    image = procedural_texture(name, 5).astype(float)
    for axis in (0, 1):
        steps = np.abs(np.diff(image, axis=axis)).mean(axis=(1 - axis, 2))
        seam = np.abs(np.take(image, 0, axis) - np.take(image, -1, axis)).mean()
        assert seam <= steps.max() + 2.0


def test_every_texture_that_randomization_may_choose_exists():
    assert {*TABLE, *FLOOR, *BACKDROP} <= set(texture_names())
