"""Launcher: starts the supervisor, restarts it after a crash, forwards signals, and shows the dashboard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nimbus
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.messages import Alive, Ended, from_bytes
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.system.output import write_error
from nimbus.runner.system.processes import LAUNCHER, Interruption, is_in_kernel, sweep

_POLL = 0.1
"""Longest wait for a message of the supervisor [s]."""
_SILENCE = 8.0
"""Longest time without a message before a supervisor is killed [s]; it sends one each second."""
_STARTING = 120.0
"""Longest time until the first message [s]: the machine may be busy, the packages on a network disk."""
_DISK = 120.0
"""Longest wait for a process in uninterruptible disk I/O [s]; the kernel would not end it earlier anyway."""
_MOST_ENDS = 5
"""Number of consecutive crashes, without a settled episode in between, after which there is no restart."""


class _Supervisor:
    """The process of a supervisor, and the channel to it."""

    def __init__(self, spec: CellSpec) -> None:
        self.channel, theirs = pair()
        descriptor = theirs.fileno()
        root = str(Path(nimbus.__file__).parents[1])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "nimbus.runner.cell.supervisor", str(descriptor), str(os.getpid())],
            env=os.environ | spec.worker_environment | {"PYTHONPATH": path, LAUNCHER: str(os.getpid())},
            pass_fds=(descriptor,),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self.channel.send(spec.to_text().encode())
        self.last_beat = time.monotonic() + _STARTING - _SILENCE
        self.ended: Ended | None = None
        self.silence = 0.0
        """Duration of the silence for which the supervisor was killed as hung [s]; 0 if it was not killed."""

    def listen(self) -> None:
        """Wait briefly for a message, and process it."""
        if not self.channel.poll(_POLL):
            return
        if (received := self.channel.receive()) is None:
            time.sleep(_POLL)
            return
        self.last_beat = time.monotonic()
        match from_bytes(received[0]):
            case Ended() as ended:
                self.ended = ended
            case Alive(patience=patience):
                self.last_beat += patience

    def is_hung(self, now: float) -> bool:
        """Return True when the supervisor's loop has been silent for too long.

        Args:
            now: Monotonic time [s].
        """
        silence = now - self.last_beat
        return silence > (_DISK if silence > _SILENCE and is_in_kernel(self.process.pid) else _SILENCE)

    def kill(self) -> None:
        """Kill the supervisor; its workers end with it."""
        self.process.kill()
        self.process.wait()


def run_cell(spec: CellSpec, *, watch: Callable[[], int]) -> Ended:
    """Run a cell to its end.

    Args:
        spec: The run.
        watch: Called several times per second; shows the progress and returns the number of settled episodes.

    Returns:
        Result of the run.

    Raises:
        KeyboardInterrupt: The run was stopped at once by a second Ctrl-C.
    """
    tag = spec.worker_environment["NIMBUS_CELL"]
    ends, settled = 0, -1
    sweep(tag)  # remove the processes of a launcher that was killed
    with Interruption() as interruption:
        while True:
            supervisor = _Supervisor(spec)
            try:
                ended = _attend(supervisor, interruption, watch)
            except BaseException:
                supervisor.kill()
                raise
            finally:
                sweep(tag)
            if ended is not None:
                return ended
            # Crashes are consecutive only while no episode is settled in between.
            now = watch()
            ends, settled = (ends + 1 if now == settled else 1), now
            if interruption.requested:
                return Ended(code=130, state="interrupted")
            if ends >= _MOST_ENDS:
                what = f"the supervisor died {ends} times in a row ({_exit_reason(supervisor.process.returncode)})"
                return Ended(code=1, state="failed", line=what)
            if supervisor.silence:
                write_error(
                    f"the supervisor sent nothing for {supervisor.silence:.0f} s; it was killed and restarted\n"
                )
            # The first restart is immediate; a supervisor that keeps crashing must not fill the log.
            time.sleep(min(10.0, 0.25 * 2 ** (ends - 1)) if ends > 1 else 0.0)


def _attend(supervisor: _Supervisor, interruption: Interruption, watch: Callable[[], int]) -> Ended | None:
    """Wait for the end of a supervisor; return its last message, or None when it ended without one."""
    asked = False
    before = time.monotonic()
    while supervisor.process.poll() is None:
        supervisor.listen()
        watch()
        now = time.monotonic()
        if now - before > 2.0:  # this process was suspended as well, so the silence proves nothing
            supervisor.last_beat += now - before
        before = now
        if interruption.requested and not asked:
            supervisor.process.send_signal(signal.SIGTERM)
            asked = True
        if supervisor.is_hung(now):
            supervisor.silence = now - supervisor.last_beat
            supervisor.kill()
    # The process may have ended with messages still in the channel, the result of the run among them.
    while supervisor.ended is None and supervisor.channel.poll(0):
        if (received := supervisor.channel.receive()) is None:
            break
        message = from_bytes(received[0])
        supervisor.ended = message if isinstance(message, Ended) else None
    supervisor.channel.close()
    return supervisor.ended


def _exit_reason(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
