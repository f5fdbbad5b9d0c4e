"""GPUs of this machine that a run uses, according to its flags and the environment."""

from __future__ import annotations

import os

from nimbus.datagen.errors import InputError
from nimbus.datagen.plan.curobo.process import check_curobo
from nimbus.runner.cell.transport.spec import CudaDevices, Instances
from nimbus.runner.isaac.find import find_instances
from nimbus.runner.system.gpus import list_gpus, select_gpus

_HIDDEN = ("", "-1", "NoDevFiles")
"""Values of ``CUDA_VISIBLE_DEVICES`` with which CUDA finds no device."""


def select_devices(gpus: str | None, *, device: str, simulator: str, planner: str = "ompl") -> CudaDevices:
    """Return the GPUs that workers are spread over: those of ``--gpus``, of ``CUDA_VISIBLE_DEVICES``, or all.

    A run that only plans on GPUs is spread over those of ``--gpus``; without the flag, it uses the first one.

    Args:
        gpus: Text of ``--gpus``; None where it was not given.
        device: ``cpu`` or ``cuda``.
        simulator: Name of the simulator.
        planner: Name of the motion planner.

    Raises:
        InputError: A named GPU does not exist, every GPU is hidden, or no part of the run uses a GPU.
    """
    if device == "cpu" and (simulator == "isaacsim" or gpus is None):
        return CudaDevices()
    if device == "cpu" and planner != "curobo":
        what, instead = "no part of this run uses a GPU", "add --device cuda, or leave it out"
        raise InputError(what, where="--gpus", instead=instead)
    visible, known = os.environ.get("CUDA_VISIBLE_DEVICES"), list_gpus()
    if gpus is None and visible is not None and visible.strip() in _HIDDEN:
        # The run sets this variable for each worker: without this check, the run would use a GPU that the user has
        # hidden.
        what, instead = "CUDA_VISIBLE_DEVICES hides every GPU", "unset it, name GPUs by --gpus, or use --device cpu"
        raise InputError(what, where="--device cuda", instead=instead)
    if gpus is None and not known:
        return CudaDevices()  # no driver tool: workers use the device that Warp finds
    where = "--gpus" if gpus is not None or visible is None else "CUDA_VISIBLE_DEVICES"
    text = gpus if gpus is not None else "all" if visible is None else visible
    chosen = select_gpus(text, known, where=where)
    return CudaDevices(uuids=tuple(gpu.uuid for gpu in chosen), worker_counts=tuple(gpu.worker_count for gpu in chosen))


def select_instances(gpus: str | None, *, simulator: str, planner: str = "ompl", is_single: bool = False) -> Instances:
    """Return the start options of the run's Isaac Sim instances; empty options where it uses another simulator.

    Args:
        gpus: Text of ``--gpus``; None where it was not given.
        simulator: Name of the simulator.
        planner: Name of the motion planner.
        is_single: True when the whole run uses one process.

    Raises:
        InputError: This machine lacks the planner, Isaac Sim or a named GPU, or the run uses one process.
    """
    if planner == "curobo":
        check_curobo()
    if simulator != "isaacsim":
        return Instances()
    if is_single:
        what, instead = "Isaac Sim renders in separate processes", "leave --serial and --coupled out"
        raise InputError(what, where="--sim isaacsim", instead=instead)
    return find_instances(gpus=None if gpus is None else select_gpus(gpus, list_gpus(), otherwise="--sim newton"))
