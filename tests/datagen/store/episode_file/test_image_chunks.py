from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from nimbus.datagen.store.episode_file import image_chunks
from nimbus.datagen.store.episode_file.image_chunks import create_images, deflate, read_images, write_images
from nimbus.datagen.store.verify import dataset_hashes
from tests.support.synthetic import make_rendered, write_dataset

FRAMES = np.random.default_rng(0).integers(0, 9, (5, 24, 32, 3), dtype=np.uint8)


@pytest.fixture(params=["igzip", "zlib"])
def compressor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "zlib":
        monkeypatch.setattr(image_chunks, "isal_zlib", None)
    return request.param


@pytest.mark.parametrize("level", [1, 4, 9])
def test_plain_h5py_reads_images(tmp_path: Path, compressor: str, level: int) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        images = create_images(file, "images", FRAMES.shape, np.uint8, level=level)
        write_images(images, 0, FRAMES[:2], level=level)
        write_images(images, 2, FRAMES[2:], level=level)
    with h5py.File(tmp_path / "file.hdf5") as file:
        stored: Any = file["images"]
        assert np.array_equal(stored[()], FRAMES)
        assert (stored.chunks, stored.compression, stored.compression_opts) == ((1, 24, 32, 3), "gzip", level)


@given(arrays(st.sampled_from([np.uint8, np.uint16, np.float32]), array_shapes(max_dims=3, max_side=40)))
def test_any_array_comes_back(frame: np.ndarray) -> None:
    assert zlib.decompress(deflate(frame)) == frame.tobytes()


@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.float64])
def test_wide_values_are_shuffled_as_hdf5_does(tmp_path: Path, dtype: type[Any]) -> None:
    frames = np.random.default_rng(1).integers(0, 3000, (3, 10, 12)).astype(dtype)
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        write_images(create_images(file, "depth", frames.shape, dtype), 0, frames)
        stored: Any = file["depth"]
        assert stored.shuffle and np.array_equal(stored[()], frames)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("which", [2, -1, slice(1, 4), slice(0, 5, 2), slice(3, 3)])
def test_frames_read_as_h5py_reads_them(tmp_path: Path, compressor: str, dtype: type[Any], which: int | slice) -> None:
    frames = FRAMES.astype(dtype)
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        images = create_images(file, "images", frames.shape, dtype)
        write_images(images, 0, frames)
        found, expected = read_images(images, which), images[which]
        assert found.dtype == expected.dtype and np.array_equal(found, expected)


def test_frames_never_written_read_as_zeros(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        images = create_images(file, "images", FRAMES.shape, np.uint8)
        assert not read_images(images, 1).any()


@pytest.mark.parametrize("place", [20, -2])  # in the stream, and in its checksum
def test_damaged_frames_raise_as_in_h5py(tmp_path: Path, place: int) -> None:
    stream = bytearray(deflate(FRAMES[0]))
    stream[place] ^= 0xFF
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        images = create_images(file, "images", FRAMES.shape, np.uint8)
        images.id.write_direct_chunk((0, 0, 0, 0), bytes(stream))
        with pytest.raises(OSError, match="filter"):
            read_images(images, 0)


def test_frames_of_any_memory_order_come_back(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        images = create_images(file, "images", FRAMES[:, ::-1].shape, np.uint8)
        write_images(images, 0, FRAMES[:, ::-1])
        assert np.array_equal(images[()], FRAMES[:, ::-1])


def test_higher_levels_are_those_of_zlib() -> None:
    assert deflate(FRAMES, level=6) == zlib.compress(FRAMES.data, 6)


def test_content_is_equal_without_igzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(tmp_path / "fast", [make_rendered()])
    monkeypatch.setattr(image_chunks, "isal_zlib", None)
    write_dataset(tmp_path / "plain", [make_rendered()])
    assert dataset_hashes(tmp_path / "fast") == dataset_hashes(tmp_path / "plain")
