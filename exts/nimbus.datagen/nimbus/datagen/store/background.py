"""Jobs that run in order, in a thread behind the one that renders, or at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for

Job = Callable[[], object]


class Background:
    """One thread for jobs, in order. What a job raises is raised once, by the next call here.

    Args:
        length: Large jobs that may wait or run; :meth:`put` waits while there are more.
    """

    def __init__(self, *, length: int) -> None:
        self._length = length
        # One thread: HDF5 has a lock of its own, more threads would only wait for it.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._running: deque[tuple[Future[object], bool]] = deque()

    def put(self, job: Job, *, large: bool = False) -> float:
        """Queue a job, and wait until few large ones are queued.

        Returns:
            [s] How long it waited.
        """
        self._running.append((self._thread.submit(job), large))
        start = time.perf_counter()
        while sum(is_large for _, is_large in self._running) > self._length:
            self._finish_first()
        return time.perf_counter() - start

    def wait(self) -> float:
        """Wait for all jobs; returns how long [s]."""
        start = time.perf_counter()
        while self._running:
            self._finish_first()
        return time.perf_counter() - start

    def is_busy(self) -> bool:
        """Whether a job waits or runs."""
        while self._running and self._running[0][0].done():
            self._finish_first()
        return bool(self._running)

    def end_with(self, job: Job) -> None:
        """Run a last job after an error that is on its way up, and wait; no further error is told."""
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
    """The same without a thread: a job has run when :meth:`put` returns."""

    def put(self, job: Job, *, large: bool = False) -> float:
        """Run a job."""
        job()
        return 0.0

    def wait(self) -> float:
        """Nothing waits."""
        return 0.0

    def is_busy(self) -> bool:
        """Nothing runs."""
        return False

    def end_with(self, job: Job) -> None:
        """Run a last job."""
        job()

    def close(self) -> None:
        """Nothing to end."""
