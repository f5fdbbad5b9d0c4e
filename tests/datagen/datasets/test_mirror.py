from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.remote.working_copy import open_dataset
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.cli import main
from tests.support.s3 import bucket, upload
from tests.support.synthetic import write_dataset


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """Return a dataset in a folder and in a bucket."""
    pytest.importorskip("moto", reason="the extra 'dev' brings moto")
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    write_dataset(tmp_path / "data")
    with bucket(f"mirror-{uuid.uuid4().hex[:12]}") as place:
        upload(tmp_path / "data", f"{place}/a")
        yield tmp_path / "data", place


def test_mirror_copies_what_is_missing(stored: tuple[Path, str], capsys: pytest.CaptureFixture[str], tmp_path: Path):
    folder, place = stored
    assert main(["mirror", f"{place}/a", f"{place}/b", "--plan"]) == 0
    planned = capsys.readouterr().out
    assert "2 objects" in planned and "egress from the source costs about 0.00 USD" in planned
    assert main(["mirror", f"{place}/a", f"{place}/b"]) == 0
    assert dataset_hashes(open_dataset(f"{place}/b")) == dataset_hashes(folder)
    capsys.readouterr()
    assert main(["mirror", f"{place}/a", f"{place}/b"]) == 0
    assert "0 objects" in capsys.readouterr().out
    assert main(["mirror", f"{place}/b", str(tmp_path / "back")]) == 0
    assert verify(tmp_path / "back").problems == ()


def test_mirror_overwrites_nothing(stored: tuple[Path, str], capsys: pytest.CaptureFixture[str]):
    folder, place = stored
    name = next(folder.glob("episodes/*")).name
    from nimbus.datagen.store.remote.address import parse_address
    from nimbus.datagen.store.remote.object_store import ObjectStore

    ObjectStore(parse_address(f"{place}/c")).create(f"episodes/{name}", b"other")
    assert main(["mirror", f"{place}/a", f"{place}/c"]) == 2
    assert "the target has another object with this name" in capsys.readouterr().err
    assert main(["mirror", f"{place}/a", f"{place}/a"]) == 2


@pytest.mark.parametrize("name", ["status.json", "certificates.json"])
def test_links_to_private_files_are_not_mirrored(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str):
    pytest.importorskip("obstore", reason="the extra 'dev' brings obstore")
    write_dataset(tmp_path / "data")
    (tmp_path / "private").write_text("key")
    (tmp_path / "data" / name).unlink(missing_ok=True)
    (tmp_path / "data" / name).symlink_to(tmp_path / "private")
    assert main(["mirror", str(tmp_path / "data"), str(tmp_path / "copy")]) == 2
    assert f"'{name}' leads out of the dataset" in capsys.readouterr().err
    assert not (tmp_path / "copy" / name).exists()


def test_pipe_in_the_place_of_an_episode_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A pipe has size 0; the copy once waited for a process to write into it."""
    pytest.importorskip("obstore", reason="the extra 'dev' brings obstore")
    write_dataset(tmp_path / "data")
    with closing(Ledger(tmp_path / "data")) as ledger:
        row = ledger.stored()[0]
        ledger.record(replace(row, byte_count=0))
    (tmp_path / "data" / row.path).unlink()
    os.mkfifo(tmp_path / "data" / row.path)
    assert main(["mirror", str(tmp_path / "data"), str(tmp_path / "copy")]) == 2
    assert "regular file" in capsys.readouterr().err


def test_a_folder_with_links_is_no_target(stored: tuple[Path, str], capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """The copy would write through the links into other folders."""
    (tmp_path / "private").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/episodes").symlink_to(tmp_path / "private")
    assert main(["mirror", str(stored[0]), str(tmp_path / "copy")]) == 2
    assert "the folder contains links" in capsys.readouterr().err
    assert list((tmp_path / "private").iterdir()) == []


def test_warm_fetches_everything_once(stored: tuple[Path, str], capsys: pytest.CaptureFixture[str]):
    folder, place = stored
    assert main(["warm", f"{place}/a"]) == 0
    assert "2 files on this machine; 2 fetched" in capsys.readouterr().out
    assert main(["warm", f"{place}/a"]) == 0
    assert "2 files on this machine; 0 fetched" in capsys.readouterr().out
    assert main(["report", f"{place}/a"]) == 0
    assert "read from the store" in capsys.readouterr().out
    assert main(["warm", str(folder)]) == 2


def test_failed_mirror_frees_its_lock(stored: tuple[Path, str], monkeypatch: pytest.MonkeyPatch):
    folder, place = stored
    from nimbus.datagen.datasets.mirror import Mirror
    from nimbus.datagen.errors import StoreAwayError

    mirror = Mirror(str(folder), f"{place}/c")
    monkeypatch.setattr(Mirror, "_copy", lambda *_: (_ for _ in ()).throw(StoreAwayError("no answer")))
    with pytest.raises(StoreAwayError):
        mirror.copy(mirror.plan(), lambda left: None)
    monkeypatch.undo()
    monkeypatch.setenv("NIMBUS_CACHE", str(folder.parent / "cache"))
    left: list[int] = []
    Mirror(str(folder), f"{place}/c").copy(mirror.plan(), left.append)
    assert left == [1, 0]
