from __future__ import annotations

import errno
import os
import re

import pytest

from nimbus.datagen.errors import InputError, StorageError
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import WorkerError, from_bytes, to_bytes
from nimbus.runner.cell.worker.errors import LostPlanError, classify_error, exit_code_of

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "episodes/a.hdf5")


@pytest.mark.parametrize(
    ("error", "sort", "code"),
    [
        (StorageError("no room"), "storage", 1),
        (FULL, "storage", 1),
        (InputError("upside down", where="yard.txt:1"), "input", 2),
        (LostPlanError("the plan cannot be read"), "lost_plan", 70),
        (PermissionError(errno.EACCES, "denied"), "exception", 70),  # raised nowhere
        (RuntimeError("a wheel came off"), "exception", 70),
    ],
)
def test_who_can_mend_it_is_said_by_the_kind_of_error(error: Exception, sort: str, code: int) -> None:
    trouble = classify_error(error)
    assert (trouble.sort, trouble.code) == (sort, code)
    assert "\n" not in trouble.line and trouble.line


def test_the_largest_trouble_fits_into_the_channel() -> None:
    try:
        raise RuntimeError("🗑" * 100_000)
    except RuntimeError as error:
        trouble = classify_error(error)
    ours, theirs = pair()
    ours.send(to_bytes(trouble))
    received = theirs.receive()
    assert received and from_bytes(received[0]) == trouble


def raised(error: Exception) -> WorkerError:
    try:
        raise error
    except type(error) as caught:
        return classify_error(caught)


def test_a_bug_in_somebody_s_own_code_is_one_line_with_its_place_first() -> None:
    trouble = raised(RuntimeError("a wheel came off"))
    assert re.search(r"test_errors\.py:\d+: RuntimeError: a wheel came off$", trouble.line)
    assert trouble.code == 1 and "Traceback" in trouble.traceback
    assert exit_code_of(trouble).line == trouble.line
    assert (
        exit_code_of(WorkerError(sort="exception", line="KeyError: 1", traceback="Traceback …")).line == "Traceback …"
    )


def test_errors_are_the_same_by_kind_and_place_whatever_they_say() -> None:
    same = raised(KeyError(1)).same
    assert same and same == raised(KeyError(2)).same
    assert same != raised(ValueError(1)).same
    assert raised(MemoryError()).same == "", "the machine may be to blame"
