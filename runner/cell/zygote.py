"""The zygote: loads a job once, in one thread, and forks workers that have everything already.

A worker is forked through a short-lived process in between, so that it becomes a child of the supervisor, which is the
subreaper: the supervisor alone reaps it and learns how it ended. Where a graphics device has a context in this process,
the fork is followed by an exec.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from nimbus.runner.cell.channel import Channel
from nimbus.runner.cell.spec import CellSpec

_ADOPTION = 10.0
"""[s] A worker waits this long at most to become the supervisor's child."""


def main(spec: CellSpec, channel: Channel, *, supervisor: int) -> None:
    """Load the job, then fork a worker whenever asked; returns when the supervisor hangs up."""
    from nimbus.datagen.errors import InputError
    from nimbus.runner.cell.job import load_job
    from nimbus.runner.cell.messages import Loaded, Spawn, Trouble, from_message, to_plain
    from nimbus.runner.cell.roles import cut
    from nimbus.runner.libraries import load_kernels

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        job = load_job(spec)
        load_kernels(spec.device)
    except InputError as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        channel.send(to_plain(Trouble(sort="input", line=f"{error}{notes}", code=error.exit_code)))
        return
    except Exception as error:
        text = traceback.format_exc()
        channel.send(to_plain(Trouble(sort="exception", line=f"{type(error).__name__}: {error}", traceback=text)))
        return
    gc.collect()
    gc.freeze()  # workers share these pages as long as nobody writes to them
    channel.send(to_plain(Loaded(origin=job.origin, has_planner=cut(job.pipeline) > 0, load_time=job.load_time)))
    while (received := channel.receive()) is not None:
        order = from_message(received[0])
        assert isinstance(order, Spawn)
        _spawn(job, spec, order, received[1], channel, supervisor=supervisor)


def _spawn(job, spec, order, descriptors, channel, *, supervisor) -> None:  # noqa: ANN001
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        for descriptor in descriptors:
            os.close(descriptor)
        return
    # From here on, nothing may return into the zygote's loop.
    try:
        own = os.getpid()
        worker = os.fork()
        if worker == 0:
            channel.close()
            _adopted(own, supervisor)
            _become_worker(job, spec, order, descriptors, supervisor=supervisor)
        from nimbus.runner.cell.messages import Spawned, to_plain

        channel.send(to_plain(Spawned(worker=order.worker, pid=worker)))
    finally:
        os._exit(0)


def _adopted(parent: int, supervisor: int) -> None:
    """Wait until the process in between is gone and the supervisor is the parent."""
    deadline = time.monotonic() + _ADOPTION
    while os.getppid() == parent and time.monotonic() < deadline:
        time.sleep(0.0005)
    if os.getppid() != supervisor:
        os._exit(1)


def _become_worker(job, spec, order, descriptors, *, supervisor) -> None:  # noqa: ANN001
    import socket

    from nimbus.runner.cell import worker
    from nimbus.runner.cell.processes import die_with_parent
    from nimbus.runner.cell.slab import Slab
    from nimbus.runner.cell.stamps import StampPage

    code = 1
    try:
        os.setsid()
        die_with_parent(supervisor)
        os.environ["NIMBUS_WORKER"] = str(order.worker)
        channel_end, slab, stamps, log = descriptors
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = worker.main(
            job,
            Path(spec.folder),
            channel=Channel(socket.socket(fileno=channel_end)),
            slab=Slab.attach(slab),
            stamp=StampPage.attach(stamps).writer(order.seat),
        )
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
