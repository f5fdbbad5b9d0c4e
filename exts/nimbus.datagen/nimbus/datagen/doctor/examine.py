"""The examination of a task: all checks one after another, then a forecast."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nimbus.datagen.doctor.cameras import check_cameras, check_randomized_cameras
from nimbus.datagen.doctor.case import Case
from nimbus.datagen.doctor.diagnosis import Diagnosis, finding_from_error
from nimbus.datagen.doctor.fits import check_carried, check_fit
from nimbus.datagen.doctor.forecast import check_attempts, forecast
from nimbus.datagen.doctor.goals import check_goals, check_trivial_success
from nimbus.datagen.doctor.grasps import check_assets, check_graspable, check_grasps
from nimbus.datagen.doctor.reach import check_regions, check_targets
from nimbus.datagen.doctor.sizes import check_sizes
from nimbus.datagen.doctor.start import check_start
from nimbus.datagen.errors import Diagnostic, InputError
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.randomize.objects import check_room
from nimbus.datagen.tasks.task import Task, load_task

if TYPE_CHECKING:
    from nimbus.datagen.tasks.scene_assets import SceneAssets

Check = Callable[[Case], Iterator[Diagnostic]]

CHECKS: dict[str, Check] = {
    "assets": check_assets,
    "goals": check_goals,
    "fits": check_fit,
    "carried": check_carried,
    "regions": check_regions,
    "targets": check_targets,
    "cameras": check_cameras,
    "drawn cameras": check_randomized_cameras,
    "sizes": check_sizes,
    "grasps": check_grasps,
    "start": check_start,
    "already": check_trivial_success,
}
"""Checks in the order of execution."""
_DRAWING = ("sizes", "start", "already")
"""Checks that draw layouts, which fails if a region has no room."""
_AT_ONCE: tuple[Check, ...] = (check_goals, check_fit, check_graspable)
"""Checks that are fast enough for the start of a run."""


def examine(
    name: str | Path,
    *,
    skill_folders: Iterable[Path] = (),
    robot: str = "",
    planner: str = "ompl",
    probe: bool = True,
) -> Diagnosis:
    """Examine a task.

    Args:
        name: A task's name, or the path of its file.
        skill_folders: Folders with the user's own skills.
        robot: Name or path of a robot that replaces the task's own; empty to keep it.
        planner: Registered name of the motion planner, for the forecast.
        probe: Attempt some layouts in physics for the forecast, unless a failure is certain.
    """
    seconds: dict[str, float] = {}
    stem, begin = Path(name).stem, time.process_time()
    try:
        task = load_task(name, skill_folders=skill_folders, robot=robot)
        assets = load_assets(task)
    except InputError as error:
        return Diagnosis.of_malformed(stem, error)
    seconds["load"] = time.process_time() - begin
    case = Case(task, assets)
    findings = look_for(case, seconds=seconds)
    begin = time.process_time()
    made = None if not probe or any(found.is_certain for found in findings) else forecast(case, planner=planner)
    findings += check_attempts(case, made) if made else ()
    seconds["forecast"] = time.process_time() - begin
    maps = {region: found.to_plain(task.regions[region].size) for region, found in assets.reach.items()}
    return Diagnosis(
        task=stem,
        findings=tuple(findings),
        reach=maps,
        grasps=case.grasps,
        seen=case.seen,
        views=case.views,
        forecast=made,
        seconds=seconds,
    )


def look_for(case: Case, *, seconds: dict[str, float] | None = None) -> list[Diagnostic]:
    """Return the findings of all checks.

    Args:
        case: The task.
        seconds: Receives the CPU time of each check [s].
    """
    findings: list[Diagnostic] = []
    try:
        check_room(case.task, case.assets, seed=case.seed)
    except InputError as error:
        findings.append(finding_from_error("regions", error))
    for check, do in CHECKS.items():
        begin = time.process_time()
        if check not in _DRAWING or not any(found.check == "regions" for found in findings):
            findings += do(case)
        if seconds is not None:
            seconds[check] = time.process_time() - begin
    return findings


def refuse_hopeless(task: Task, assets: SceneAssets) -> None:
    """Refuse a task that certainly fails; uses fast checks only, for the start of a run.

    Raises:
        InputError: No episode of this task can succeed; the message names the field to change.
    """
    case = Case(task, assets)
    for check in _AT_ONCE:
        for found in check(case):
            if found.is_certain:
                raise InputError.from_diagnostic(found)
