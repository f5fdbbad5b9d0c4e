"""The supervisor of the roles: each runs in a process, which is started again when it exits or hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import nimbus
from nimbus.datagen.errors import BUG
from nimbus.runner.improvement.loop import Improvement
from nimbus.runner.improvement.times import ROLE_NAMES, read_times
from nimbus.runner.system.output import write_error
from nimbus.runner.system.processes import (
    LAUNCHER,
    TAG,
    Interruption,
    cell_tag,
    describe,
    is_in_kernel,
    sweep,
)

_POLL = 0.1
"""Interval of the checks of the roles [s]."""
_SILENCE = 180.0
"""Time without a heartbeat after which a role is killed [s]. The longest pause, loading the scene, takes a sixth of
this time on a busy machine."""
_MOST_ENDS = 5
"""Number of exits without completed work in between after which a role is not started again."""


class _RoleProcess:
    """Process of a role, which is started again after an unexpected exit."""

    def __init__(self, loop: Improvement, name: str) -> None:
        self._loop, self.name = loop, name
        self._alive = loop.folder / "roles" / f"{name}.alive"
        self.ends, self._pieces = 0, -1
        self.start()

    def start(self) -> None:
        """Start the process."""
        self._alive.parent.mkdir(exist_ok=True)
        self._alive.touch()
        root = str(Path(nimbus.__file__).parents[1])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
        own = {"PYTHONPATH": path, LAUNCHER: str(os.getpid()), TAG: cell_tag(self._loop.folder)}
        words = [sys.executable, "-P", "-m", "nimbus.runner.improvement.roles"]
        words += [str(self._loop.folder), self.name, str(os.getpid())]
        self.process = subprocess.Popen(
            words, env=os.environ | own, cwd="/", stdin=subprocess.DEVNULL, start_new_session=True
        )

    def attend(self) -> int | None:
        """Restart the process if needed; return its exit code once it has ended for good, else None."""
        code = self.process.poll()
        if code is None:
            with suppress(FileNotFoundError):
                silence = time.time() - self._alive.stat().st_mtime
                if silence > _SILENCE and not is_in_kernel(self.process.pid):
                    write_error(f"role {self.name} sent nothing for {silence:.0f} s; it was killed\n")
                    self.process.kill()
            return None
        if code in (0, 2, BUG):
            return code
        pieces = read_times(self._loop, self.name).pieces
        self.ends, self._pieces = (self.ends + 1 if pieces == self._pieces else 1), pieces
        if self.ends >= _MOST_ENDS:
            write_error(f"role {self.name} exited {self.ends} times in a row ({describe(code)})\n")
            return 1
        self.start()
        return None

    def kill(self) -> None:
        """Kill the process; its unfinished work is made again."""
        self.process.kill()
        self.process.wait()


def supervise(loop: Improvement) -> int:
    """Run the roles side by side until all of their work is done; return the exit code.

    Raises:
        KeyboardInterrupt: The user stopped the command. Completed work stays.
    """
    tag = cell_tag(loop.folder)
    sweep(tag)  # processes that a killed supervisor could not end
    members: list[_RoleProcess] = []
    try:
        with Interruption() as interruption:
            members = [_RoleProcess(loop, name) for name in ROLE_NAMES]
            working = list(members)
            while working:
                for member in list(working):
                    code = member.attend()
                    if code:
                        return code
                    if code == 0:
                        working.remove(member)
                if interruption.requested:
                    raise KeyboardInterrupt
                time.sleep(_POLL)
    finally:
        for member in members:
            member.kill()
        sweep(tag)
    return 0
