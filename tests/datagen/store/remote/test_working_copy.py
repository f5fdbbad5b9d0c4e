from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.errors import InputError, StorageError, StoreAwayError
from nimbus.datagen.store.remote import lru, working_copy
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.block_memory import MEMORY
from nimbus.datagen.store.remote.cache_root import note_origin
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.traffic import read_traffic
from nimbus.datagen.store.remote.working_copy import TRAFFIC, local, open_dataset
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cli import main
from tests.support.s3 import upload
from tests.support.synthetic import make_rendered, write_dataset


@pytest.fixture
def stored(address: str, tmp_path: Path) -> tuple[Path, str]:
    """Return a dataset in a folder, and a copy of it in the store."""
    folder = tmp_path / "data"
    write_dataset(folder, [make_rendered(index) for index in range(3)])
    upload(folder, address)
    return folder, address


def test_dataset_in_store_is_the_folders(stored: tuple[Path, str]):
    folder, address = stored
    copy = open_dataset(address)
    assert dataset_hashes(copy) == dataset_hashes(folder)
    assert verify(copy).problems == () and verify(copy).episode_count == 3


def test_episodes_are_fetched_once(stored: tuple[Path, str]):
    copy = open_dataset(stored[1])
    assert not list(copy.glob("episodes/*"))
    path = copy / verify(copy).info.task  # any name, because only those in the ledger are requested
    assert not path.exists()
    paths = [copy / name for name in working_copy.names_in(copy, "episodes")]
    for kept in paths:
        kept.unlink(missing_ok=True)
    TRAFFIC.flush()
    before = read_traffic(copy).misses
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(local, paths * 8)) == set(paths)
    TRAFFIC.flush()
    assert read_traffic(copy).misses - before == 3


def test_spool_reads_what_only_the_store_has(stored: tuple[Path, str]):
    """A restarted head counts the episodes that nodes have uploaded, although they are in no local folder."""
    folder, address = stored
    spool = working_copy.spool_folder(parse_address(address))
    note_origin(spool, address)
    name = next(path.name for path in (folder / "episodes").iterdir())
    found = local(spool / "episodes" / name)
    assert found.read_bytes() == (folder / "episodes" / name).read_bytes()
    assert working_copy.is_remote(found)


def test_missing_and_foreign_objects_are_named(stored: tuple[Path, str]):
    copy = open_dataset(stored[1])
    store = ObjectStore(parse_address(stored[1]))
    name = working_copy.names_in(copy, "episodes")[0]
    local(copy / name)
    import obstore

    obstore.delete(store._library.library, name)
    store.create("episodes/stranger.hdf5", b"x")
    problems = verify(copy).problems
    assert any(problem.startswith(f"{name}: no such object") for problem in problems)
    assert any("stranger.hdf5: not in the ledger" in problem for problem in problems)


def test_entries_keep_to_their_budget(stored: tuple[Path, str], monkeypatch: pytest.MonkeyPatch):
    copy = open_dataset(stored[1])
    names = working_copy.names_in(copy, "episodes")
    size = local(copy / names[0]).stat().st_size
    monkeypatch.setenv(lru.BUDGET, str(int(size * 2.3)))
    monkeypatch.setattr(lru, "_LOOK", 0.0)
    for name in names[1:]:
        local(copy / name)
    assert sorted(path.name for path in copy.glob("episodes/*")) == sorted(Path(name).name for name in names[1:])


def test_full_disk_reads_from_the_origin(stored: tuple[Path, str], monkeypatch: pytest.MonkeyPatch):
    copy = open_dataset(stored[1])
    (copy / "episodes").mkdir()
    (copy / "episodes").chmod(0o500)
    try:
        assert dataset_hashes(copy) == dataset_hashes(stored[0])
    finally:
        (copy / "episodes").chmod(0o700)


def test_reader_takes_blocks(stored: tuple[Path, str]):
    with Reader(stored[1]) as remote, Reader(stored[0]) as here:
        assert len(remote) == len(here)
        for row in (0, 25, 59):
            mine, other = remote[row], here[row]
            assert mine.keys() == other.keys()
            assert all((mine[name] == other[name]).all() for name in mine if hasattr(mine[name], "all"))
    copy = open_dataset(stored[1])
    assert not list(copy.glob("episodes/*")) and list(copy.glob("blocks/*/*/0"))


def test_damaged_block_comes_from_the_origin(stored: tuple[Path, str]):
    with Reader(stored[1]) as reader:
        expected = reader[0]
    copy = open_dataset(stored[1])
    for block in copy.glob("blocks/*/*/*"):
        block.write_bytes(b"damaged" + block.read_bytes()[7:])
    MEMORY.clear()
    with Reader(stored[1]) as reader:
        assert (reader[0]["action"] == expected["action"]).all()


def test_commands_take_an_address(stored: tuple[Path, str], capsys: pytest.CaptureFixture[str]):
    assert main(["hash", stored[1]]) == 0
    found = capsys.readouterr().out
    assert main(["hash", str(stored[0])]) == 0
    assert capsys.readouterr().out == found
    assert main(["verify", stored[1], "--recompute", "0"]) == 0
    assert main(["report", stored[1]]) == 0
    assert main(["qa", stored[1]]) in (0, 1)


@pytest.mark.parametrize("command", ["hash", "verify", "report", "qa", "view"])
def test_address_without_dataset_is_one_line(address: str, command: str, capsys: pytest.CaptureFixture[str]):
    assert main([command, address]) == 2
    assert "there is no dataset here" in capsys.readouterr().err


def test_missing_bucket_is_named_to_readers(address: str):
    """Readers once reported a missing dataset, because only a listing shows that there is no bucket."""
    with pytest.raises(InputError, match="there is no bucket 'no-such-bucket-here'"):
        open_dataset("s3://no-such-bucket-here/x")


def test_store_away_is_one_line(
    stored: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    working_copy.open_store.cache_clear()
    with pytest.raises(StoreAwayError):
        open_dataset(stored[1])
    assert main(["hash", stored[1]]) == 1
    assert "does not answer" in capsys.readouterr().err


def test_other_dataset_at_the_address_is_noticed(stored: tuple[Path, str], tmp_path: Path):
    copy = open_dataset(stored[1])
    local(copy / working_copy.names_in(copy, "episodes")[0])
    other = tmp_path / "other"
    write_dataset(other, [make_rendered(0)])
    store = ObjectStore(parse_address(stored[1]))
    text = (other / "dataset.json").read_text().replace('"seed": 0', '"seed": 1')
    store.replace("dataset.json", text.encode())
    open_dataset(stored[1])
    assert not list(copy.glob("episodes/*"))


def test_folder_of_others_names_no_address(tmp_path: Path):
    folder = tmp_path / "remote" / "copies" / "x"
    folder.mkdir(parents=True)
    (folder / "origin.json").write_text('{"address": "s3://b/x"}')
    path = folder / "episodes" / "a.hdf5"
    assert local(path) == path
    with pytest.raises(InputError, match="no such file"):
        from nimbus.datagen.store.episode_file.read import EpisodeFile

        EpisodeFile(path)


@pytest.mark.parametrize("name", ["origin.json", "ORIGIN.json"])
def test_object_named_as_the_copys_origin_is_refused(address: str, name: str):
    """Otherwise, the author of a dataset could make the copy refer to any address, which would be read with this user's
    rights.
    """
    store = ObjectStore(parse_address(address))
    store.create("meta/info.json", b"{}")
    store.create(name, b'{"address": "file:///etc"}')
    with pytest.raises(InputError, match=f"{name}.*not part of a dataset"):
        open_dataset(address)
    copy = working_copy.copy_folder(parse_address(address))
    assert working_copy.address_of(copy) == address


@pytest.mark.parametrize("content", [b"[" * 100_000, b"[1]", b"\xff", b"7"], ids=["deep", "list", "bytes", "number"])
def test_damaged_description_in_store_is_one_line(address: str, content: bytes):
    """The description is read twice; the second time, the copy is compared with its earlier content."""
    store = ObjectStore(parse_address(address))
    store.create("dataset.json", content)
    for _ in range(2):
        with pytest.raises(InputError):
            verify(open_dataset(address))


def test_huge_description_in_store_is_not_fetched(address: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(working_copy, "TEXT_BYTES", 10)
    ObjectStore(parse_address(address)).create("dataset.json", b" " * 11)
    with pytest.raises(InputError, match="the limit is 10"):
        open_dataset(address)


def test_full_cache_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A full disk once ended the uploader with a traceback every two seconds."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a").touch()
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path))
    monkeypatch.setattr(working_copy, "move", full)
    with pytest.raises(StorageError, match="disk of the cache folder is full"):
        working_copy.keep_entry(tmp_path / "copy", "episodes/a", tmp_path / "a")
    assert (tmp_path / "a").exists()


@pytest.mark.parametrize(("limit", "value"), [("files", 1), ("bytes", 1)])
def test_other_formats_are_fetched_up_to_a_limit(address: str, monkeypatch: pytest.MonkeyPatch, limit: str, value: int):
    store = ObjectStore(parse_address(address))
    for name in ("meta/info.json", "data/a"):
        store.create(name, b"{}")
    if limit == "files":
        monkeypatch.setattr(working_copy, "_MOST_FILES", value)
    else:
        monkeypatch.setattr(working_copy, "_half_disk", lambda _: value)
    with pytest.raises(InputError, match="has more than"):
        open_dataset(address)
    assert not list(working_copy.copy_folder(parse_address(address)).glob("*/a"))
