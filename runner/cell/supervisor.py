"""Supervisor: a single thread that starts workers, hands out work, commits results, and watches for hangs.

It runs no user code and loads no simulator. Its decisions follow from the ledger and the workers' messages alone, so
that after a crash the ledger is enough to resume.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from nimbus.datagen.errors import InputError, StoreAwayError, single_line
from nimbus.runner.cell.transport.channel import Channel, pair
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker.fork_server import main as run_fork_server
from nimbus.runner.isaac.instance import IsaacInstances
from nimbus.runner.system import processes
from nimbus.runner.system.output import write_error

if TYPE_CHECKING:
    from nimbus.runner.cell.run_loop import RunLoop
    from nimbus.runner.cell.transport.messages import Ended, Loaded

TICK = 0.1
"""Interval of the periodic checks [s]."""
_BEAT = 1.0
"""Interval between two messages to the launcher [s]."""
_LOADING = 900.0
"""Longest time for the fork server to load, and again to compile kernels, slow disks included [s]."""
_OPENING = 60.0
"""Longest time to open the dataset beyond the estimate from its ledger's size, and longest time to end a run [s]."""
_COLLECT = 20_000
"""Threshold of the garbage collector [net allocations]; messages and ledger rows form no cycles."""
_AWAY = 5.0
"""Interval between attempts to open a dataset whose store does not answer [s]."""
_FORK_SERVERS = 5
"""Number of fork servers that end while loading, after which the run is given up."""


class Supervisor:
    """Runs one spec to its end.

    Args:
        spec: The run.
        launcher: Channel to the process that started this one.
    """

    def __init__(self, spec: CellSpec, launcher: Channel) -> None:
        self.spec = spec
        self._launcher = launcher
        self._selector = selectors.DefaultSelector()
        self._wake, wake = socket.socketpair()
        wake.setblocking(False)
        # A signal during select() must end the wait: its byte arrives on a socket that the selector watches.
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self._wake_end = wake
        self._selector.register(self._wake, selectors.EVENT_READ, lambda: self._wake.recv(64))
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        # The launcher alone decides when to stop, and sends SIGTERM.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._stop_asked = False
        self._fork_server_deaths = 0
        self._run_loop: RunLoop | None = None
        self._loaded: Loaded | None = None
        """Fork server's description of the job, until the dataset is open."""
        self._open_at = 0.0
        self._is_ready = False
        """True once the fork server can fork."""
        self._started = time.time()
        self._start_fork_server()  # forked before this process loads anything else, so that both load at the same time

    def run(self) -> Ended:
        """Work until everything is settled or the run fails; return its result."""
        next_tick = next_beat = 0.0
        try:
            while True:
                wait = next_tick - time.monotonic()
                # Wake up for a due commit even if that falls between two ticks.
                if self._run_loop and (commit := self._run_loop.next_commit) is not None:
                    wait = min(wait, commit - time.monotonic())
                for key, _ in self._selector.select(max(0.0, wait)):
                    if self._selector.get_map().get(key.fd) is key:  # an earlier callback may have closed it
                        key.data()
                now = time.monotonic()
                if now >= next_beat:
                    next_beat = now + _BEAT
                    self._beat()
                if is_tick := now >= next_tick:
                    next_tick = now + TICK
                if ended := self._go_on(now, is_tick=is_tick):
                    return ended
        finally:
            self._close()

    def _go_on(self, now: float, *, is_tick: bool) -> Ended | None:
        if self._refusal:
            return self._refusal
        if self._fork_server_due and now > self._fork_server_due:
            processes.kill_group(self._fork_server_pid)  # its end is handled like that of any other process
        if self._run_loop is None and self._stop_asked:
            return self._interrupted()
        if self._loaded and now >= self._open_at:
            self._open(self._loaded)
        if self._run_loop is None:
            return self._refusal
        if self._stop_asked:
            self._run_loop.drain(now)
        return self._run_loop.go_on(now, is_tick=is_tick)

    def _interrupted(self) -> Ended:
        from nimbus.runner.cell.transport.messages import Ended

        return Ended(code=130, state="interrupted")

    def _ask_to_stop(self, *_: object) -> None:
        self._stop_asked = True

    def _beat(self, *, patience: float = 0.0) -> None:
        from nimbus.runner.cell.transport.messages import Alive, to_bytes

        self._launcher.post(to_bytes(Alive(patience=patience)))

    # The fork server

    def _start_fork_server(self) -> None:
        self._refusal: Ended | None = None
        self._is_ready = False
        self.fork_server, theirs = pair()
        supervisor = os.getpid()
        # The log is in memory, because the folder of the run may not exist yet, and a full disk must not hide why
        # loading failed.
        self._fork_server_log = os.memfd_create("nimbus-zygote-log")
        # A plain fork is safe, because this process has a single thread.
        pid = os.fork()
        if pid == 0:
            _become_fork_server(self.spec, theirs, log=self._fork_server_log, supervisor=supervisor)
        theirs.close()
        self._fork_server_pid, self._fork_server_pidfd = pid, processes.open_pidfd(pid)
        self._fork_server_due: float | None = time.monotonic() + _LOADING
        if self._run_loop:
            self._run_loop.fork_server_pid = pid
        self._selector.register(self.fork_server, selectors.EVENT_READ, self._read_fork_server)
        self._selector.register(self._fork_server_pidfd, selectors.EVENT_READ, self._replace_fork_server)

    def _read_fork_server(self) -> None:
        from nimbus.runner.cell.transport.messages import Loaded, Ready, Spawned, WorkerError, from_bytes
        from nimbus.runner.cell.worker.errors import exit_code_of

        # Read until empty: the fork server may have announced several workers before it ended.
        while received := self.fork_server.receive_now():
            message = from_bytes(received)
            if isinstance(message, Spawned) and self._run_loop:
                self._run_loop.register_process(message.worker, message.pid)
            elif isinstance(message, Loaded) and self._run_loop is None:
                self._loaded = message
                self._fork_server_due = time.monotonic() + _LOADING  # compiling takes minutes on a busy machine
            elif isinstance(message, Ready):
                self._fork_server_due, self._is_ready = None, True
                if self._run_loop:
                    self._run_loop.fork_server_ready(self.fork_server)
            elif isinstance(message, WorkerError):
                self._refusal = exit_code_of(message)
        if self.fork_server.closed_by_peer and self.fork_server in self._selector.get_map():
            self._selector.unregister(self.fork_server)

    def _open(self, loaded: Loaded) -> None:
        """Open the dataset and begin the run; a store that does not answer is asked again later."""
        self._beat(patience=_OPENING)
        from nimbus.runner.cell.run_loop import RunLoop
        from nimbus.runner.cell.start_run import opening_seconds
        from nimbus.runner.cell.transport.messages import Ended

        self._beat(patience=_OPENING + opening_seconds(self.spec.folder))
        try:
            self._run_loop = RunLoop(
                self.spec,
                loaded,
                self._selector,
                fork_server_pid=self._fork_server_pid,
                drain_fork_server=self._read_fork_server,
                started=self._started,
                tick=TICK,
            )
        except StoreAwayError as error:  # the uploads wait for the store, too
            if not self._open_at:
                write_error(single_line(f"{error.where}: {error.what}; the run waits for it") + "\n")
            self._open_at = time.monotonic() + _AWAY
            return
        except InputError as error:
            self._refusal = Ended(code=error.exit_code, state="failed", line=str(error))
            return
        self._loaded = None
        if self._is_ready:
            self._run_loop.fork_server_ready(self.fork_server)
        gc.freeze()  # loaded objects are never garbage: later collections skip them
        gc.set_threshold(_COLLECT)
        self._beat()  # the long silence that was announced for loading is over

    def _replace_fork_server(self) -> None:
        self._read_fork_server()
        how = processes.reap(self._fork_server_pid)
        if self._run_loop:
            self._run_loop.fork_server_ended()
        self._forget_fork_server()
        if self._refusal:
            return
        self._fork_server_deaths += 1
        log = os.pread(self._fork_server_log, 20_000, max(0, os.fstat(self._fork_server_log).st_size - 20_000))
        os.close(self._fork_server_log)
        if self._run_loop:
            self._run_loop.fault_handler.fault("zygote", how, log_tail=log.decode(errors="replace"))
        # Results prove that loading works. If a fork server ends later, the machine is the cause, and the run goes on.
        if self._fork_server_deaths >= _FORK_SERVERS and not (self._run_loop and self._run_loop.dispatcher.results):
            from nimbus.runner.cell.transport.messages import Ended

            line = f"loading ended {self._fork_server_deaths} times without a result, the last time {how}"
            self._refusal = Ended(code=1, state="failed", line=line)
            return
        self._start_fork_server()

    def _forget_fork_server(self) -> None:
        for thing in (self.fork_server, self._fork_server_pidfd):
            if thing in self._selector.get_map():
                self._selector.unregister(thing)
        os.close(self._fork_server_pidfd)
        self.fork_server.close()
        self._fork_server_pid = 0

    def _close(self) -> None:
        self._beat(patience=_OPENING)
        if self._run_loop:
            self._run_loop.close()
        if self._fork_server_pid:
            processes.kill_group(self._fork_server_pid)
            processes.reap(self._fork_server_pid)
        for pid in processes.orphans(set()):
            processes.kill_group(pid)
            processes.reap(pid)


def _become_fork_server(spec: CellSpec, channel: Channel, *, log: int, supervisor: int) -> None:
    """Turn the forked process into the fork server: keep one channel to the supervisor, and serve."""
    code = 1
    try:
        os.setsid()
        processes.die_with_parent(supervisor)
        signal.set_wakeup_fd(-1)
        os.dup2(log, 1)
        os.dup2(log, 2)
        kept = channel.fileno()
        # Close every inherited descriptor but the channel. Workers inherit what this process holds, and a socket that
        # they keep open would hide the end of its peer.
        os.closerange(3, kept)
        os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 65536 else 65536)
        run_fork_server(spec, channel, supervisor=supervisor, instances=IsaacInstances())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main(words: list[str]) -> int:
    """Supervise for the launcher that started this process: ``supervisor DESCRIPTOR LAUNCHER_PID``."""
    import faulthandler

    channel = Channel(socket.socket(fileno=int(words[0])))
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    processes.die_with_parent(int(words[1]))
    # Workers whose intermediate parent has exited become children of this process, which alone learns how they ended.
    processes.become_subreaper()
    received = channel.receive()
    if received is None:
        return 1
    spec = CellSpec.from_text(received[0].decode())
    ended: Any
    try:
        ended = Supervisor(spec, channel).run()
    except Exception as error:
        from nimbus.runner.cell.worker.errors import classify_error, exit_code_of

        ended = exit_code_of(classify_error(error))
    from nimbus.runner.cell.transport.messages import to_bytes

    channel.send(to_bytes(ended))
    return ended.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
