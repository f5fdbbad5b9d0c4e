"""``nimbus demonstrate TASK``: makes episodes from the recordings of an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nimbus.datagen.errors import InputError, quote_words
from nimbus.runner.cell.transport.spec import CellSpec, Resources
from nimbus.runner.commands.options import Device, Images, Serial, Skills, Workers
from nimbus.runner.commands.parser import new_path, path

PIPELINE = "demonstration"


def command(
    task: Annotated[str, typer.Argument(metavar="TASK", parser=str, help="a task's name, or its file's path")],
    *,
    recordings: Annotated[
        Path | None,
        typer.Option("--recordings", metavar="DIR", parser=path, help="folder of the recordings (DIR-recordings)"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", parser=new_path, help="folder of the dataset (out/demonstrations_<task>)"),
    ] = None,
    images: Images = "lossless",
    workers: Workers = None,
    serial: Serial = False,
    device: Device = "cpu",
    skills: Skills = None,
) -> int:
    """Execute each recording in physics, render it and store it; stored episodes are kept.

    Raises:
        InputError: There are no recordings, or they are of another task, robot or version.
    """
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.tasks.task import check_form, load_task
    from nimbus.datagen.teleoperate.recording import SPLIT, RecordingFolder, demonstrations_folder
    from nimbus.runner.cell.run import run_spec

    check_form(task)
    loaded = load_task(task, skill_folders=skills or [])
    folder = (out or demonstrations_folder(loaded.name)).absolute()
    found = RecordingFolder(recordings) if recordings else RecordingFolder.beside(folder)
    if not (indices := found.indices()):
        instead = f"record some with {quote_words('nimbus', 'studio', task, '--teleoperate')}"
        raise InputError("no recordings", where=str(found.folder), instead=instead)
    robot, seeds = load_robot(loaded.robot, where=loaded.where("robot")), set[int]()
    for index in indices:
        recording = found.read(index)
        recording.check(loaded, robot, where=str(found.path(index)))
        seeds.add(recording.seed)
    if len(seeds) > 1:
        what = f"the recordings have several seeds: {', '.join(map(str, sorted(seeds)))}"
        raise InputError(what, where=str(found.folder), instead="move the recordings of each seed into its own folder")
    spec = CellSpec(
        folder=str(folder),
        task=task,
        pipeline=PIPELINE,
        settings={"recordings": str(found.folder.absolute()), "keep_failures": True}
        | ({} if images == "lossless" else {"images": images}),
        choices={"split": SPLIT},
        skills=tuple(map(str, skills or ())),
        seed=seeds.pop(),
        split=SPLIT,
        episodes=max(indices) + 1,
        indices=indices,
        device=device,
        resources=Resources(workers=workers.counts if workers else None),
    )
    return run_spec(spec, serial=serial or len(indices) == 1)
