"""Assignment of workers to GPUs, and exclusion of GPUs that fail. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_DEVICE_ERROR = re.compile(
    # Wordings of the CUDA driver and runtime, of Warp, of PyTorch and of the kernel's log (Xid).
    r"CUDA[ _]?(?:driver |runtime )?error|CUDA-capable device|CUDA out of memory|CUDA_ERROR_\w+|cudaError\w*"
    r"|\bXid\b|uncorrectable ECC|GPU (?:is )?lost|fallen off the bus|CUBLAS_STATUS|device-side assert",
    re.IGNORECASE,
)
_FAILURES = 2
"""Number of consecutive workers that end with an error of a GPU before it is excluded; one may be an accident."""


def is_device_error(text: str) -> bool:
    """Return True when a message or log names an error of a CUDA device."""
    return _DEVICE_ERROR.search(text) is not None


class GpuAllocation:
    """Spreads workers over GPUs in proportion to the number that each can hold, and leaves out GPUs that failed.

    Args:
        uuids: GPUs of the run.
        worker_counts: Largest number of workers of each GPU, by free memory.
    """

    def __init__(self, uuids: Sequence[str], worker_counts: Sequence[int]) -> None:
        self._capacity = dict(zip(uuids, worker_counts, strict=True))
        self._failures: Counter[str] = Counter()
        self.lost: list[str] = []
        """GPUs that get no more workers."""

    def __bool__(self) -> bool:
        return bool(self._capacity)

    @property
    def worker_count(self) -> int:
        """Largest number of workers on the remaining GPUs."""
        return sum(count for uuid, count in self._capacity.items() if uuid not in self.lost)

    def choose(self, occupied: Iterable[str]) -> str:
        """Choose the GPU for a new worker: the one with the smallest fraction of its workers; empty where all are full.

        Args:
            occupied: GPU of each worker at present.
        """
        load = Counter(occupied)
        free = [uuid for uuid, count in self._capacity.items() if uuid not in self.lost and load[uuid] < count]
        return min(free, key=lambda uuid: (load[uuid] / self._capacity[uuid], load[uuid]), default="")

    def record_result(self, uuid: str) -> None:
        """Record that a worker on a GPU gave a result."""
        self._failures.pop(uuid, None)

    def record_failure(self, uuid: str) -> bool:
        """Record that a worker ended with an error of its GPU; return True when the GPU is now left out."""
        self._failures[uuid] += 1
        if self._failures[uuid] < _FAILURES or uuid in self.lost:
            return False
        self.lost.append(uuid)
        return True
