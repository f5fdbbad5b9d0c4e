"""An episode file that refers to other files, or needs a plug-in, causes one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.filter.expression import Condition
from nimbus.datagen.datasets.filter.native import filter_native
from nimbus.datagen.datasets.quality.checks import check
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import verify
from tests.support.export_formats import MANIPULATION_FORMATS
from tests.support.refusals import refusal
from tests.support.synthetic import make_rendered, write_dataset


def link(file: h5py.File, other: Path) -> None:
    del file["action"]
    file["action"] = h5py.ExternalLink(str(other), "secret")


def link_twice(file: h5py.File, other: Path) -> None:
    """Add a soft link to the external one."""
    del file["action"]
    file["elsewhere"] = h5py.ExternalLink(str(other), "secret")
    file["action"] = h5py.SoftLink("/elsewhere")


def store_outside(file: h5py.File, other: Path) -> None:
    del file["action"]
    file.create_dataset("action", (20, 8), "f8", external=[(str(other), 0, h5py.h5f.UNLIMITED)])


def map_outside(file: h5py.File, other: Path) -> None:
    del file["action"]
    layout = h5py.VirtualLayout((20, 8), "f8")
    layout[:] = h5py.VirtualSource(str(other), "secret", (20, 8))
    file.create_virtual_dataset("action", layout)


def link_group(file: h5py.File, other: Path) -> None:
    del file["observations"]
    file["observations"] = h5py.ExternalLink(str(other), "/")


@pytest.mark.parametrize("plant", [link, link_twice, store_outside, map_outside, link_group])
def test_data_in_another_file_are_not_read(tmp_path: Path, plant: Callable[[h5py.File, Path], None]):
    write_dataset(tmp_path / "data", [make_rendered(0)])
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = np.ones((20, 8))
        other["qpos"] = np.ones((20, 9))
    path = next((tmp_path / "data/episodes").glob("*.hdf5"))
    with h5py.File(path, "r+") as file:
        plant(file, tmp_path / "other.h5")
    # A group of many links becomes one of a newer format when it gets an external link.
    with pytest.raises(InputError, match="another file|expected the earliest format"), EpisodeFile(path) as episode:
        episode.trajectory()
    assert verify(tmp_path / "data").problems
    assert "files" in {finding.check for finding in check(open_view(tmp_path / "data"))}


def test_a_filter_that_is_not_there_is_one_line(tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0)])
    path = next((tmp_path / "data/episodes").glob("*.hdf5"))
    with h5py.File(path, "r+") as file:
        del file["action"]
        file.create_dataset("action", data=np.zeros((20, 8)), chunks=(5, 8), compression="lzf")
    content = bytearray(path.read_bytes())
    place = content.index(b"lzf\0") - 8
    assert content[place : place + 2] == (32000).to_bytes(2, "little")
    content[place : place + 2] = (32015).to_bytes(2, "little")  # Zstandard, a plug-in
    path.write_bytes(bytes(content))
    with EpisodeFile(path) as episode, pytest.raises(InputError, match="cannot be read: action: "):
        episode.array("action")


def assert_nothing_is_published(folder: Path, *, because: str) -> None:
    """Check that exports and filters refuse the dataset of a folder, and leave nothing behind."""
    for to in MANIPULATION_FORMATS:
        with pytest.raises(InputError, match=because):
            export(folder / "data", folder / "out", to=to)
    with pytest.raises(InputError, match=because):
        filter_native(folder / "data", folder / "out", Condition("length > 1"))
    assert not (folder / "out").exists()


def test_nothing_of_a_file_that_reaches_for_another_is_published(tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0)])
    path = next((tmp_path / "data/episodes").glob("*.hdf5"))
    with h5py.File(path, "r+") as file:
        link(file, tmp_path / "other.h5")
    ledger = Ledger(tmp_path / "data")
    ledger.record(*(replace(one, byte_count=path.stat().st_size) for one in ledger.stored()))
    ledger.close()
    assert_nothing_is_published(tmp_path, because="another file|expected the earliest format")


@pytest.mark.parametrize("name", ["*.hdf5", "*.front.mp4"])
def test_a_link_out_of_the_dataset_is_told_and_nothing_published(tmp_path: Path, name: str):
    write_dataset(tmp_path / "data", [make_rendered(0)], images="video")
    path = next((tmp_path / "data/episodes").glob(name))
    path.symlink_to(path.rename(tmp_path / path.name))
    assert_nothing_is_published(tmp_path, because="leads out of the dataset; put a copy of the file in its place")
    assert any("leads out of the dataset" in problem for problem in verify(tmp_path / "data").problems)
    assert "files" in {finding.check for finding in check(open_view(tmp_path / "data"))}


@pytest.mark.parametrize("name", ["", "episodes", "inside"])
def test_linked_episodes_of_another_dataset_are_refused(tmp_path: Path, name: str) -> None:
    """Pages, contact sheets and new datasets would otherwise show a private episode."""
    write_dataset(tmp_path / "private", [make_rendered(1)])
    write_dataset(tmp_path / "data", [make_rendered(0)])
    (secret,) = (tmp_path / "private" / "episodes").glob("*.hdf5")
    (mine,) = (tmp_path / "data" / "episodes").glob("*.hdf5")
    opened = mine
    if not name:
        mine.unlink()
        mine.symlink_to(secret)
    elif name == "episodes":
        mine.parent.rename(tmp_path / "gone")
        mine.parent.symlink_to(secret.parent)
        opened = mine.parent / secret.name
    else:
        (tmp_path / "data" / name).symlink_to(tmp_path / "private")
        opened = tmp_path / "data" / name / "episodes" / secret.name
    assert "leads out of the dataset" in refusal(EpisodeFile, opened)
    EpisodeFile(secret).close()
    (tmp_path / "named.hdf5").symlink_to(secret)
    EpisodeFile(tmp_path / "named.hdf5").close()  # by the user
