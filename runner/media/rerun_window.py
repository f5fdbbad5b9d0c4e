"""Window of Rerun as a separate process, whose server takes no connections.

The server of the window asks for no token. Every user of this machine, and some web pages, could order it to show the
recording, to open any file of the user, and to write and delete files. It cannot be switched off. The process therefore
has a filter of system calls, by which no connection ever reaches the server.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.system_calls import has_filters, refuse_clients

LOOPBACK = "127.0.0.1"


def start_window(recording: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a window that reads a recording from its standard input, or from a file.

    Args:
        recording: The file; None for the standard input.

    Raises:
        InputError: This system has no filters of system calls, so that the window would serve every user.
    """
    if not has_filters():
        what = "Rerun's window would obey every user of this machine, which only Linux on x86-64 or AArch64 can prevent"
        raise InputError(what, where="nimbus view", instead="give --sheet FILE.png, or --save FILE.rrd")
    # With "--new", it does not hand the recording over to a process that listens at its usual port.
    words = [str(recording.absolute()) if recording else "-", "--bind", LOOPBACK, "--new", "--hide-welcome-screen"]
    command = [sys.executable, "-P", "-m", __name__, *words, *([] if recording else ["--expect-data-soon"])]
    return subprocess.Popen(command, cwd="/", stdin=subprocess.PIPE, start_new_session=True)


def finish_window(process: subprocess.Popen[bytes], end: Callable[[], object]) -> None:
    """End the recording of a window.

    Args:
        process: The window.
        end: Function that writes the rest of the recording.

    Raises:
        InputError: The window ended before it had read the recording.
    """
    with suppress(RuntimeError, OSError, ValueError):  # the window has ended, and the pipe is broken
        end()
    assert process.stdin
    with suppress(BrokenPipeError):
        process.stdin.close()
    if code := process.poll():
        what = f"Rerun ended with exit code {code}"
        raise InputError(what, where="nimbus view", instead="give --save FILE.rrd, and open the file elsewhere")


def _become_rerun(words: Sequence[str]) -> None:
    """Replace this process by Rerun, which keeps the filter."""
    os.chdir("/")
    refuse_clients()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "rerun", *words])


if __name__ == "__main__":
    _become_rerun(sys.argv[1:])
