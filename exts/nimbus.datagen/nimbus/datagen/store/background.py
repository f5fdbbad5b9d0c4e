"""Execution of jobs in order, in a background thread or in the caller's thread."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for

Job = Callable[[], object]


class Background:
    """Single thread that runs jobs in order. An error of a job is raised once, by the next call.

    Args:
        length: Largest number of large jobs that wait or run; :meth:`put` blocks above it.
    """

    def __init__(self, *, length: int) -> None:
        self._length = length
        # There is one thread, because HDF5 has a global lock, and more threads would only wait for it.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._running: deque[tuple[Future[object], bool]] = deque()

    def put(self, job: Job, *, large: bool = False) -> float:
        """Queue a job; block while too many large ones are queued.

        Returns:
            Time waited [s].
        """
        # Only large jobs (chunks of images) are bounded: they hold memory, and the renderer must wait for the encoder.
        self._running.append((self._thread.submit(job), large))
        start = time.perf_counter()
        while sum(is_large for _, is_large in self._running) > self._length:
            self._finish_first()
        return time.perf_counter() - start

    def wait(self) -> float:
        """Wait for all jobs; return the time waited [s]."""
        start = time.perf_counter()
        while self._running:
            self._finish_first()
        return time.perf_counter() - start

    def is_busy(self) -> bool:
        """Return True while a job waits or runs."""
        while self._running and self._running[0][0].done():
            self._finish_first()
        return bool(self._running)

    def end_with(self, job: Job) -> None:
        """Run a last job while another error propagates, and wait; further errors are suppressed."""
        # wait_for() does not raise, so the original error is reported.
        wait_for([*(future for future, _ in self._running), self._thread.submit(job)])
        self._running.clear()

    def close(self) -> None:
        """Wait for all jobs and end the thread."""
        try:
            self.wait()
        finally:
            self._thread.shutdown()

    def _finish_first(self) -> None:
        self._running.popleft()[0].result()


class AtOnce:
    """Replacement of :class:`Background` without a thread: :meth:`put` runs the job and returns."""

    def put(self, job: Job, *, large: bool = False) -> float:
        """Run a job."""
        job()
        return 0.0

    def wait(self) -> float:
        """Return at once: no job waits."""
        return 0.0

    def is_busy(self) -> bool:
        """Return False: no job runs."""
        return False

    def end_with(self, job: Job) -> None:
        """Run a last job."""
        job()

    def close(self) -> None:
        """Do nothing: there is no thread."""
