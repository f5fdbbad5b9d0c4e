"""Fork server: loads a job once, in one thread, and forks workers that share it.

A worker is forked through a short-lived intermediate process, so that it becomes a child of the supervisor, the
subreaper, which alone reaps it and learns its exit status. Where this process has threads or a graphics context, only
an exec makes the fork safe: the worker then loads the job itself.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from nimbus.runner.cell.transport.channel import Channel
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.system.processes import die_with_parent, ignore_stop_signals, thread_count

if TYPE_CHECKING:
    from nimbus.runner.cell.worker.job import Job

_ADOPTION = 10.0
"""Longest time until a worker becomes the supervisor's child [s]."""


class InstanceLauncher(Protocol):
    """Starts workers that are instances of another program, such as Isaac Sim."""

    def hand_over(self, job: Job, spec: CellSpec) -> str:
        """Describe a loaded job as JSON, for an instance that must not load it itself."""
        ...

    def start(self, spec: CellSpec, handover: str, *, number: int, row: int, descriptors: list[int]) -> NoReturn:
        """Execute an instance in place of this process."""
        ...


def main(spec: CellSpec, channel: Channel, *, supervisor: int, instances: InstanceLauncher) -> None:
    """Load the job, then fork workers on request; returns when the supervisor closes the channel."""
    from nimbus.datagen.pipeline import count_lanes, preload
    from nimbus.runner.cell.transport.messages import Loaded, Ready, Spawn, from_bytes, to_bytes
    from nimbus.runner.cell.worker import main_loop as main_loop  # so that workers have it already
    from nimbus.runner.cell.worker.errors import classify_error
    from nimbus.runner.cell.worker.job import load_job
    from nimbus.runner.system.threads import kernels_are_compiled, load_kernels

    ignore_stop_signals()
    if spec.gpus.uuids:  # this process opens one device only, and takes no memory of the others
        os.environ["CUDA_VISIBLE_DEVICES"] = spec.gpus.uuids[0]
    try:
        job = load_job(spec)
        begin = time.thread_time()
        if not _needs_exec(spec):
            preload(job.pipeline, job.context)
        loaded = Loaded(
            origin=job.origin,
            has_planner=job.head_count > 0,
            load_time=job.load_time + time.thread_time() - begin,
            lanes=count_lanes(job.pipeline, job.context),
            compiles=not kernels_are_compiled(spec.device, job.pipeline, has_cameras=job.has_cameras),
        )
        channel.send(to_bytes(loaded))
        load_kernels(spec.device, job.pipeline, has_cameras=job.has_cameras)
    except Exception as error:
        channel.send(to_bytes(classify_error(error)))
        return
    can_fork = _can_fork(spec)
    handover = ""
    if spec.instances.executable:
        handover = instances.hand_over(job, spec)
    gc.collect()
    gc.freeze()  # the collector would write into these pages, which workers share copy-on-write
    channel.send(to_bytes(Ready()))
    while (received := channel.receive()) is not None:
        order = from_bytes(received[0])
        assert isinstance(order, Spawn)
        start = partial(instances.start, spec, handover)
        _spawn(job if can_fork else None, spec, order, received[1], channel, supervisor=supervisor, start=start)


def _spawn(job, spec, order, descriptors, channel, *, supervisor, start) -> None:  # noqa: ANN001
    # Two forks: the intermediate process exits at once, and the kernel then hands the worker to the subreaper.
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        for descriptor in descriptors:
            os.close(descriptor)
        return
    # From here on, nothing may return into the fork server's loop: the child would serve as a second fork server.
    try:
        own = os.getpid()
        worker = os.fork()
        if worker == 0:
            channel.close()
            _adopted(own, supervisor)
            _become_worker(job, spec, order, descriptors, supervisor=supervisor, start=start)
        from nimbus.runner.cell.transport.messages import Spawned, to_bytes

        channel.send(to_bytes(Spawned(worker=order.worker, pid=worker)))
    finally:
        os._exit(0)


def _adopted(parent: int, supervisor: int) -> None:
    """Wait until the intermediate process has exited and the supervisor is the parent."""
    deadline = time.monotonic() + _ADOPTION
    while os.getppid() == parent and time.monotonic() < deadline:
        time.sleep(0.0005)
    if os.getppid() != supervisor:
        os._exit(1)


def _become_worker(job, spec, order, descriptors, *, supervisor, start) -> None:  # noqa: ANN001
    from nimbus.runner.cell.worker import main_loop

    code = 1
    try:
        # A new session, so that the worker and all processes that it starts can be killed as a group.
        os.setsid()
        die_with_parent(supervisor)
        os.environ["NIMBUS_WORKER"] = str(order.worker)
        if order.gpu:  # renderer, physics and motion planner of this worker see this device alone, as cuda:0
            os.environ["CUDA_VISIBLE_DEVICES"] = order.gpu
        *shared, log = descriptors
        os.dup2(log, 1)
        os.dup2(log, 2)
        if order.instance >= 0:
            start(number=order.instance, row=order.row, descriptors=shared)
        if job is None:
            _execute(spec, order.row, shared)
        code = main_loop.main(lambda: job, Path(spec.folder), row=order.row, descriptors=shared)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):  # the log may be on a full disk
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _needs_exec(spec: CellSpec) -> bool:
    """Return True when each worker has to load the job itself."""
    return spec.device != "cpu" or bool(spec.gpus.uuids) or spec.resources.exec_workers


def _can_fork(spec: CellSpec) -> bool:
    """Return True when this process can be forked safely."""
    return not _needs_exec(spec) and thread_count() == 1


def _execute(spec: CellSpec, row: int, descriptors: list[int]) -> NoReturn:
    """Replace this process by a worker that loads the job itself."""
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    words = [spec.to_text(), str(row), *map(str, descriptors)]
    os.execv(sys.executable, [sys.executable, "-P", "-m", "nimbus.runner.cell.worker.main_loop", *words])
