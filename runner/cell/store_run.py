"""Run into an object store: the cell writes to a spool, and a separate process sends the files from there."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nimbus.datagen.errors import InputError, StorageError, single_line
from nimbus.datagen.files.own_files import open_shared
from nimbus.datagen.store.remote.address import StoreAddress, parse_address
from nimbus.datagen.store.remote.cache_root import make_folder
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.spool import open_spool
from nimbus.datagen.store.remote.uploader import Uploader, read_state
from nimbus.datagen.store.remote.working_copy import spool_folder
from nimbus.datagen.store.remote.writer_lock import BEAT, WriterLock
from nimbus.runner.system.output import error_line, write_error, write_out
from nimbus.runner.system.processes import Interruption, describe, die_with_parent

REFUSED = 2
"""Exit code when the store refuses files of the run."""
_NICE = 5
"""Niceness of the sending process, so that planning and rendering come first."""
_SPOOL = 20_000_000_000
"""Largest total of files waiting to be sent [bytes]: some hundreds of episodes."""
_LOOK, _RESTART = 0.2, 2.0
"""Interval between two checks of the sending process, and delay before it is restarted [s]."""
_TELL = 15.0
"""Interval between two messages about waiting files [s]."""


def run_into_store(address: StoreAddress, run: Callable[[Path], int]) -> int:
    """Run with a spool as the dataset's folder and send all files to the store; the same command continues the run.

    Args:
        address: Address of the dataset.
        run: Runs into a folder and returns the exit code.

    Raises:
        InputError: The store overwrites files on conditional writes, denies access, lacks the bucket, or another run
            writes to the dataset.
        KeyboardInterrupt: The run was stopped; files that are not in the store yet stay in the spool.
    """
    with _alone(address):
        return _run_alone(address, run)


def _run_alone(address: StoreAddress, run: Callable[[Path], int]) -> int:
    spool, store, lock = open_spool(address)
    try:
        with _stopped_by_signal(), _sending(spool, store, lock):
            code = run(spool)
    except KeyboardInterrupt:
        if (state := read_state(spool)).state == "refused":  # the sending process ended the run
            write_error(error_line(state.line))
            return REFUSED
        _publish_last(spool, store, lock)
        _report_waiting(spool)
        raise
    except InputError:
        with suppress(InputError):
            lock.free()
        raise
    state = read_state(spool)
    if state.state == "refused":
        write_error(error_line(state.line))
        return max(code, REFUSED)
    _finish(spool, store, lock)
    write_out(f"stored in: {address}\n")
    return code


def spool_limit(folder: Path) -> int:
    """Return the default size limit of a spool [bytes]."""
    return min(_SPOOL, shutil.disk_usage(folder).free // 2)


@contextmanager
def _stopped_by_signal() -> Iterator[None]:
    """Make SIGTERM, which the sending process sends, act like Ctrl-C in a run that has no handler for it."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _alone(address: StoreAddress) -> Iterator[None]:
    """Refuse a second run into the same spool, which could take the lock in the store from the first."""
    make_folder(spool := spool_folder(address))
    descriptor = open_shared(spool / "upload.lock")
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = "another run on this machine writes into this dataset"
            raise InputError(what, where=str(address), instead="wait for its end, or choose another --out") from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _sending(spool: Path, store: ObjectStore, lock: WriterLock) -> Iterator[None]:
    """Run a process that sends the files of the spool; it is restarted when it dies, and ends with this process."""
    assert lock.note
    # -P keeps the working directory off the module path: files of the user there may be named like modules.
    words = [sys.executable, "-P", "-m", "nimbus.runner.cell.store_run", str(spool), str(store.address)]
    words += [lock.note.owner, str(lock.note.epoch), str(os.getpid())]
    is_over, started = threading.Event(), threading.Event()

    def keep() -> None:
        """Start the process, restart it, and end it after the run."""
        while True:
            process = subprocess.Popen(
                words,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                cwd="/",
                stdin=subprocess.DEVNULL,
                # Ctrl-C must reach only the run, which then terminates this process.
                start_new_session=True,
            )
            started.set()
            next_beat = time.monotonic() + BEAT
            while process.poll() is None and not is_over.wait(_LOOK):
                if time.monotonic() >= next_beat:
                    next_beat = time.monotonic() + BEAT if _renew_first(lock) else float("inf")
            if is_over.is_set() or process.returncode == REFUSED:
                break
            write_error(f"the process that sends files ended ({describe(process.returncode)}) and is restarted\n")
            if is_over.wait(_RESTART):
                return
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60)
        process.kill()
        process.wait()

    # The kernel kills the process when the thread that started it ends, so this thread lives as long as the run.
    keeper = threading.Thread(target=keep, name="sending")
    keeper.start()
    try:
        started.wait(10.0)
        yield
    finally:
        is_over.set()
        keeper.join()


def _renew_first(lock: WriterLock) -> bool:
    """Renew the lock in place of a sending process that is slow to start; return False once that process renews it."""
    with suppress(InputError):
        if lock.read() != lock.note:
            return False
        lock.renew()
    return True


def _finish(spool: Path, store: ObjectStore, lock: WriterLock) -> None:
    """Send the remaining files and publish ledger and description; waits for the store as long as necessary."""
    uploader = Uploader(store, spool, lock)
    told = 0.0
    try:
        with Interruption() as interruption:
            while True:
                waiting = uploader.go_on()
                if not waiting:
                    # An error of the store leads to another round after the pause.
                    with suppress(StorageError):
                        uploader.publish()
                        uploader.publish_pages("preview")
                        lock.free()
                        return
                if interruption.requested:
                    _report_waiting(spool)
                    raise KeyboardInterrupt
                if time.monotonic() - told > _TELL:
                    told = time.monotonic()
                    _report_waiting(spool)
                time.sleep(uploader.pause)
    finally:
        uploader.close()


def _publish_last(spool: Path, store: ObjectStore, lock: WriterLock) -> None:
    """Publish the sent episodes of a stopped run and free its writer lock; does nothing for an unreachable store."""
    uploader = Uploader(store, spool, lock)
    try:
        with suppress(InputError):
            uploader.publish()
            lock.free()
    finally:
        uploader.close()


def _report_waiting(spool: Path) -> None:
    state = read_state(spool)
    if state.waiting or state.state == "away":
        away = f" ({single_line(state.line)})" if state.state == "away" else ""
        size = f"{state.waiting} files, {state.waiting_bytes / 1e6:,.0f} MB, wait to be sent"
        write_error(f"{size}{away}; the same command again sends them\n")


def main(words: list[str]) -> int:
    """Send until the run ends: ``store_run SPOOL ADDRESS OWNER EPOCH PID``."""
    spool, address, owner, epoch, parent = Path(words[0]), words[1], words[2], int(words[3]), int(words[4])
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(_NICE)
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    store = ObjectStore(parse_address(address))
    uploader = Uploader(store, spool, WriterLock(store, owner, epoch=epoch))
    try:
        while not stopped:
            uploader.go_on()
            _sleep(uploader.pause, lambda: stopped)
    except InputError:
        os.kill(parent, signal.SIGTERM)  # the run ends its work in progress; the error is in the spool
        return REFUSED
    finally:
        uploader.close()
    return 0


def _sleep(seconds: float, is_over: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not is_over():
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
