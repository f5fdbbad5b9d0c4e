"""Standard output and errors as the caller left them: closed, on a full disk, read by somebody who went away."""

from __future__ import annotations

import errno
import os
import sys


def open_closed_streams() -> None:
    """Give what the caller closed (``>&-``) the null device, before a data file takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
    sys.stdout = sys.stdout or open(1, "w", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)


def drop_output() -> None:
    """Keep the interpreter from complaining when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def output_complaint(error: Exception) -> str:
    """What to say of a full disk: writers of files tell it themselves, so it is that of the output; else empty."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return ""
    try:
        sys.stdout.flush()
    except OSError:
        drop_output()
    return f"{error.filename or 'standard output'}: no space left on device; write it where there is room"
