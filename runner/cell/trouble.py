"""What a worker or the zygote says of the error for which it leaves."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

from nimbus.datagen.errors import InputError, StorageError
from nimbus.datagen.store.publish import storage_error
from nimbus.runner.cell.messages import Trouble

_LONGEST_LINE, _LONGEST_TRACE = 1_000, 8_000
"""Letters, each of them up to twelve bytes in a message; of a longer traceback the end is kept."""


class LostPlanError(Exception):
    """A plan is not where it should be, or damaged: it is to be made again."""


def trouble_of(error: Exception) -> Trouble:
    """What kind of trouble an error is, and who can mend it."""
    trace = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
    if isinstance(error, LostPlanError):
        return Trouble(sort="lost_plan", line=str(error), traceback=trace)
    if isinstance(error, StorageError):
        return Trouble(sort="storage", line=str(error), code=error.exit_code)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        full = storage_error(error, Path(error.filename or "the disk"))
        return Trouble(sort="storage", line=str(full), code=full.exit_code)
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        few = InputError("too many open files for this process", where="ulimit -n", instead="raise the limit, to 1024")
        return Trouble(sort="input", line=str(few), code=few.exit_code)
    if isinstance(error, InputError):
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        return Trouble(sort="input", line=f"{error}{notes}", code=error.exit_code)
    return Trouble(sort="exception", line=f"{type(error).__name__}: {error}"[:_LONGEST_LINE], traceback=trace)
