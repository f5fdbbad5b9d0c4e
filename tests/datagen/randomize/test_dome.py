"""Sky images: read correctly, relative to the task's folder, and drawn with all derived values."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.episode.layout import EpisodeKey, VisualLayout
from nimbus.datagen.errors import InputError
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.tasks.checks.names import check_task
from nimbus.datagen.tasks.task import Task, parse_task
from nimbus.datagen.textures.environment_map import hash_map, hemispheres, read_radiance
from tests.support import ROOT
from tests.support.one_can import TEXT, assets
from tests.support.refusals import refusal

SKY = ROOT / "tests/support/sky.hdr"
DOME = "randomize: {dome: {textures: [skies/sky.hdr], intensity: 2}, light: {}}\n"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "skies").mkdir()
    shutil.copy(SKY, tmp_path / "skies")
    return parse_task(TEXT + DOME, name="t", folder=tmp_path)


def look(task: Task) -> VisualLayout:
    physical = draw_physical(task, assets(), seed=1, index=0)
    key = EpisodeKey(task="t", task_hash="h", seed=1, index=0)
    return draw_visual(task, assets().stage, assets().robot, physical, key=key)


def plain(pixels: np.ndarray) -> bytes:
    """Return an image whose rows are not compressed."""
    size = f"-Y {len(pixels)} +X {pixels.shape[1]}\n".encode()
    return b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n" + size + pixels.tobytes()


def test_a_packed_picture_is_read_as_it_was_painted():
    picture = read_radiance(SKY)
    assert picture.shape == (8, 16, 3)
    np.testing.assert_allclose(picture[0, 0], (0.5, 0.7, 1.0), atol=1 / 64)
    np.testing.assert_allclose(picture[1, 3], (40, 38, 30), atol=0.5)
    np.testing.assert_allclose(picture[7, 0], (0.3, 0.2, 0.1), atol=1 / 256)


@given(seed=st.integers(0, 2**31), height=st.integers(2, 6), width=st.integers(1, 20))
def test_plain_pixels_are_read_bit_by_bit(tmp_path_factory: pytest.TempPathFactory, seed, height, width):
    pixels = np.random.default_rng(seed).integers(3, 256, (height, width, 4), dtype=np.uint8)
    pixels[..., 3] *= pixels[..., 0] > 20  # an exponent of 0 is black
    path = tmp_path_factory.getbasetemp() / "plain.hdr"
    path.write_bytes(plain(pixels))
    scale = np.where(pixels[..., 3:] > 0, np.ldexp(1.0, pixels[..., 3:].astype(int) - 136), 0.0)
    np.testing.assert_array_equal(read_radiance(path), (pixels[..., :3] * scale).astype(np.float32))


@given(cut=st.integers(0, SKY.stat().st_size - 1))
def test_a_picture_that_is_cut_off_is_one_line(tmp_path_factory: pytest.TempPathFactory, cut: int):
    path = tmp_path_factory.getbasetemp() / "cut.hdr"
    path.write_bytes(SKY.read_bytes()[:cut])
    with pytest.raises(InputError, match="not a readable environment map") as error:
        read_radiance(path)
    assert len(str(error.value).splitlines()) == 1
    assert "index" not in str(error.value)


HEAD = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n"
PACKED = SKY.read_bytes()[: -len(SKY.read_bytes().split(b"+X 16\n", 1)[1])]
WRONG = [
    (plain(np.full((1, 16, 4), 130, np.uint8)), "one row of pixels shows either sky or ground"),
    (PACKED, "it is cut off"),
    (PACKED + b"\2\2\0\x10", "it is cut off"),
    (HEAD + b"-Y x +X y\n", "its size line is '-Y x +X y'; expected a line such as -Y 512 +X 1024"),
    (HEAD + b"-Y -4 +X -4\n", "its size line is '-Y -4 +X -4'"),
    (HEAD, "its size line is ''"),
    (HEAD + b"+Y 4 +X 4\n", "its rows are not in the order -Y "),
    (
        SKY.read_bytes().replace(b"\n", b"\r\n"),
        "its header does not end with an empty line; every line must end with LF",
    ),
    (b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 8192 +X 16384\n", "16384 x 8192 pixels; the limit is 8192 x 4096"),
]


@pytest.mark.parametrize(("content", "line"), WRONG, ids=range(len(WRONG)))
def test_a_picture_that_cannot_be_read_says_what_is_wrong_with_it(tmp_path: Path, content: bytes, line: str):
    path = tmp_path / "wrong.hdr"
    path.write_bytes(content)
    assert f"not a readable environment map: {line}" in refusal(read_radiance, path)


def test_the_size_that_is_checked_is_the_size_that_is_read(tmp_path: Path):
    """FFmpeg ends the header at a line that begins with NUL, so it once read another size line than the checked one."""
    head, pixels = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\0x\n-Y 16 +X 16\n.\n\n-Y 8 +X 8\n", bytes(range(128)) * 16
    (tmp_path / "sky.hdr").write_bytes(head + pixels)
    assert read_radiance(tmp_path / "sky.hdr").shape == (8, 8, 3)


def test_light_from_above_and_below_is_weighed_by_the_part_of_the_sky_it_comes_from():
    picture = np.zeros((180, 4, 3), np.float32)
    picture[:90] = 1.0
    above, below = hemispheres(picture)
    assert (above, below) == (pytest.approx(1.0), pytest.approx(0.0))
    picture[:] = 0.0
    picture[:30] = 1.0  # within 30 degrees of straight up
    above, _ = hemispheres(picture)
    assert above == pytest.approx(1 - np.cos(np.radians(30)), abs=1e-3)


def test_the_dome_is_drawn_and_the_default_renderers_sky_has_its_colours(task: Task):
    shown = look(task)
    assert shown.dome is not None and Path(shown.dome.texture).is_absolute()
    assert Path(shown.dome.texture).read_bytes() == SKY.read_bytes()
    assert (shown.light.sky, shown.light.ground) == (shown.dome.sky, shown.dome.ground)
    np.testing.assert_allclose(shown.light.ground, (0.6, 0.4, 0.2), atol=0.02)
    assert shown.light.color == look(parse_task(TEXT + "randomize: {light: {}}\n", name="t")).light.color
    assert shown.drawn["dome"]["content"] == shown.dome.content


def test_a_picture_that_is_not_there_is_told_at_its_field(task: Task, tmp_path: Path):
    libraries, stage = assets().libraries, assets().stage
    check_task(task, stage, (), libraries)
    (tmp_path / "skies/sky.hdr").unlink()
    gone = parse_task(TEXT + DOME.replace("sky.hdr", "other.hdr"), name="t", folder=tmp_path)
    with pytest.raises(InputError, match=r"randomize\.dome\.textures: .*other\.hdr: no such file"):
        check_task(gone, stage, (), libraries)


def test_another_image_than_a_layout_states_is_not_read():
    """A stored layout may name any file."""
    content = hash_map(SKY.read_bytes())
    assert read_radiance(SKY, content=content).shape == (8, 16, 3)
    assert "has changed since the episode was generated" in refusal(read_radiance, SKY, content="0" * 16)
