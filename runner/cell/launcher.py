"""The launcher: starts the supervisor, again when it ends unasked, passes signals on, and shows the dashboard."""

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
"""[s]"""
_SILENCE = 8.0
"""[s] A supervisor whose loop is silent for so long is ended; it sends a beat each second. A machine that sleeps is no
reason, and neither is what it asked patience for."""
_STARTING = 120.0
"""[s] A supervisor may take to its first beat: a busy machine, packages on a network disk."""
_DISK = 120.0
"""[s] It may wait for a disk: the kernel does not let it go before, killed or not."""
_MOST_ENDS = 5
"""A supervisor that ends so often without anything stored in between is not started again."""


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
        """[s] For which it was silent when it was ended as hung; 0: it was not."""

    def listen(self) -> None:
        """Wait a moment for its messages, and take one."""
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
        """Check whether its loop has been silent for too long.

        Args:
            now: [s] of the monotonic clock.
        """
        silence = now - self.last_beat
        return silence > (_DISK if silence > _SILENCE and is_in_kernel(self.process.pid) else _SILENCE)

    def kill(self) -> None:
        """Kill it; its workers end with it."""
        self.process.kill()
        self.process.wait()


def run_cell(spec: CellSpec, *, watch: Callable[[], int]) -> Ended:
    """Run a cell to its end.

    Args:
        spec: What to do.
        watch: Called several times a second; shows how far the run is, and returns the number of settled episodes.

    Returns:
        How it ended.

    Raises:
        KeyboardInterrupt: Stopped at once, by a second Ctrl-C.
    """
    tag = spec.worker_environment["NIMBUS_CELL"]
    ends, settled = 0, -1
    sweep(tag)  # what a launcher that was killed could not
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
            now = watch()
            ends, settled = (ends + 1 if now == settled else 1), now
            if interruption.requested:
                return Ended(code=130, state="interrupted")
            if ends >= _MOST_ENDS:
                what = f"the supervisor died {ends} times in a row ({_exit_reason(supervisor.process.returncode)})"
                return Ended(code=1, state="failed", line=what)
            if supervisor.silence:
                write_error(f"the supervisor was silent for {supervisor.silence:.0f} s: ended, and replaced\n")
            time.sleep(min(10.0, 0.25 * 2 ** (ends - 1)) if ends > 1 else 0.0)


def _attend(supervisor: _Supervisor, interruption: Interruption, watch: Callable[[], int]) -> Ended | None:
    """Wait until a supervisor has ended; its last message, or None when it ended without one."""
    asked = False
    before = time.monotonic()
    while supervisor.process.poll() is None:
        supervisor.listen()
        watch()
        now = time.monotonic()
        if now - before > 2.0:  # this process slept as well: forgive
            supervisor.last_beat += now - before
        before = now
        if interruption.requested and not asked:
            supervisor.process.send_signal(signal.SIGTERM)
            asked = True
        if supervisor.is_hung(now):
            supervisor.silence = now - supervisor.last_beat
            supervisor.kill()
    while supervisor.ended is None and supervisor.channel.poll(0):
        if (received := supervisor.channel.receive()) is None:
            break
        message = from_bytes(received[0])
        supervisor.ended = message if isinstance(message, Ended) else None
    supervisor.channel.close()
    return supervisor.ended


def _exit_reason(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
