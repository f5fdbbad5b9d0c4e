"""Files of another type or size than their reader expects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import check_dense, read_text
from tests.support.refusals import refusal


def test_a_file_of_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("ten bytes!")
    assert read_text(tmp_path / "text", limit=10) == "ten bytes!"


@pytest.mark.parametrize("kind", ["missing", "pipe", "folder", "device", "large", "binary", "link"])
def test_other_things_are_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "text"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path = Path("/dev/zero")
        case "large":
            path.write_bytes(b"eleven bytes")
        case "binary":
            path.write_bytes(b"\xff\xfe")
        case "link":
            (tmp_path / "other").write_text("other")
            path.symlink_to("other")
    with pytest.raises(InputError, match=str(path)):
        read_text(path, limit=10, follow=False)


def test_files_of_holes_are_not_copied(tmp_path: Path) -> None:
    """A small archive can contain terabytes of holes."""
    (tmp_path / "full").write_bytes(b"x" * 10_000)
    check_dense(tmp_path, tmp_path.iterdir())
    for number in range(5):
        with (tmp_path / f"{number}").open("wb") as file:
            file.truncate(250 << 20)
    assert "mostly holes" in refusal(check_dense, tmp_path, tmp_path.iterdir())


def test_a_link_is_followed_where_it_may_be_one(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    (tmp_path / "text").symlink_to("other")
    assert read_text(tmp_path / "text") == "other"
