"""Readers of plain files access a dataset in a store through the cache."""

from __future__ import annotations

from pathlib import Path

import h5py
import pytest

fsspec = pytest.importorskip("fsspec")

from nimbus.datagen.datasets.training.file_system import DatasetFileSystem  # noqa: E402
from nimbus.datagen.errors import InputError  # noqa: E402
from nimbus.datagen.store.remote.address import parse_address  # noqa: E402
from nimbus.datagen.store.remote.object_store import ObjectStore  # noqa: E402
from nimbus.datagen.store.remote.working_copy import copy_folder, open_dataset  # noqa: E402
from tests.support.s3 import upload  # noqa: E402
from tests.support.synthetic import make_rendered, write_dataset  # noqa: E402


@pytest.fixture
def stored(address: str, tmp_path: Path) -> tuple[Path, DatasetFileSystem]:
    """Return a dataset in a folder and in a store, opened as a file system."""
    write_dataset(tmp_path / "data", [make_rendered(index) for index in range(2)])
    upload(tmp_path / "data", address)
    fsspec.register_implementation("nimbus", DatasetFileSystem, clobber=True)
    DatasetFileSystem.clear_instance_cache()
    return tmp_path / "data", fsspec.filesystem("nimbus", dataset=address)


def test_files_of_a_store_are_listed_and_read(stored: tuple[Path, DatasetFileSystem]):
    folder, files = stored
    names = sorted(f"episodes/{path.name}" for path in folder.glob("episodes/*"))
    assert sorted(files.ls("episodes", detail=False)) == names and files.isdir("episodes")
    assert "dataset.json" in files.ls("", detail=False) and files.size(names[0]) == (folder / names[0]).stat().st_size
    assert files.cat(names[0]) == (folder / names[0]).read_bytes()


def test_other_libraries_open_its_urls(stored: tuple[Path, DatasetFileSystem], address: str):
    """Blocks that were read stay in the cache; the second reader requests none from the store."""
    folder, _ = stored
    name = next(folder.glob("episodes/*")).name
    with fsspec.open(f"nimbus://episodes/{name}", dataset=address) as file, h5py.File(file) as remote:
        with h5py.File(folder / "episodes" / name) as here:
            assert (remote["action"][:] == here["action"][:]).all()  # type: ignore[index]
    assert list(copy_folder(parse_address(address)).glob("blocks/*/*/0"))


@pytest.mark.parametrize("has_copy", [False, True])
def test_replaced_description_is_read_anew(stored: tuple[Path, DatasetFileSystem], address: str, has_copy: bool):
    """A continuing run replaces the description each minute; readers once kept the first one."""
    if has_copy:
        open_dataset(address)
    store = ObjectStore(parse_address(address))
    for text in (b"one", b"three"):
        store.replace("manifest.parquet", text)
        assert stored[1].open("manifest.parquet").read() == text


def test_a_folder_is_read_without_a_copy(stored: tuple[Path, DatasetFileSystem]):
    folder = stored[0]
    files, name = DatasetFileSystem(dataset=f"file://{folder}"), next(folder.glob("episodes/*")).name
    for path in (f"episodes/{name}", "manifest.parquet", "dataset.json"):
        if (folder / path).exists():
            assert files.cat(path) == (folder / path).read_bytes()
    assert f"episodes/{name}" in files.find("")
    assert not copy_folder(parse_address(f"file://{folder}")).exists()


@pytest.mark.parametrize("name", ["videos/notes.txt", "manifest.parquet", "stage/notes.txt"])
def test_links_out_of_a_folder_are_not_followed(stored: tuple[Path, DatasetFileSystem], tmp_path: Path, name: str):
    """A dataset of others in a folder once led to any file of this machine, which was copied into the cache."""
    (private := tmp_path / "private").mkdir()
    (private / "notes.txt").write_text("a private key")
    place = stored[0] / name
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    if name.startswith("stage"):
        place.parent.rmdir()
        place.parent.symlink_to(private)
    else:
        place.symlink_to(private / "notes.txt")
    files = DatasetFileSystem(dataset=f"file://{stored[0]}")
    for call in (files.info, files.open, files.cat):
        with pytest.raises(InputError, match="leads out"):
            call(name)
    with pytest.raises(InputError, match="leads out"):
        files.find("")


def test_missing_files_and_writing_are_refused(stored: tuple[Path, DatasetFileSystem]):
    _, files = stored
    with pytest.raises(FileNotFoundError):
        files.open("episodes/none.hdf5")
    with pytest.raises(InputError, match="read-only"):
        files.open("episodes/new.hdf5", "wb")
    with pytest.raises(InputError, match="leads out"):
        files.open("../../outside")
