"""``nimbus doctor``: reports problems of a task or of this machine, with fixes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.start_folder import start_folder
from nimbus.runner.commands.options import AsJson, Robot, Skills
from nimbus.runner.system.output import shorten_paths, write_json, write_out

if TYPE_CHECKING:
    from nimbus.datagen.doctor.case import CameraView
    from nimbus.datagen.doctor.diagnosis import Diagnosis
    from nimbus.datagen.doctor.forecast import Forecast
    from nimbus.datagen.doctor.machine import MachineItem

FOUND = 1
_SHOWN = 8
"""Largest number of variants in a line."""


def command(
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", parser=str, help="a task's name, or the path of its file")
    ] = None,
    *,
    machine: Annotated[bool, typer.Option("--machine", help="check Python, packages, GPU, simulators, disk")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="make no attempts, and no forecast of yield and time")] = False,
    as_json: AsJson = False,
    skills: Skills = None,
    robot: Robot = "",
) -> int:
    """Examine a task or this machine, and print the findings; return 1 if no episode can succeed.

    Raises:
        InputError: The file is not a valid task.
    """
    if machine:
        if task is not None:
            instead = f"write {quote_words('nimbus', 'doctor', task)}, or nimbus doctor --machine"
            raise InputError(f"--machine takes no task, but '{task}' is given", instead=instead)
        return _machine(as_json)
    if task is None:
        raise InputError("no task is given", instead="write nimbus doctor TASK, or nimbus doctor --machine")
    diagnosis = _diagnose(task, skill_folders=skills or [], robot=robot, probe=not quick)
    if as_json:
        write_json(diagnosis.to_plain())
        return InputError.exit_code if diagnosis.malformed else FOUND if diagnosis.certain else 0
    if diagnosis.malformed:
        raise InputError.from_diagnostic(diagnosis.malformed)
    write_out(shorten_paths("\n".join(lines(diagnosis))) + "\n")
    return FOUND if diagnosis.certain else 0


def _diagnose(task: str, *, skill_folders: list[Path], robot: str, probe: bool) -> Diagnosis:
    """Examine a task; simulator and renderer take seconds to load, and are loaded for a valid file only."""
    from nimbus.datagen.doctor.diagnosis import Diagnosis
    from nimbus.datagen.pipeline import RunContext, check_components, load_pipeline
    from nimbus.datagen.tasks.task import NavigationTask, load_any_task
    from nimbus.runner.system.threads import prepare_libraries

    try:
        loaded = load_any_task(task, skill_folders=skill_folders, robot=robot)
    except InputError as error:
        return Diagnosis.of_malformed(Path(task).stem, error)
    prepare_libraries()
    try:
        pipeline = load_pipeline(loaded.pipeline, where=loaded.where("pipeline"))
        check_components(pipeline, RunContext(task=loaded))
    except InputError as error:
        return Diagnosis.of_malformed(Path(task).stem, error)
    if isinstance(loaded, NavigationTask):
        from nimbus.datagen.doctor.navigation import examine_navigation

        return examine_navigation(loaded, probe=probe)
    from nimbus.datagen.doctor.examine import examine

    return examine(task, skill_folders=skill_folders, robot=robot, planner="ompl", probe=probe)


def lines(diagnosis: Diagnosis) -> list[str]:
    """Return the findings as text."""
    told = [f"{'no episode can succeed: ' if one.is_certain else ''}{one}" for one in diagnosis.findings]
    told = told or [f"{diagnosis.task}: nothing to change"]
    for region, found in diagnosis.reach.items():
        told += ["", f"reach over the region '{region}', with the robot below:", *_map(found["reached"])]
    told += ["", *diagnosis.scenes] if diagnosis.scenes else []
    found = [*_cameras(diagnosis.seen, diagnosis.views), *_grasps(diagnosis.grasps)]
    told += ["", *found] if found else []
    return told + (["", *_forecast(diagnosis.forecast)] if diagnosis.forecast else [])


def _cameras(seen: Mapping[str, Mapping[str, float]], views: Mapping[str, CameraView]) -> Iterator[str]:
    for camera in dict.fromkeys((*seen, *views)):
        found = [f"sees {share:.0%} of '{name}'" for name, share in seen.get(camera, {}).items()]
        if view := views.get(camera):
            found += [f"'{name}' {mid:.0f} px wide (least {low:.0f})" for name, (mid, low) in view.widths.items()]
            found += [f"{name} out of view" for name in view.out_of_view]
        yield f"camera     {camera}: " + ", ".join(found)


def _grasps(counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a line for each group of objects, with the variants that have few grasps."""
    from nimbus.datagen.doctor.grasps import ENOUGH

    for group, variants in counts.items():
        few = sorted((count, name) for name, count in variants.items() if count < ENOUGH)
        said = ", ".join(f"{name}: {count}" for count, name in few[:_SHOWN])
        more = f" and {len(few) - _SHOWN} more" if len(few) > _SHOWN else ""
        yield f"grasps     '{group}': {len(variants)} variants checked" + (
            f", with fewer than {ENOUGH}: {said}{more}" if few else f", each with {ENOUGH} or more"
        )


def _map(reached: Sequence[str]) -> list[str]:
    """Return the rows of a reach map from far to near; the robot's left is on the left."""
    return ["  " + " ".join("#" if cell == "1" else "." for cell in reversed(row)) for row in reversed(reached)]


def _forecast(made: Forecast) -> list[str]:
    attempts = f"{made.successes} successes in {made.probes} attempts"
    rows = [f"yield      {attempts}: no forecast"]
    if expected := made.episode:
        rate, megabytes = expected.success_rate, expected.byte_count / 1e6
        rows = [
            f"yield      {rate:.0%} of first attempts ({expected.low:.0%} to {expected.high:.0%}), from {attempts}",
            f"an episode {expected.cpu_seconds:.1f} s CPU, {megabytes:.0f} MB, {expected.length:.1f} s of motion",
            f"1000       {expected.cpu_seconds / 3.6:.1f} core hours, {megabytes:.0f} GB",
        ]
    for where, count in made.reasons.items():
        detail = made.details.get(where)
        rows.append(f"           failed: {where}, {count} x" + (f", for example: {detail}" if detail else ""))
    return rows


def _machine(as_json: bool) -> int:
    from nimbus.datagen.doctor.machine import examine_machine

    parts = examine_machine(start_folder() / "out")
    if as_json:
        write_json({"parts": [asdict(part) for part in parts]})
    else:
        write_out("\n".join(_row(part) for part in parts) + "\n")
    return FOUND if any(part.state == "bad" for part in parts) else 0


def _row(part: MachineItem) -> str:
    mark = {"ok": "ok", "missing": "--", "bad": "!!"}[part.state]
    return f"{mark}  {part.name:<20} {part.detail}{f'; {part.instead}' if part.instead else ''}"
