from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nimbus.datagen.files import atomic
from nimbus.datagen.files.atomic import replacing, write_atomic


@pytest.mark.parametrize("shared", [False, True])
def test_content_is_replaced_at_once(tmp_path: Path, shared: bool) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    with replacing(path, durable=True, shared=shared) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.name.startswith(".a.json.") and temporary.suffix == ".tmp"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no room"), KeyboardInterrupt()])
def test_old_content_stays_after_an_error(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a"
    write_atomic(path, b"old", durable=False, shared=False)
    with pytest.raises(type(error)), replacing(path, durable=False, shared=True) as temporary:
        temporary.write_text("half")
        raise error
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("durable", [False, True])
def test_content_is_synced_where_asked(tmp_path: Path, durable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(atomic.os, "fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}")))
    write_atomic(tmp_path / "a", "ü", durable=durable, shared=False)
    assert [Path(name).parent for name in synced] == [tmp_path] * durable
    assert (tmp_path / "a").read_bytes() == "ü".encode()


def test_leftover_of_a_killed_writer_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".a.123-4567.tmp").write_text("left")
    write_atomic(tmp_path / "a", "new", durable=False, shared=False)
    assert (tmp_path / "a").read_text() == "new" and len(list(tmp_path.iterdir())) == 1
