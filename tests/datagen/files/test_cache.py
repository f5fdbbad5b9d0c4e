from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.files import cache
from nimbus.datagen.files.kept_arrays import read_arrays
from tests.support.refusals import refusal

CACHE, TEMPORARY = "the disk of the cache folder is full", "the disk of the folder of temporary files is full"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of the cache, beside a folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    return cache.cache_folder("objects")


def test_a_full_disk_is_one_line_that_names_the_cache(folder: Path):
    with pytest.raises(StorageError, match=f"{folder}: {CACHE}; free space there, or set NIMBUS_CACHE to a folder on"):
        with cache.writing(folder):
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("name", ["temporary", "temporary/nimbus-mesh-a"])
def test_a_full_disk_of_temporary_files_is_not_said_of_the_cache(
    name: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fill_disk(tmp_path / name, monkeypatch)
    told = f"{tmp_path}/temporary: {TEMPORARY}; free space there, or set TMPDIR to a folder on"
    with pytest.raises(StorageError, match=told), cache.writing(folder if name == "temporary" else tmp_path / name):
        raise OSError(errno.ENOSPC, "No space left on device")


def fill_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1 << 40, 0, 0 if Path(path) == folder else 1 << 40))


def test_whatever_a_library_says_of_a_file_that_was_cut_short(folder: Path, monkeypatch: pytest.MonkeyPatch):
    fill_disk(folder, monkeypatch)
    with pytest.raises(StorageError, match=CACHE), cache.writing(folder):
        raise RuntimeError("possibly truncated: table of contents at offset 3086442")


def test_the_folder_that_an_inner_error_names_stays(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fill_disk(folder, monkeypatch)
    with pytest.raises(StorageError, match=TEMPORARY), cache.writing(folder):
        raise cache.full_disk(tmp_path / "temporary/nimbus-mesh-a")


def test_a_folder_that_no_variable_sets_is_named_alone(folder: Path, tmp_path: Path):
    assert (
        str(cache.full_disk(tmp_path / "mine")) == f"{tmp_path}/mine: the disk of the folder is full; free space there"
    )


def test_any_other_error_goes_on_as_it_is(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A full disk of temporary files is no reason for an error about a file in the cache."""
    fill_disk(tmp_path / "temporary", monkeypatch)
    with pytest.raises(RuntimeError, match="a bug"), cache.writing(folder):
        raise RuntimeError("a bug")


def test_a_folder_that_cannot_be_made_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NIMBUS_CACHE", f"{tmp_path}/file")
    with pytest.raises(InputError, match="set NIMBUS_CACHE to a folder that you may write"):
        cache.cache_folder("objects")


def test_a_named_folder_belongs_to_its_user(tmp_path: Path):
    """Its content is executed."""
    (tmp_path / "file").write_text("")
    assert "set KERNELS to a folder" in refusal(cache.named_folder, "KERNELS", f"{tmp_path}/file/a")
    shared = cache.named_folder("KERNELS", f"{tmp_path}/kernels")
    shared.chmod(0o777)
    told = refusal(cache.named_folder, "KERNELS", str(shared))
    assert "all users can write there" in told and "set KERNELS to a folder" in told


def test_a_relative_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The current folder may be a dataset that contains a cache of somebody else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NIMBUS_CACHE", ".cache")
    with pytest.raises(InputError, match="NIMBUS_CACHE: '.cache' is a relative path.*write an absolute path"):
        cache.cache_folder("own_tasks")
    assert not [*tmp_path.iterdir()]


def test_folder_that_all_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nimbus would trust the prepared meshes and robots in the folder as if this user had made them."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    folder = cache.cache_folder("objects")
    for place in (folder, folder.parent):
        place.chmod(0o777)
        with pytest.raises(InputError, match="all users can write there") as error:
            cache.cache_folder("objects")
        assert error.value.where == str(place)
        place.chmod(0o755)
    assert cache.cache_folder("objects") == folder


def test_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache.os, "getuid", lambda: 12345)
    if (owner := os.stat(tmp_path).st_uid) == 0:
        cache.cache_folder("objects")  # a folder of the superuser is trusted
        os.chown(tmp_path / "cache", 54321, -1)
    with pytest.raises(InputError, match="belongs to another user"):
        cache.cache_folder("objects")
    assert owner != 12345


def test_new_folders_are_closed_whatever_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    before = os.umask(0)
    try:
        assert not cache.cache_folder("objects").stat().st_mode & stat.S_IWOTH
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", sorted(cache.PRIVATE))
def test_only_this_user_may_enter_a_private_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A group that shares a cache could otherwise replace compiled kernels, which its members execute."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    folder = cache.cache_folder(name)
    folder.chmod(0o2775)
    assert stat.S_IMODE(cache.cache_folder(name).stat().st_mode) == 0o700


def test_a_group_that_shares_a_cache_cannot_replace_private_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its members could rename a closed folder, and put another one of the same user, which they may write, there."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "shared"))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "own"))
    before = os.umask(0o002)
    try:
        assert not cache.cache_folder("objects").parent.stat().st_mode & stat.S_IWGRP
    finally:
        os.umask(before)
    (tmp_path / "shared").chmod(0o2775)
    assert cache.cache_folder("warp") == tmp_path / "shared" / "warp"
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o3775

    def refuse(path: Path, mode: int) -> None:
        if path == tmp_path / "shared":
            raise PermissionError  # it is the folder of another member
        os.chmod(path, mode)

    (tmp_path / "shared").chmod(0o2775)
    monkeypatch.setattr(Path, "chmod", refuse)
    assert cache.cache_folder("warp") == tmp_path / "own" / "warp"
    assert cache.cache_folder("objects") == tmp_path / "shared" / "objects"


def test_a_named_folder_is_closed_to_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kernels = tmp_path / "kernels"
    kernels.mkdir(mode=0o775)
    kernels.chmod(0o2775)
    assert cache.named_folder("KERNELS", str(kernels)) == kernels
    assert not kernels.stat().st_mode & stat.S_IWGRP
    tmp_path.chmod(0o775)
    monkeypatch.setattr("grp.getgrgid", lambda _: SimpleNamespace(gr_name="a-project"))
    assert "its group can write there" in refusal(cache.named_folder, "KERNELS", str(kernels))
    tmp_path.chmod(0o1775)
    assert cache.named_folder("KERNELS", str(kernels)) == kernels


def test_sticky_folder_serves_above_and_not_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Other users can add files to such a folder, for example compiled kernels under expected names."""
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    folder = cache.cache_folder("warp")
    folder.parent.chmod(0o1777)
    assert cache.cache_folder("warp") == folder
    folder.chmod(0o1777)
    with pytest.raises(InputError, match="all users can write there"):
        cache.cache_folder("warp")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"text"])
def test_damaged_arrays_are_made_again(content: bytes, tmp_path: Path):
    """A power failure can damage arrays in the cache, because the cache's files are not synced to disk."""
    np.savez(tmp_path / "good.npz", values=np.arange(3))
    whole = (tmp_path / "good.npz").read_bytes()
    assert read_arrays(tmp_path / "good.npz") is not None
    for damaged in (content, whole[: len(whole) // 2], whole[:60] + b"\0" * 20 + whole[80:]):
        (tmp_path / "kept.npz").write_bytes(damaged)
        assert read_arrays(tmp_path / "kept.npz") is None
    np.save(tmp_path / "one.npy", np.arange(3))
    assert read_arrays(tmp_path / "one.npy") is None and read_arrays(tmp_path / "none.npz") is None
