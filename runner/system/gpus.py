"""NVIDIA GPUs of this machine, as the driver lists them, and those that ``--gpus`` selects."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nimbus.datagen.errors import InputError, suggest

_FIELDS = "index,uuid,name,compute_cap,memory.free,driver_version"
_QUERY_PATIENCE = 30.0
"""Time limit for the driver's answer [s]."""
_WITHOUT_RT = {(8, 0), (9, 0), (10, 0), (10, 3), (11, 0)}
"""Compute capabilities of 7.5 or more whose GPUs have no RT cores: A100, H100, B200, B300 and similar."""
_MIN_DRIVER = 580
"""Oldest driver branch for CUDA 13, with which Warp is built."""
WORKER_BYTES = 2 << 30
"""Free memory that one worker needs [bytes]: a CUDA context, the scene's meshes and textures, and a batch of images."""
_ROW = re.compile(r"(\d+), (GPU-[-0-9a-f]+), (.+), (\d+)\.(\d+), (\d+)(?:, ([\d.]+))?")
_GPU_LINE = re.compile(r"GPU (\d+): .*\(UUID: (GPU-[-0-9a-f]+)\)")
_SLICE_LINE = re.compile(r"\s+MIG \S*?(\d+)gb\S*\s+Device\s+(\d+): \(UUID: (MIG-[-0-9a-f]+)\)")


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU, or one MIG slice of a GPU."""

    number: int
    """Position in PCI bus order; for a slice, the position of its GPU."""
    uuid: str
    name: str
    capability: tuple[int, int]
    free_bytes: int
    driver: str = ""
    """Version of the driver; empty if the driver did not report it."""
    slices: int = 0
    """Number of MIG slices of a GPU; if there are any, work only runs on the slices."""

    @property
    def has_rt_cores(self) -> bool:
        """True for a GPU with RT cores."""
        if self.capability < (7, 5) or self.capability in _WITHOUT_RT:
            return False
        return re.search(r"\bGTX 16|\bMX ?\d|\bT\d{3}\b|\bT1000\b|\bT1200\b", self.name) is None

    @property
    def worker_count(self) -> int:
        """Largest number of workers whose memory fits."""
        return self.free_bytes // WORKER_BYTES


def list_gpus() -> list[Gpu]:
    """List GPUs and MIG slices; empty without a driver."""
    table = _ask_driver(f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits")
    return parse_gpus(table, _ask_driver("-L") if table else "")


def parse_gpus(table: str, listing: str = "") -> list[Gpu]:
    """Parse the driver's table of GPUs and its listing of MIG slices; other lines are ignored.

    Args:
        table: Output of ``nvidia-smi --query-gpu``.
        listing: Output of ``nvidia-smi -L``.
    """
    slices = _parse_slices(listing)
    gpus = []
    for line in table.splitlines():
        if not (match := _ROW.fullmatch(line.strip())):
            continue
        number, uuid, name, major, minor, free, driver = match.groups()
        own = slices.get(int(number), [])
        gpu = Gpu(
            number=int(number),
            uuid=uuid,
            name=name,
            capability=(int(major), int(minor)),
            free_bytes=int(free) << 20,
            driver=driver or "",
            slices=len(own),
        )
        gpus.append(gpu)
        gpus += [_make_slice(gpu, slice_uuid, size) for slice_uuid, size in own]
    return gpus


def select_gpus(
    text: str, gpus: Sequence[Gpu], *, where: str = "--gpus", otherwise: str = "--device cpu"
) -> tuple[Gpu, ...]:
    """Select GPUs by ``all``, or by numbers and UUIDs separated by commas.

    Args:
        text: Value of the flag.
        gpus: GPUs and slices of this machine.
        where: The flag, for errors.
        otherwise: Flag of a run that needs none of these GPUs, for errors.

    Raises:
        InputError: A GPU is unknown, named twice, split into MIG slices or too full, or the driver is too old.
    """
    if not gpus:
        raise InputError("no NVIDIA GPU was found", where=where, instead=f"check 'nvidia-smi', or use {otherwise}")
    usable = [gpu for gpu in gpus if not gpu.slices]
    chosen = usable if text.strip() == "all" else [_find(word.strip(), gpus, where) for word in text.split(",")]
    for uuid, count in Counter(gpu.uuid for gpu in chosen).items():
        if count > 1:
            raise InputError(f"GPU {uuid} is named {count} times", where=where, instead="name each GPU once")
    for gpu in chosen:
        if gpu.driver and int(gpu.driver.split(".")[0]) < _MIN_DRIVER:
            what = f"driver {gpu.driver} is too old for CUDA 13"
            instead = f"install driver {_MIN_DRIVER} or newer, or use {otherwise}"
            raise InputError(what, where=where, instead=instead)
    if fit := tuple(gpu for gpu in chosen if gpu.worker_count):
        if len(fit) == len(chosen) or text.strip() == "all":
            return fit
    full = next(gpu for gpu in chosen if not gpu.worker_count)
    what = f"GPU {full.number} has {full.free_bytes / 1e9:.1f} GB free, but a worker needs {WORKER_BYTES / 1e9:.1f} GB"
    raise InputError(what, where=where, instead="stop the programs on it, or name another GPU")


def _find(word: str, gpus: Sequence[Gpu], where: str) -> Gpu:
    found = [gpu for gpu in gpus if word in (gpu.uuid, *([] if _is_slice(gpu) else [str(gpu.number)]))]
    if not found:
        known = [name for gpu in gpus if not gpu.slices for name in ([] if _is_slice(gpu) else [str(gpu.number)])]
        uuids = [gpu.uuid for gpu in gpus if not gpu.slices]
        raise InputError(f"unknown GPU '{word}'", where=where, instead=suggest(word, ["all", *known, *uuids]))
    if found[0].slices:
        slices = [gpu.uuid for gpu in gpus if _is_slice(gpu) and gpu.number == found[0].number]
        what = f"GPU {found[0].number} is split into MIG slices"
        raise InputError(what, where=where, instead=f"name slices: {','.join(slices)}")
    return found[0]


def _is_slice(gpu: Gpu) -> bool:
    return gpu.uuid.startswith("MIG-")


def _make_slice(gpu: Gpu, uuid: str, size: int) -> Gpu:
    name = f"{gpu.name} MIG {size} GB"  # the driver does not report a slice's free memory, so it is assumed empty
    return Gpu(
        number=gpu.number, uuid=uuid, name=name, capability=gpu.capability, free_bytes=size << 30, driver=gpu.driver
    )


def _parse_slices(listing: str) -> dict[int, list[tuple[str, int]]]:
    """Map the numbers of GPUs to the UUIDs and sizes [GiB] of their slices."""
    slices: dict[int, list[tuple[str, int]]] = {}
    number = -1
    for line in listing.splitlines():
        if match := _GPU_LINE.match(line):
            number = int(match[1])
        elif match := _SLICE_LINE.match(line):
            slices.setdefault(number, []).append((match[3], int(match[1])))
    return slices


def _ask_driver(*words: str) -> str:
    try:
        done = subprocess.run(
            ["nvidia-smi", *words], cwd="/", capture_output=True, text=True, timeout=_QUERY_PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
