"""Start of Isaac Sim: its arguments, environment and root folder; the instance replaces the current process."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import nimbus
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.search_paths import clean_search_paths
from nimbus.datagen.machine import INSTANCE_GPU, usable_cores
from nimbus.runner.cell.transport.spec import CellSpec, Instances
from nimbus.runner.isaac.shared_memory import remove_shared_memory

if TYPE_CHECKING:
    from nimbus.runner.cell.worker.job import Job

ROOT_WORD = "--portable-root"
"""Option before the folder for Kit's settings, caches and logs; Kit only accepts it as a separate argument."""
_REMOVED = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "PYTHONSTARTUP", "CUDA_VISIBLE_DEVICES")
"""Environment variables that an instance does not inherit; it selects its GPU by the number among all GPUs."""
FREE = "NIMBUS_GPU_FREE_BYTES"
"""Environment variable with the GPU memory [bytes] that an instance may use."""


@dataclass(frozen=True, kw_only=True)
class InstancePaths:
    """Paths and GPU of one instance."""

    gpu: str
    """UUID of the GPU."""
    gpu_number: int
    free_bytes: int
    """This instance's share of the GPU's free memory [bytes]."""
    root: Path

    @property
    def package(self) -> Path:
        """Return a folder that contains only Nimbus; the folder of an installed package contains other packages too."""
        return self.root / "python"


class IsaacInstances:
    """Launcher of instances of Isaac Sim, which the fork server starts as workers."""

    def hand_over(self, job: Job, spec: CellSpec) -> str:
        """Describe a loaded job as JSON; empty if the instances load it themselves."""
        from nimbus.runner.isaac.job import hand_over

        return hand_over(job, spec)

    def start(self, spec: CellSpec, handover: str, *, number: int, row: int, descriptors: list[int]) -> NoReturn:
        """Replace this process by an instance; see :func:`exec_instance`."""
        exec_instance(spec, handover, number=number, row=row, descriptors=descriptors)


def instance_paths(instances: Instances, number: int) -> InstancePaths:
    """Return the GPU and the root folder of an instance; instances are assigned to the GPUs in turn.

    Args:
        instances: Installation and GPUs that were found.
        number: Number of the instance, from 0; it is unique among the instances that run at the same time.
    """
    count = len(instances.gpus)
    turn, before = number % count, number // count
    return InstancePaths(
        gpu=instances.gpus[turn],
        gpu_number=instances.gpu_numbers[turn],
        free_bytes=instances.gpu_free_bytes[turn] >> before,
        root=Path(instances.folder, f"instance-{number}"),
    )


def environment(instances: Instances, place: InstancePaths, host: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an instance: that of its start script, plus Nimbus's own package."""
    kept = {name: value for name, value in host.items() if name not in _REMOVED}
    clean = clean_search_paths(kept | instances.environment)
    return {
        **clean,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(place.package), clean.get("PYTHONPATH", "")))),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # so that CUDA, Vulkan and the driver number the GPUs alike
        INSTANCE_GPU: place.gpu,
        FREE: str(place.free_bytes),
        "WARP_CACHE_PATH": str(place.root / "warp"),
        "__GL_SHADER_DISK_CACHE_PATH": str(place.root / "gl"),
    }


def link_package(place: InstancePaths) -> None:
    """Link Nimbus into the folder that contains no other package."""
    place.package.mkdir(parents=True, exist_ok=True)
    link, fresh = place.package / "nimbus", place.package / "nimbus.part"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(Path(str(nimbus.__file__)).absolute().parent)
    fresh.replace(link)


def instance_threads(spec: CellSpec) -> int:
    """Return the number of threads of one instance, its share of the cores; by default Kit would use all cores."""
    planners, renderers = spec.resources.workers or (len(spec.instances.gpus),) * 2
    count = renderers + (planners if spec.physics == "isaacsim" else 0)
    return max(1, usable_cores() // max(1, count))


def build_argv(
    spec: CellSpec, handover: str, place: InstancePaths, *, row: int, descriptors: Sequence[int]
) -> list[str]:
    """Return the command line of an instance, which runs a worker of a cell."""
    numbers = [row, place.gpu_number, instance_threads(spec), *descriptors]
    own = [spec.to_text(), handover, json.dumps(numbers)]
    return [spec.instances.executable, "-P", "-m", "nimbus.runner.isaac.worker", *own, ROOT_WORD, str(place.root)]


def exec_instance(spec: CellSpec, handover: str, *, number: int, row: int, descriptors: Sequence[int]) -> NoReturn:
    """Replace this process by an instance.

    Args:
        spec: Specification of the run.
        handover: Description of the job, from :func:`nimbus.runner.isaac.job.hand_over`.
        number: Number of the instance.
        row: Row in the heartbeat page.
        descriptors: File descriptors of the channel, the shared slots and the heartbeat page.

    Raises:
        InputError: The instance cannot be started.
    """
    place = instance_paths(spec.instances, number)
    place.root.mkdir(parents=True, exist_ok=True)
    link_package(place)
    remove_shared_memory(place.root)  # left by a dead instance with the same root
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # a license prompt then ends at once instead of waiting for input
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # a request for stacks must not kill it before it has a handler
    command = build_argv(spec.absolute(), handover, place, row=row, descriptors=descriptors)
    os.chdir(place.root)  # Kit's libraries open files of the current folder, which may be a dataset of others
    try:
        os.execve(command[0], command, environment(spec.instances, place, os.environ))
    except OSError as error:
        raise InputError(
            f"{command[0]} cannot be started: {error.strerror}",
            where="--sim isaacsim",
            instead="reinstall Isaac Sim, or use --sim newton",
        ) from error
