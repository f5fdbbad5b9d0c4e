from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.episode_file.jobs import Images
from nimbus.datagen.store.ledger.records import EpisodeStatus, Fault
from nimbus.datagen.store.recovery import RecoveryReport
from nimbus.datagen.store.verify import verify
from nimbus.datagen.store.writer import Hdf5Writer
from tests.support.small_disks import small_disk
from tests.support.staging import staged
from tests.support.synthetic import failure, make_rendered, open_dataset, write_dataset

BIG = {"width": 160, "height": 120}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 3 MB."""
    with small_disk(tmp_path / "disk", "3m") as folder:
        yield folder


def fill(folder: Path, images: Images = "lossless") -> list[str]:
    """Store episodes until the disk is full; return the acknowledged ids."""
    ids = []
    with open_dataset(folder) as dataset:
        writer = Hdf5Writer(dataset, images=images)
        try:
            with pytest.raises(StorageError, match="cannot write") as caught:
                for index in range(200):
                    ids += [stored.episode_id for stored in writer.process(make_rendered(index, **BIG))]
        finally:
            writer.close()
        assert caught.value.exit_code == 1 and "\n" not in str(caught.value)
        assert not list(dataset.stage.iterdir())
    return ids


@pytest.mark.parametrize("images", ["lossless", "video"])
def test_a_disk_that_fills_ends_in_one_line_and_keeps_what_was_stored(disk: Path, images: Images) -> None:
    folder = disk / "data"
    ids = fill(folder, images)
    assert len(ids) >= 2
    assert sorted(path.stem for path in (folder / "episodes").glob("*.hdf5")) == ids
    assert len(list((folder / "episodes").iterdir())) == len(ids) * (1 if images == "lossless" else 3)
    assert verify(folder).problems == ()


def test_after_making_room_the_same_folder_goes_on(disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(1_000_000))
    ids = fill(disk / "data")
    ballast.unlink()
    write_dataset(disk / "data", [make_rendered(len(ids), steps=4, **BIG)])
    assert verify(disk / "data").episode_count == len(ids) + 1
    assert verify(disk / "data").problems == ()


@pytest.mark.parametrize("images", ["lossless", "video"])
@pytest.mark.parametrize("room", range(0, 800_000, 100_000))
def test_wherever_the_room_ends_nothing_half_written_stays(disk: Path, room: int, images: Images) -> None:
    folder = disk / "data"
    write_dataset(folder, [make_rendered(0)], images=images)
    status = os.statvfs(disk)
    (disk / "ballast").write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - room)))
    stored = 1
    try:
        for item in (make_rendered(1), make_rendered(2, outcome=failure())):
            stored += len([done for done in write_dataset(folder, [item], images=images) if done.path])
    except StorageError as error:
        assert room < 700_000, error
    assert len(list((folder / "episodes").iterdir())) == stored * (1 if images == "lossless" else 3)
    assert verify(folder).problems == ()


def leave(disk: Path, room: int) -> Path:
    """Fill a disk except for a number of bytes."""
    status = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - room)))
    return ballast


@pytest.mark.slow
@pytest.mark.parametrize("room", range(0, 60_000, 8192))
def test_a_ledger_without_room_stores_all_of_a_group_or_nothing_and_the_same_group_may_be_tried_again(
    disk: Path, room: int
) -> None:
    folder = disk / "data"
    with open_dataset(folder) as dataset:
        group = staged(dataset, *range(8))
        leases = [dataset.lease(item.attempt.idx) for item in group]
        group = [replace(item, lease=lease) for item, lease in zip(group, leases, strict=True)]
        ballast = leave(disk, room)
        try:
            dataset.commit(group)
        except StorageError as error:
            assert "cannot write" in str(error) and "\n" not in str(error)
            assert not list(dataset.episodes.iterdir()) and all(item.path.exists() for item in group)
            assert dataset.info.episode_count == 0 and not dataset.ledger.stored()
            ballast.unlink()
            assert len(dataset.commit(group)) == 8
        else:
            assert room > 20_000
        assert dataset.info.episode_count == 8
        assert dataset.stale == 0 and not list(dataset.stage.iterdir())
        ballast.unlink(missing_ok=True)
    with open_dataset(folder) as dataset:
        assert dataset.recovered == RecoveryReport() and len(dataset.ledger.episodes(EpisodeStatus.DONE)) == 8
    assert verify(folder).problems == ()


def test_faults_that_a_full_ledger_cannot_take_are_kept_until_it_can(disk: Path) -> None:
    with open_dataset(disk / "data") as dataset:
        ballast = leave(disk, 0)
        for index in range(300):
            dataset.fault(Fault(time=float(index), run=1, worker="renderer 1", kind="hang", detail="x" * 100))
        with pytest.raises(StorageError, match="cannot write"):
            dataset.flush()
        assert not dataset.ledger.faults()
        ballast.unlink()
        dataset.flush()
        assert len(dataset.ledger.faults()) == 300


def test_a_limit_on_file_size_acts_like_a_full_disk(tmp_path: Path) -> None:
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from nimbus.datagen.errors import InputError\n"
        "from nimbus.datagen.store.verify import verify\n"
        "from tests.support.synthetic import make_rendered, write_dataset\n"
        "folder = Path(sys.argv[1])\n"
        "write_dataset(folder, [make_rendered(0)])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "try: write_dataset(folder, [make_rendered(1, width=320, height=240)])\n"
        "except InputError as error: print(error.exit_code, error)\n"
        "print('files', len(list((folder / 'episodes').iterdir())), len(list((folder / 'stage').iterdir())))\n"
        "print('problems', verify(folder).problems)\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "data")], env=env, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and done.stderr == ""
    assert lines[0].startswith("1 ") and "cannot write: File too large" in lines[0]
    assert lines[1:] == ["files 1 0", "problems ()"]
