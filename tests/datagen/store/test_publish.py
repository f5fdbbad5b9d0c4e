from __future__ import annotations

import errno
from pathlib import Path

import pytest

from nimbus.datagen.errors import StorageError
from nimbus.datagen.store.publish import disk


@pytest.mark.parametrize(
    ("number", "mend"),
    [
        (errno.EROFS, "make it writable, then run the same command again"),
        (errno.EACCES, "make it writable, then run the same command again"),
        (errno.ENOSPC, "make room or choose another --out, then run the same command again"),
    ],
)
def test_a_disk_that_refuses_is_one_line_with_what_would_help(number: int, mend: str) -> None:
    with pytest.raises(StorageError, match=mend), disk(Path("data")):
        raise OSError(number, "no")
