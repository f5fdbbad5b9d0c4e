"""Description of a node: platform, and resources that are free."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.runner.cluster.messages import Capabilities
from nimbus.runner.isaac.find import find_instances
from nimbus.runner.system.gpus import list_gpus


def platform_name() -> str:
    """Return the properties that decide the last bits of results: operating system, architecture and Python."""
    return f"{sys.platform}-{platform.machine()}-py{sys.version_info.major}.{sys.version_info.minor}"


def read_capabilities() -> Capabilities:
    """Detect the simulators, planners and devices that a task may need."""
    gpus = list_gpus()
    simulators, engines = ["newton"], ["ompl"]
    if _has_isaacsim():
        simulators.append("isaacsim")
    if gpus:
        engines.append("curobo")
    return Capabilities(
        simulators=tuple(simulators),
        engines=tuple(engines),
        cuda=bool(gpus),
        rt=any(gpu.has_rt_cores for gpu in gpus),
        gpu_bytes=max((gpu.free_bytes for gpu in gpus), default=0),
        memory_bytes=available_memory(),
    )


def available_memory() -> int:
    """Memory that can be used without swapping [bytes]."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def free_disk(folder: Path) -> int:
    """Room on the disk of a folder [bytes]."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _has_isaacsim() -> bool:
    try:
        find_instances()
    except InputError:
        return False
    return True
