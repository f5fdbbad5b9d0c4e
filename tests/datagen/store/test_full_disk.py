from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic import failure, make_rendered, open_dataset, write_dataset

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.hdf5 import Hdf5Writer
from nimbus.datagen.store.verify import verify

BIG = {"width": 160, "height": 120}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> list[str]:
    """Store episodes until the disk is full; returns the ids that were acknowledged."""
    ids = []
    with open_dataset(folder) as dataset:
        writer = Hdf5Writer(dataset)
        try:
            with pytest.raises(StorageError, match="cannot write") as caught:
                for index in range(200):
                    ids += [stored.episode_id for stored in writer.process(make_rendered(index, **BIG))]
        finally:
            writer.close()
        assert caught.value.exit_code == 1 and "\n" not in str(caught.value)
        assert not list(dataset.stage.iterdir())
    return ids


def test_a_disk_that_fills_ends_in_one_line_and_keeps_what_was_stored(small_disk: Path) -> None:
    folder = small_disk / "data"
    ids = fill(folder)
    assert len(ids) >= 2
    assert sorted(path.stem for path in (folder / "episodes").iterdir()) == ids
    assert verify(folder).problems == ()


def test_after_making_room_the_same_folder_goes_on(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_000_000))
    ids = fill(small_disk / "data")
    ballast.unlink()
    write_dataset(small_disk / "data", [make_rendered(len(ids), steps=4, **BIG)])
    assert verify(small_disk / "data").episode_count == len(ids) + 1
    assert verify(small_disk / "data").problems == ()


@pytest.mark.parametrize("room", range(0, 800_000, 100_000))
def test_wherever_the_room_ends_nothing_half_written_stays(small_disk: Path, room: int) -> None:
    folder = small_disk / "data"
    write_dataset(folder, [make_rendered(0)])
    status = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - room)))
    stored = 1
    try:
        for item in (make_rendered(1), make_rendered(2, outcome=failure())):
            stored += len([done for done in write_dataset(folder, [item]) if done.path])
    except StorageError as error:
        assert room < 700_000, error
    assert len(list((folder / "episodes").iterdir())) == stored
    assert verify(folder).problems == ()


def test_a_limit_on_file_size_acts_like_a_full_disk(tmp_path: Path) -> None:
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from nimbus.datagen.errors import InputError\n"
        "from nimbus.datagen.store.verify import verify\n"
        "from synthetic import make_rendered, write_dataset\n"
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
