"""Foreign datasets: opening them changes nothing outside of their folders, whatever they contain."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import struct
from pathlib import Path

import pytest

from nimbus.datagen.datasets.export.publication import stage_of, staging
from nimbus.datagen.datasets.native_copy import read_rows
from nimbus.datagen.errors import InputError
from nimbus.datagen.files import own_files
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.dataset_paths import resolve_inside
from nimbus.datagen.store.episode_file.content_check import is_whole_video
from nimbus.datagen.store.failures import check_failures
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.attempt import Video
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.remote import working_copy
from tests.support.refusals import refusal
from tests.support.synthetic import failure, make_rendered, open_dataset, write_dataset


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder of the user, with a file and a folder."""
    (tmp_path / "home" / "deep").mkdir(parents=True)
    for name in ("mine.txt", "mine.hdf5", "deep/mine.txt"):
        (tmp_path / "home" / name).write_text("mine")
    return tmp_path / "home"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a dataset of one episode."""
    write_dataset(tmp_path / "data", [make_rendered(0)])
    return tmp_path / "data"


def is_untouched(home: Path) -> bool:
    found = sorted(path.relative_to(home).as_posix() for path in home.rglob("*"))
    return found == ["deep", "deep/mine.txt", "mine.hdf5", "mine.txt"] and (home / "mine.txt").read_text() == "mine"


PLACES = ("{home}/mine.txt", "stage/../../home/mine.txt", "stage/link/mine.txt", "mine.txt", "")


@pytest.mark.parametrize("place", PLACES)
def test_staged_file_elsewhere_is_not_removed(home: Path, data: Path, place: str):
    """The ledger contains an intent that names a file of the user as the staged file; cleaning up would delete this
    file.
    """
    (data / "stage" / "link").symlink_to(home)
    ledger = Ledger(data)
    (attempt,) = ledger.stored()
    ledger.close()
    with sqlite3.connect(data / "ledger.sqlite") as connection:
        row = (place.format(home=home), to_json(attempt))
        connection.execute("UPDATE episodes SET state = 'INTENT', stage = ?, detail = ?", row)
        connection.execute("DELETE FROM attempts")
    connection.close()
    text = (data / "dataset.json").read_text()
    (data / "dataset.json").write_text(text.replace('"episode_count": 1', '"episode_count": 0'))
    with pytest.raises(InputError, match="not a ledger|not a path in this folder|this is a link"):
        open_dataset(data)
    assert is_untouched(home)


@pytest.mark.parametrize("name", ["stage", "episodes", "failures", "orphans"])
def test_folder_that_is_a_link_is_refused(home: Path, data: Path, name: str):
    if (data / name).is_dir():
        shutil.copytree(data / name, home, dirs_exist_ok=True)
        shutil.rmtree(data / name)
    (data / name).symlink_to(home)
    if name == "orphans":
        (data / "episodes" / "stray.hdf5").write_bytes(b"stray")
    before = sorted(home.rglob("*"))
    with pytest.raises(InputError, match="this is a link") as error:
        open_dataset(data).close()
    assert error.value.where == str(data / name) and sorted(home.rglob("*")) == before


def test_links_in_the_stage_are_removed_themselves(home: Path, data: Path):
    (data / "stage" / "file.tmp").symlink_to(home / "mine.txt")
    (data / "stage" / "folder.tmp").symlink_to(home)
    open_dataset(data).close()
    assert is_untouched(home) and not [*(data / "stage").iterdir()]


@pytest.mark.parametrize("name", ["ledger.sqlite", "ledger.sqlite-wal"])
def test_ledger_that_is_a_link_is_not_written(home: Path, data: Path, name: str):
    if (data / name).exists():
        (data / name).rename(home / "other.sqlite")
    (data / name).symlink_to(home / "other.sqlite")
    before = (home / "other.sqlite").read_bytes() if (home / "other.sqlite").exists() else None
    with pytest.raises(InputError, match="this is a link"):
        open_dataset(data)
    assert before == ((home / "other.sqlite").read_bytes() if before else None)


@pytest.mark.parametrize("name", ["ledger.sqlite", "ledger.sqlite-wal", "dataset.json"])
def test_a_ledger_or_description_that_is_a_link_out_of_the_dataset_is_not_read(home: Path, data: Path, name: str):
    """Reports and cards would show the rows of a private dataset."""
    (data / name).rename(home / name) if (data / name).exists() else (home / name).touch()
    (data / name).symlink_to(home / name)
    assert "leads out of the dataset" in refusal(read_info if name == "dataset.json" else read_rows, data)


def test_a_video_that_is_a_link_out_of_the_dataset_is_not_hashed(home: Path, data: Path):
    """The result of the comparison would show the content of a private file."""
    content = (home / "mine.txt").read_bytes()
    video = Video(path="episodes/a.mp4", sha256=hashlib.sha256(content).hexdigest(), byte_count=len(content))
    (data / video.path).write_bytes(content)
    assert is_whole_video(data / video.path, video)
    (data / video.path).unlink()
    (data / video.path).symlink_to(home / "mine.txt")
    assert not is_whole_video(data / video.path, video)


def test_journal_that_names_a_file_deletes_none(home: Path, data: Path):
    """SQLite deletes the super-journal that a rollback journal names."""
    victim = str(home / "mine.txt").encode()
    magic = bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">IIIII", 0, 1, (data / "ledger.sqlite").stat().st_size // 4096, 512, 4096)
    tail = struct.pack(">I", 0x40000000 // 4096 + 1) + victim + struct.pack(">II", len(victim), sum(victim)) + magic
    (data / "ledger.sqlite-journal").write_bytes(head.ljust(512, b"\0") + tail)
    with pytest.raises(InputError, match="names another file"):
        open_dataset(data)
    assert is_untouched(home)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_pipe_beside_the_ledger_is_refused(data: Path, suffix: str):
    file = data / f"ledger.sqlite{suffix}"
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    with pytest.raises(InputError, match="regular file"):
        open_dataset(data)


def test_description_and_failures_replace_links(home: Path, data: Path):
    for name in ("dataset.json.tmp", ".dataset.json.1-2.tmp"):
        (data / name).symlink_to(home / "mine.txt")
    write_dataset(data, [make_rendered(1), make_rendered(2, outcome=failure())], keep_failures=True)
    assert is_untouched(home)


def test_stage_of_another_user_is_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Anyone can guess the stage's name: episodes that another user put there were once published."""
    stage_of(tmp_path / "out").mkdir(mode=0o777)
    monkeypatch.setattr(own_files, "is_own", lambda path: False)
    with pytest.raises(InputError, match="belongs to another user"), staging(tmp_path / "out", "key"):
        pass
    assert not list(stage_of(tmp_path / "out").iterdir())


def test_stage_of_an_export_follows_no_link(home: Path, tmp_path: Path):
    out = tmp_path / "out"
    stage_of(out).symlink_to(home)
    with pytest.raises(InputError, match="this is a link"), staging(out, "key"):
        pass
    stage_of(out).unlink()
    stage_of(out).mkdir()
    (stage_of(out) / "settings").write_text("key")
    for name in ("parts", "tree", "file"):
        (stage_of(out) / name).symlink_to(home)
    with staging(out, "key") as stage:
        (stage / "parts" / "a").write_text("a")
        (stage / "tree" / "a").write_text("a")
    assert is_untouched(home)


@pytest.mark.parametrize("content", [b"\xff\xfe\0", None])
def test_stage_with_strange_settings_is_emptied(content: bytes | None, tmp_path: Path):
    """The settings are not text, or are larger than the memory."""
    stage = stage_of(tmp_path / "out")
    (stage / "parts").mkdir(parents=True)
    (stage / "parts" / "stale").touch()
    with (stage / "settings").open("wb") as file:
        file.write(content) if content else file.truncate(1 << 40)
    with staging(tmp_path / "out", "key"):
        assert not list((stage / "parts").iterdir()) and (stage / "settings").read_text() == "key"


def test_failures_that_are_a_link_are_called_one(home: Path, data: Path):
    (data / "failures").symlink_to(home)
    assert [*check_failures(data, [])] == [
        "failures: this is a link and not a folder of the dataset; the next run refuses it"
    ]


@pytest.mark.parametrize("name", ["hdfs:/data.parquet", "file:/videos/x.mp4", "http:/127.0.0.1/x.mp4", "c:x"])
def test_a_name_is_no_address(data: Path, name: str):
    """Libraries take a relative path that begins like an address for one, also if the file exists."""
    assert "is an address, where a dataset has a file" in refusal(resolve_inside, data, name)


def test_no_path_begins_with_a_name_of_a_dataset(data: Path, monkeypatch: pytest.MonkeyPatch):
    """Libraries could take it for an address, or for a path in the home folder."""
    monkeypatch.chdir(data)
    assert resolve_inside(Path("."), "~/a.mp4") == data / "~/a.mp4"
    assert working_copy.open_dataset(".") == data and working_copy.open_dataset("data") == Path("data")
