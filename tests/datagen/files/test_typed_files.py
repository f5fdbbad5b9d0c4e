"""Foreign JSON: the file must exist, have the right type, and contain finite numbers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import Count, Finite, Rate, check_regular, read_plain, read_typed


@dataclass(frozen=True, kw_only=True)
class Note:
    rate: Rate
    count: Count = 0
    offset: Finite = 0.0


def test_a_good_note_is_read(tmp_path: Path) -> None:
    (tmp_path / "note").write_text('{"rate": 15, "count": 3, "later": []}')
    assert read_typed(Note, tmp_path / "note") == Note(rate=15.0, count=3)


@pytest.mark.parametrize(
    "text",
    [
        '{"rate": -15}',
        '{"rate": 1e300}',
        '{"rate": NaN}',
        '{"rate": 1, "offset": -Infinity}',
        '{"rate": 1, "offset": 1e999}',
        '{"rate": 1, "count": -1}',
        '{"rate": 1, "count": 18446744073709551616}',
        '{"rate": "15"}',
        "[" * 100_000,
        '{"rate": 1, "\\ud800": 1}',
        "{}",
    ],
)
def test_numbers_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "note").write_text(text)
    with pytest.raises(InputError, match="note: "):
        read_typed(Note, tmp_path / "note")


def test_a_file_of_holes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "video.mp4"
    path.touch()
    os.truncate(path, 1 << 39)
    with pytest.raises(InputError, match="the file is sparse and nearly empty"):
        check_regular(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "note")
    for read in (read_plain, check_regular):
        with pytest.raises(InputError, match="is not a regular file"):
            read(tmp_path / "note")
