"""Detection of the platform and the free resources of a node."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import msgspec

from nimbus.datagen.errors import InputError
from nimbus.runner.cluster.messages import Capabilities
from nimbus.runner.isaac.find import find_instances
from nimbus.runner.system.gpus import list_gpus


def platform_name() -> str:
    """Return operating system, architecture and Python version, on which the last bits of results depend."""
    return f"{sys.platform}-{platform.machine()}-py{sys.version_info.major}.{sys.version_info.minor}"


OFFER = "NIMBUS_NODE_OFFER"
"""Environment variable that limits the resources a node offers: fields of :class:`Capabilities` as JSON. Resources that
it does not mention are offered as detected."""


def read_capabilities() -> Capabilities:
    """Detect the simulators, planners and devices that this node offers.

    Raises:
        InputError: The variable :data:`OFFER` is not valid.
    """
    found = _detect()
    if not (text := os.environ.get(OFFER)):
        return found
    try:
        offer = msgspec.json.decode(text, type=_Offer, strict=True)
    except (msgspec.MsgspecError, UnicodeError) as error:
        instead = """write JSON such as '{"memory_bytes": 8000000000, "cuda": false}'"""
        raise InputError(f"is not a valid offer of a node: {error}", where=OFFER, instead=instead) from None
    return Capabilities(
        simulators=_common(found.simulators, offer.simulators),
        engines=_common(found.engines, offer.engines),
        cuda=found.cuda and offer.cuda,
        rt=found.rt and offer.rt,
        gpu_bytes=_least(found.gpu_bytes, offer.gpu_bytes),
        memory_bytes=_least(found.memory_bytes, offer.memory_bytes),
    )


class _Offer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    simulators: tuple[str, ...] | None = None
    engines: tuple[str, ...] | None = None
    cuda: bool = True
    rt: bool = True
    gpu_bytes: int | None = None
    memory_bytes: int | None = None


def _common(found: tuple[str, ...], offered: tuple[str, ...] | None) -> tuple[str, ...]:
    return found if offered is None else tuple(name for name in found if name in offered)


def _least(found: int, offered: int | None) -> int:
    return found if offered is None else min(found, offered)


def _detect() -> Capabilities:
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
    """Return the memory available without swapping [bytes]."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def free_disk(folder: Path) -> int:
    """Return the free space on the disk of a folder [bytes]."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _has_isaacsim() -> bool:
    try:
        find_instances()
    except InputError:
        return False
    return True
