"""Report of an error that ends a worker or the fork server."""

from __future__ import annotations

import errno
import hashlib
import traceback
from pathlib import Path

from nimbus.datagen.errors import BUG, InputError, StorageError
from nimbus.datagen.store.publish import storage_error
from nimbus.datagen.tasks.plugin_origin import user_frame_line
from nimbus.runner.cell.transport.messages import Ended, WorkerError

_LONGEST_LINE, _LONGEST_TRACE = 1_000, 8_000
"""Longest line and traceback in a report [characters]; a character takes up to twelve bytes in the message. Of a longer
traceback, only the end is sent."""
_OWN_CODE = 1
"""Exit code for an error in a plug-in."""


class LostPlanError(Exception):
    """Raised when a plan is missing or damaged; it is made again."""


def classify_error(error: Exception) -> WorkerError:
    """Classify an error by its cause: a plan, the disk, the input, a plug-in, or Nimbus."""
    trace = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
    if isinstance(error, LostPlanError):
        return WorkerError(sort="lost_plan", line=str(error), traceback=trace)
    if isinstance(error, StorageError):
        return WorkerError(sort="storage", line=str(error), code=error.exit_code)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        full = storage_error(error, Path(error.filename or "the disk"))
        return WorkerError(sort="storage", line=str(full), code=full.exit_code)
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        few = InputError(
            "too many open files for this process", where="ulimit -n", instead="raise the limit, for example to 1024"
        )
        return WorkerError(sort="input", line=str(few), code=few.exit_code)
    if isinstance(error, InputError):
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        return WorkerError(sort="input", line=f"{error}{notes}", code=error.exit_code)
    own = user_frame_line(error)
    line = (own or f"{type(error).__name__}: {error}")[:_LONGEST_LINE]
    return WorkerError(sort="exception", line=line, traceback=trace, code=_OWN_CODE if own else BUG, same=_same(error))


def exit_code_of(trouble: WorkerError) -> Ended:
    """Return the result of a run that cannot begin; a bug in Nimbus shows its traceback."""
    line = (trouble.traceback if trouble.code == BUG else "") or trouble.line
    return Ended(code=trouble.code, state="failed", line=line)


def _same(error: Exception) -> str:
    """Return a digest of an error's type and position without its text; empty if the machine may be the cause.

    If consecutive tries have equal digests, the cause is a bug and not chance.
    """
    if isinstance(error, MemoryError):
        return ""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    return hashlib.sha256(repr((type(error).__qualname__, frames)).encode()).hexdigest()[:16]
