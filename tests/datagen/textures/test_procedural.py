import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nimbus.datagen.errors import InputError
from nimbus.datagen.randomize.appearance import BACKDROP, FLOOR, TABLE
from nimbus.datagen.textures.environment_map import read_radiance
from nimbus.datagen.textures.procedural import picture_hash, procedural_texture, read_picture, texture_names
from tests.support.refusals import refusal


def saved(path: Path, picture: Image.Image, **settings) -> np.ndarray:
    picture.save(path, **settings)
    return read_picture(path, picture_hash(path))


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


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_a_picture_of_16_bits_keeps_its_tones(tmp_path: Path, suffix: str):
    tones = np.linspace(0, 65535, 64).astype(np.uint16)
    shown = saved(tmp_path / f"grey.{suffix}", Image.fromarray(np.tile(tones, (16, 1))))
    np.testing.assert_array_equal(shown, np.tile((tones // 257).astype(np.uint8)[:, None], (16, 1, 3)))


WRONG = [
    (
        Image.fromarray(np.zeros((16, 16), np.float32)),
        "32-bit numbers has no defined white level; save it with 8 or 16 bits",
    ),
    (Image.fromarray(np.zeros((16, 16), np.int32)), "32-bit whole numbers has no defined white level"),
    (Image.new("RGB", (4, 90)), "4 x 90 pixels are too few for a texture; use at least 8 x 8"),
    (Image.new("RGB", (8, 20000)), "8 x 20000 pixels are too narrow for a texture; crop it to at most 48 times"),
]


@pytest.mark.parametrize(("picture", "line"), WRONG, ids=[line[:25] for _, line in WRONG])
def test_a_picture_that_is_no_texture_is_one_line(tmp_path: Path, picture: Image.Image, line: str):
    with pytest.raises(InputError, match=line):
        saved(tmp_path / "wrong.tif", picture)


def test_what_pillow_warns_of_is_not_poured_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 200)
    with warnings.catch_warnings(action="error"):
        shown = saved(tmp_path / "palette.png", Image.new("P", (16, 16)), transparency=b"\x10\x20")
    assert shown.shape == (16, 16, 3)


def test_a_pipe_is_no_picture(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.hdr")
    for read in (picture_hash, read_radiance):
        assert "is not a regular file" in refusal(read, tmp_path / "pipe.hdr")
