"""The launcher: starts the supervisor, starts it again when it dies, passes signals on, and shows the dashboard."""

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
_DEATHS = 5
"""A supervisor that dies so often without anything stored in between is not started again."""


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
        self.heard = time.monotonic() + _STARTING - _SILENCE
        self.ended: Ended | None = None
        self.silence = 0.0
        """[s] For which it was silent when it was ended as hung; 0: it was not."""

    def listen(self) -> None:
        """Take what it says, for a moment."""
        if not self.channel.poll(_POLL):
            return
        if (received := self.channel.receive()) is None:
            time.sleep(_POLL)
            return
        self.heard = time.monotonic()
        match from_bytes(received[0]):
            case Ended() as ended:
                self.ended = ended
            case Alive(patience=patience):
                self.heard += patience

    def is_hung(self, now: float) -> bool:
        """Check whether its loop has been silent for too long.

        Args:
            now: [s] of the monotonic clock.
        """
        silence = now - self.heard
        return silence > (_DISK if silence > _SILENCE and is_in_kernel(self.process.pid) else _SILENCE)

    def kill(self) -> None:
        """End it at once; its workers die with it."""
        self.process.kill()
        self.process.wait()


def run_cell(spec: CellSpec, *, watch: Callable[[], int]) -> Ended:
    """Run a cell to its end.

    Args:
        spec: What to do.
        watch: Called several times a second; shows how far the run is, and says how many episodes are settled.

    Returns:
        How it ended.

    Raises:
        KeyboardInterrupt: Stopped at once, by a second Ctrl-C.
    """
    tag = spec.worker_environment["NIMBUS_CELL"]
    deaths, settled = 0, -1
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
            deaths, settled = (deaths + 1 if now == settled else 1), now
            if interruption.requested:
                return Ended(code=130, state="interrupted")
            if deaths >= _DEATHS:
                what = f"the supervisor died {deaths} times in a row ({_death(supervisor.process.returncode)})"
                return Ended(code=1, state="failed", line=what)
            if supervisor.silence:
                write_error(f"the supervisor was silent for {supervisor.silence:.0f} s: ended, and replaced\n")
            time.sleep(min(10.0, 0.25 * 2 ** (deaths - 1)) if deaths > 1 else 0.0)


def _attend(supervisor: _Supervisor, interruption: Interruption, watch: Callable[[], int]) -> Ended | None:
    """Wait until a supervisor is gone; what it said at last, or None when it died."""
    asked = False
    before = time.monotonic()
    while supervisor.process.poll() is None:
        supervisor.listen()
        watch()
        now = time.monotonic()
        if now - before > 2.0:  # this process slept as well: forgive
            supervisor.heard += now - before
        before = now
        if interruption.requested and not asked:
            supervisor.process.send_signal(signal.SIGTERM)
            asked = True
        if supervisor.is_hung(now):
            supervisor.silence = now - supervisor.heard
            supervisor.kill()
    while supervisor.ended is None and supervisor.channel.poll(0):
        if (received := supervisor.channel.receive()) is None:
            break
        message = from_bytes(received[0])
        supervisor.ended = message if isinstance(message, Ended) else None
    supervisor.channel.close()
    return supervisor.ended


def _death(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
