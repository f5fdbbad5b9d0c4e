"""The process that uploads files during a run: it is restarted when it dies, and its refusal ends the run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.remote.address import parse_address
from nimbus.datagen.store.remote.object_store import ObjectStore
from nimbus.datagen.store.remote.uploader import spool_sizes
from nimbus.datagen.store.remote.working_copy import open_dataset
from nimbus.datagen.store.remote.writer_lock import WriterLock
from nimbus.datagen.store.verify import verify
from nimbus.runner.cell.store_run import REFUSED, _renew_first, run_into_store
from tests.support.cells import until
from tests.support.synthetic import make_rendered, write_dataset


def senders(spool: Path) -> list[int]:
    """Return the processes that upload the files of a spool."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"nimbus.runner.cell.store_run" in words and os.fsencode(spool) in words:
            found.append(int(entry.parent.name))
    return found


def test_lock_is_renewed_until_the_sender_does(address: str):
    """The sender of a run once started late on a busy machine, and another run took over the lock."""
    store = ObjectStore(parse_address(address))
    lock = WriterLock(store, "owner")
    lock.take()
    assert lock.note and _renew_first(lock) and lock.note.beat == 1
    sender = WriterLock(store, "owner", epoch=lock.note.epoch)
    for _ in range(2):
        sender.renew()
    assert not _renew_first(lock)


@pytest.mark.slow
def test_killed_sender_is_started_again(address: str, capsys: pytest.CaptureFixture[str]):
    """A run with a full spool once waited for the killed sender forever."""

    def run(spool: Path) -> int:
        (first,) = until(lambda: senders(spool)) or []  # it is forked, and gets its name a moment later
        os.kill(first, signal.SIGKILL)
        write_dataset(spool, [make_rendered(0)])
        until(lambda: not spool_sizes(spool), patience=30.0)
        assert not spool_sizes(spool) and first not in senders(spool)
        return 0

    assert run_into_store(parse_address(address), run) == 0
    assert "is restarted" in capsys.readouterr().err


@pytest.mark.slow
def test_stopped_run_publishes_what_it_sent(address: str):
    """The last snapshot was once up to a minute old, and the next run waited for the lock."""

    def run(spool: Path) -> int:
        write_dataset(spool, [make_rendered(0)])
        assert until(lambda: not spool_sizes(spool), patience=30.0)
        with pytest.raises(InputError, match=f"{address}: another run on this machine"):
            run_into_store(parse_address(address), run)  # that run took the lock from this run, which was then refused
        write_dataset(spool, [make_rendered(1)])
        assert until(lambda: not spool_sizes(spool), patience=30.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_into_store(parse_address(address), run)
    assert verify(open_dataset(address)).episode_count == 2
    assert b'"is_free":true' in ObjectStore(parse_address(address)).read("lock.json").replace(b" ", b"")


@pytest.mark.slow
def test_refusal_of_the_store_ends_the_run_with_its_line(address: str, capsys: pytest.CaptureFixture[str]):
    """A refusal once looked like Ctrl-C, and an early refusal ended the run without a message."""

    def run(spool: Path) -> int:
        write_dataset(spool, [make_rendered(0)])
        until(lambda: False, patience=30.0)
        return 0

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    name = f"episodes/{make_rendered(0).layout.key.id}.hdf5"
    ObjectStore(parse_address(address)).create(name, b"other")
    assert run_into_store(parse_address(address), run) == REFUSED
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert "an object of other content has this name" in capsys.readouterr().err
