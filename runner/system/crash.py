"""An error that nobody expected: a bug of Nimbus, or of somebody's own skills and components."""

from __future__ import annotations

import sys
import traceback

from nimbus.datagen.errors import single_line
from nimbus.datagen.tasks.plugin_origin import user_frame_line

OWN, BUG = 1, 70


def report_crash(error: Exception, *, in_full: bool = False) -> int:
    """Say what happened; the exit code.

    Args:
        error: It is being handled.
        in_full: With the traceback, also where one line says who is to blame.
    """
    own = user_frame_line(error)
    if in_full or not own:
        traceback.print_exception(error)
    if own:
        sys.stderr.write(single_line(own) + "\n")
    return OWN if own else BUG
