"""Choice of the engine that executes plans in a run with Isaac Sim: PhysX inside the instances, or MuJoCo outside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.version import nimbus_version

if TYPE_CHECKING:
    from nimbus.runner.cell.transport.spec import Instances

ENGINES = ("mujoco", "isaacsim")
"""Values of ``--physics``."""
_SIMULATORS = {"mujoco": "newton", "isaacsim": "isaacsim"}
"""Registered simulator of each engine."""
_NAMES = {"newton": "MuJoCo", "isaacsim": "PhysX"}
"""Name of each registered simulator's engine."""
_WHERE = "--physics isaacsim"
_INSTEAD = "use --physics mujoco"


@dataclass(frozen=True, kw_only=True)
class VerifiedInstallation:
    """Installation, GPUs and version of Nimbus with which ``nimbus verify-isaacsim`` has passed."""

    executable: str
    gpus: tuple[str, ...]
    """UUIDs of the GPUs."""
    nimbus: str


def record_verification(instances: Instances) -> None:
    """Record that all checks have passed with an installation on this machine."""
    text = json.dumps(asdict(_verification(instances)), indent=2) + "\n"
    write_atomic(_file(instances), text, durable=False, shared=False)


def is_verified(instances: Instances) -> bool:
    """Return True if the checks have passed with this installation, this Nimbus version and one of the GPUs."""
    try:
        said = json.loads(_file(instances).read_text(encoding="utf-8"))
        known = VerifiedInstallation(executable=said["executable"], gpus=tuple(said["gpus"]), nimbus=said["nimbus"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    now = _verification(instances)
    same = (known.executable, known.nimbus) == (now.executable, now.nimbus)
    return same and not set(known.gpus).isdisjoint(now.gpus)


def choose_physics(
    engine: str | None,
    *,
    simulator: str,
    instances: Instances,
    task: str,
    robot: str = "",
    skills: Sequence[Path] = (),
    folder: Path | None = None,
) -> tuple[str, str]:
    """Return the registered simulator that executes plans, and a line for the user, which may be empty.

    Args:
        engine: Value of ``--physics``; None if it was not given.
        simulator: Value of ``--sim``.
        instances: Installation of Isaac Sim.
        task: Name or path of the task file.
        robot: Name or path of a robot in place of the task's own.
        skills: Folders with custom skills.
        folder: Folder of the run; an existing dataset keeps its engine.

    Raises:
        InputError: PhysX is requested without Isaac Sim.
    """
    if simulator != "isaacsim":
        if engine == "isaacsim":
            raise InputError("PhysX runs inside Isaac Sim", where=_WHERE, instead=f"add --sim isaacsim, or {_INSTEAD}")
        return "newton", ""
    if engine is not None:
        return _SIMULATORS[engine], ""
    if (begun := _begun_with(folder)) is not None:
        return begun, f"{_NAMES[begun]} executes and Isaac Sim renders, as in the existing episodes"
    if not instances.executable:  # each node of a cluster searches for itself
        return "newton", ""
    if not is_verified(instances):
        why = "'nimbus verify-isaacsim' has not passed on this machine"
    else:
        from nimbus.datagen.load.engines import refuse_unsupported
        from nimbus.datagen.pipeline import load_pipeline
        from nimbus.datagen.tasks.task import load_any_task

        loaded, why = load_any_task(task, skill_folders=skills, robot=robot), ""
        pipeline = load_pipeline(loaded.pipeline, where=loaded.where("pipeline"))
        try:
            refuse_unsupported(loaded, pipeline)
        except InputError as error:
            why = error.diagnostic.what
    if why:
        return "newton", f"MuJoCo executes and Isaac Sim renders, because {why} (--physics isaacsim overrides)"
    return "isaacsim", "PhysX executes and Isaac Sim renders (--physics mujoco for MuJoCo)"


def _begun_with(folder: Path | None) -> str | None:
    """Return the registered simulator of a folder's dataset; None without a dataset."""
    if folder is None or not folder.is_dir():
        return None
    from nimbus.datagen.store.info import INFO_NAME, read_info

    try:
        found = read_info(folder) if (folder / INFO_NAME).is_file() else None
    except InputError:  # the run reports it
        return None
    engine = found.inputs.get("physics", "") if found else ""
    return engine if engine in _NAMES else None


def _verification(instances: Instances) -> VerifiedInstallation:
    return VerifiedInstallation(executable=instances.executable, gpus=instances.gpus, nimbus=nimbus_version())


def _file(instances: Instances) -> Path:
    return Path(instances.folder, "verified.json")
