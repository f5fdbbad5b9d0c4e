"""Cores, memory and GPU that this process may use; cores and memory by affinity and control groups (version 1 or 2)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INSTANCE_GPU = "NIMBUS_GPU"
"""Environment variable of an instance of Isaac Sim with the UUID of its GPU."""
_MOUNT = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return the number of cores that this process may use, by its affinity and by its control group's CPU quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return min(cores, max(1, round(min(cpu_quota(), cores))))


def total_memory() -> int:
    """Return the memory of this machine, or of this process's control group [bytes]."""
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE"), *memory_limits()])


def available_memory() -> int:
    """Return the free memory of this machine, or of this process's control group [bytes]."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
        free = sizes["MemAvailable"]
    except (OSError, KeyError, ValueError, IndexError):  # some sandboxes lack the file, and old kernels lack the line
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    return min([free, *memory_headrooms()])


def group_files(controller: str, name: str) -> Iterator[Path]:
    """Yield the files with a name in the control group of this process, and in all groups above it.

    Args:
        controller: ``cpu`` or ``memory``.
        name: File of the controller, such as ``cpu.max``.
    """
    # The tightest limit of any group applies, so the callers take the minimum over all files.
    for root, group in _groups(controller):
        for folder in (root / group, *(root / group).parents):
            if (folder / name).is_file():
                yield folder / name
            if folder == root:
                break


def cpu_quota() -> float:
    """Return the number of cores that the control groups allow; infinite without a limit."""
    quotas = [float("inf")]
    for file in group_files("cpu", "cpu.max"):
        quotas.append(_share(*file.read_text().split()))
    for file in group_files("cpu", "cpu.cfs_quota_us"):
        quotas.append(_share(file.read_text(), file.with_name("cpu.cfs_period_us").read_text()))
    return min(quotas)


def memory_limits() -> list[int]:
    """Return the memory limits of the control groups [bytes]; empty without limits."""
    return [limit for limit, _ in _memory()]


def memory_headrooms() -> list[int]:
    """Return the memory remaining below the limits of the control groups [bytes]; empty without limits."""
    return [limit - used for limit, used in _memory()]


def _memory() -> Iterator[tuple[int, int]]:
    for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        for file in group_files("memory", limit):
            try:
                yield int(file.read_text()), int(file.with_name(used).read_text()) - _given_back(file)
            except (OSError, ValueError):  # "max": no limit
                continue


def _given_back(file: Path) -> int:
    """Return the size of cached file contents [bytes]; they count as used, but the kernel drops them when needed."""
    counts = dict(line.split() for line in file.with_name("memory.stat").read_text().splitlines())
    return int(counts.get("total_inactive_file") or counts.get("inactive_file") or 0)


def _share(quota: str, period: str) -> float:
    unlimited = quota.strip() in ("max", "-1")
    return float("inf") if unlimited else int(quota) / int(period)


def _groups(controller: str) -> Iterator[tuple[Path, str]]:
    """Yield the mount of each hierarchy and the group's path in it; a container sees its own group as the root."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for number, controllers, path in (line.split(":", 2) for line in lines):
        group = path.lstrip("/")
        if number == "0":
            yield _MOUNT, group
            yield _MOUNT / "unified", group
        elif controller in controllers.split(","):
            yield _MOUNT / controller, group


@contextmanager
def silent_stderr() -> Iterator[None]:
    """Discard output of native code to standard error."""
    sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


def resident_bytes() -> int:
    """Return the resident memory of this process [bytes]; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return 0
