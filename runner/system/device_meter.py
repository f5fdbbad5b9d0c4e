"""Time during which GPUs and a disk are busy, as the driver and the kernel measure it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DISK = "disk"
_DISK_STATISTICS = Path("/proc/diskstats")
_PERIOD = 1
"""Interval between two reports of the driver [s]."""
_QUERY = "--query-gpu=uuid,utilization.gpu"
_READ_COLUMN, _WRITTEN_COLUMN, _BUSY_COLUMN = 5, 9, 12
"""Columns of ``/proc/diskstats``: sectors read and written, and milliseconds in which a request was in progress."""
_SECTOR = 512
"""Unit of the kernel's counters [bytes], for disks of any sector size."""
_CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True)
class DiskCounters:
    """Counters of a block device since the start of the machine."""

    busy_seconds: float
    byte_count: int
    """Bytes read and written."""


class DeviceMeter:
    """Measures the busy time of GPUs and of the disk of a folder, from its creation on.

    A GPU is busy while a kernel of any program runs on it. A disk is busy while it has a request in progress; the run's
    share of this time is its share of the bytes. The driver reports no utilization of MIG slices, and a folder in
    memory or on the network has no disk: these are left out.

    Args:
        gpus: UUIDs of the GPUs.
        folder: Folder whose disk is measured.
    """

    def __init__(self, gpus: Sequence[str], folder: Path) -> None:
        self._gpus = tuple(uuid for uuid in gpus if uuid.startswith("GPU-"))
        self._times: dict[str, float] = {}
        self._rest = ""
        self._device = _device_of(folder)
        self._disk_start = _read_disk(self._device)
        self._driver = _start_driver(self._gpus) if self._gpus else None

    @property
    def pid(self) -> int:
        """Process id of the driver's program; 0 for none."""
        return self._driver.pid if self._driver else 0

    def read(self, *, own_bytes: int) -> dict[str, float]:
        """Return the busy time of each GPU, by UUID, and of the disk so far [s].

        Args:
            own_bytes: Bytes that the run has written so far.
        """
        self._read_driver()
        now, start = _read_disk(self._device), self._disk_start
        return self._times | ({} if now is None or start is None else {DISK: own_share(start, now, own_bytes)})

    def close(self) -> None:
        """End the driver's program. :meth:`read` keeps its last values."""
        if (driver := self._driver) is None:
            return
        self._read_driver()
        self._driver = None
        driver.kill()
        driver.wait()
        if driver.stdout:
            driver.stdout.close()

    def _read_driver(self) -> None:
        if self._driver is None or self._driver.stdout is None:
            return
        while chunk := _read_now(self._driver.stdout.fileno()):
            self._rest += chunk.decode(errors="replace")
        *lines, self._rest = self._rest.split("\n")
        for line in lines:
            uuid, _, share = line.partition(", ")
            if uuid in self._gpus and share.strip().isdigit():
                self._times[uuid] = self._times.get(uuid, 0.0) + _PERIOD * min(int(share), 100) / 100


def own_share(start: DiskCounters, now: DiskCounters, own_bytes: int) -> float:
    """Return the share of a disk's busy time that belongs to some of its bytes [s].

    Args:
        start: Counters at the start.
        now: Counters at the end.
        own_bytes: Bytes that were written in between.
    """
    busy, moved = now.busy_seconds - start.busy_seconds, now.byte_count - start.byte_count
    return max(0.0, busy) * min(1.0, own_bytes / moved) if moved > 0 else 0.0


def parse_disk_statistics(text: str, device: tuple[int, int]) -> DiskCounters | None:
    """Return the counters of a block device from the content of ``/proc/diskstats``; None if it is not listed.

    Args:
        text: Content of the file.
        device: Major and minor number.
    """
    for line in text.splitlines():
        words = line.split()
        if len(words) > _BUSY_COLUMN and words[:2] == [str(number) for number in device]:
            moved = (int(words[_READ_COLUMN]) + int(words[_WRITTEN_COLUMN])) * _SECTOR
            return DiskCounters(busy_seconds=int(words[_BUSY_COLUMN]) / 1000, byte_count=moved)
    return None


def _device_of(folder: Path) -> tuple[int, int]:
    try:
        number = os.stat(folder).st_dev
    except OSError:
        return (0, 0)
    return (os.major(number), os.minor(number))


def _read_disk(device: tuple[int, int]) -> DiskCounters | None:
    try:
        return parse_disk_statistics(_DISK_STATISTICS.read_text(), device)
    except (OSError, ValueError):
        return None


def _start_driver(gpus: Sequence[str]) -> subprocess.Popen[bytes] | None:
    words = [_QUERY, "--format=csv,noheader,nounits", f"--id={','.join(gpus)}", f"--loop={_PERIOD}"]
    try:
        # Without a reader it ends at its next line, so that nothing is left behind by a run that was killed.
        driver = subprocess.Popen(
            ["nvidia-smi", *words],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    if driver.stdout:
        os.set_blocking(driver.stdout.fileno(), False)
    return driver


def _read_now(descriptor: int) -> bytes:
    with suppress(BlockingIOError):
        return os.read(descriptor, _CHUNK)
    return b""
