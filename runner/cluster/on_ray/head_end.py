"""Result of the head's process, as the head actor reads it. No import of Ray, so that tests need no cluster."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from nimbus.datagen.errors import single_line
from nimbus.datagen.files.codec import from_json
from nimbus.runner.cluster.job import HeadEnd
from nimbus.runner.cluster.on_ray.kept_process import KeptProcess


def await_end(head: KeptProcess, place: Callable[[], None], *, interval: float) -> HeadEnd:
    """Wait until the head's process is over, and return the result of the run.

    An unexpected error of ``place`` ends the process and is the result: without one, the command would wait forever.

    Args:
        head: The head's process, already started.
        place: Creates the relays of new nodes; called once per interval.
        interval: Interval between the calls [s].
    """
    try:
        while not head.over.wait(interval):
            place()
    except Exception as error:  # top of a thread: no caller would see the error
        traceback.print_exc()
        head.kill()
        return HeadEnd(state="failed", line=single_line(f"no nodes for the head: {error!r}"))
    if end := parse_end(head.output):
        return end
    if head.failure:
        return HeadEnd(state="failed", line=single_line(f"the head {head.failure}"))
    return HeadEnd(state="interrupted")  # the head was stopped while it loaded


def parse_end(output: str) -> HeadEnd | None:
    """Parse the last line of the head's standard output; return None if it is not a result."""
    try:
        return from_json(HeadEnd, output.splitlines()[-1])
    except (ValueError, IndexError):
        return None
