"""Datasets of other users that become far larger when they are read."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from nimbus.datagen.store.episode_file import contents
from nimbus.datagen.store.episode_file.content_check import content_hash
from nimbus.datagen.store.episode_file.read import EpisodeFile
from tests.support.refusals import refusal
from tests.support.synthetic import make_rendered, write_dataset

BOMB = zlib.compress(bytes(3 << 20), 9)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(contents, "_HARMLESS", 1000)
    write_dataset(tmp_path, [make_rendered()])
    return next((tmp_path / "episodes").glob("*.hdf5"))


def replace_by_bomb(file: h5py.File, name: str, *, filters: int = 1) -> None:
    old, stream = file[name], BOMB
    assert isinstance(old, h5py.Dataset)
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    created.set_chunk(old.chunks or old.shape)
    created.set_deflate(1)
    for _ in range(filters - 1):
        created.set_deflate(1)
        stream = zlib.compress(stream)
    dtype, space = h5py.h5t.py_create(old.dtype), h5py.h5s.create_simple(old.shape)
    del file[name]
    made = h5py.h5d.create(file.id, name.encode(), dtype, space, created)
    made.write_direct_chunk((0,) * len(old.shape), stream)


def repeat_one_text(file: h5py.File, name: str) -> None:
    del file[name]
    made = file.create_dataset(name, (3000,), h5py.string_dtype(), chunks=(3000,), compression="gzip")
    made[0] = "x" * 10_000
    file.flush()
    _, stream = made.id.read_direct_chunk((0,))
    made.id.write_direct_chunk((0,), zlib.compress(zlib.decompress(stream)[:16] * 3000))


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("time", replace_by_bomb, "expands to more than its"),
        ("time", lambda file, name: replace_by_bomb(file, name, filters=2), "other filters than"),
        ("observations/images/front", replace_by_bomb, "expands to more than its"),
        ("observations/depth/front", replace_by_bomb, "expands to more than its"),
        ("skills/skill", repeat_one_text, "values of variable length"),
    ],
)
def test_datasets_that_expand_are_refused(
    path: Path, name: str, spoil: Callable[[h5py.File, str], None], said: str
) -> None:
    with h5py.File(path, "r+") as file:
        spoil(file, name)
    with EpisodeFile(path) as episode:
        assert said in refusal(content_hash, episode)


def test_large_chunks_are_refused(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        shape = file["time"].shape  # pyright: ignore[reportAttributeAccessIssue]
        del file["time"]
        file.create_dataset("time", shape, float, maxshape=(None,), chunks=(1 << 26,))
    with EpisodeFile(path) as episode:
        assert "has chunks of" in refusal(episode.array, "time")


def test_unknown_datasets_are_not_read(path: Path) -> None:
    with EpisodeFile(path) as episode:
        before = content_hash(episode).hexdigest()
    with h5py.File(path, "r+") as file:
        file["other"] = np.zeros(8)
        repeat_one_text(file, "other")
    with EpisodeFile(path) as episode:
        assert content_hash(episode).hexdigest() == before


def test_attributes_with_lists_are_refused(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["episode_id"] = ["x" * 1000] * 3
    with EpisodeFile(path) as episode:
        assert "a list" in refusal(lambda: episode.episode_id)


def test_deeply_nested_groups_are_refused(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.create_group("/".join("a" * 12))
    with EpisodeFile(path) as episode:
        assert "nested more than 8 deep" in refusal(lambda: list(episode.paths()))


def test_groups_that_contain_themselves_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_MOST_ENTRIES", 100)
    with h5py.File(path, "r+") as file:
        group = file.create_group("a")
        for number in range(20):
            group[str(number)] = group
    with EpisodeFile(path) as episode:
        assert "more than 100 entries" in refusal(lambda: list(episode.paths()))
