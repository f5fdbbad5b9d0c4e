"""Run of every task in a folder, into one dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nimbus.datagen.errors import InputError
from nimbus.runner.cell.run import SHORT, run_spec, show
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.system.output import error_line, write_error, write_out

if TYPE_CHECKING:
    from nimbus.datagen.tasks.task import Task


def list_tasks(folder: Path) -> list[Path]:
    """List the task files of a folder by name.

    Raises:
        InputError: The folder holds no task file.
    """
    found = sorted(path for path in folder.iterdir() if path.suffix == ".yaml" and path.is_file())
    if not found:
        what, instead = "the folder holds no task file", "give a folder of .yaml files, or a task's name"
        raise InputError(what, where=f"--task {folder}", instead=instead)
    return found


def check_tasks(paths: list[Path], *, skills: tuple[str, ...], robot: str = "") -> None:
    """Check that the episodes of all tasks fit into one dataset.

    Raises:
        InputError: A task cannot be read, or its robot or cameras differ from the first task's.
    """
    from nimbus.datagen.tasks.task import load_task

    first: Task | None = None
    for path in paths:
        task = load_task(path, skill_folders=[Path(folder) for folder in skills], robot=robot)
        first = first or task
        for name, mine, other in (("robot", task.robot, first.robot), ("cameras", _sizes(task), _sizes(first))):
            if mine != other:
                what = f"{mine}; {paths[0].name} has {other}, and all tasks of a dataset need the same {name}"
                raise InputError(what, where=f"{path}: {name}", instead="move it into a separate folder")


def run_task_folder(
    spec: CellSpec, folder: Path, *, serial: bool = False, coupled: bool = False, price_per_hour: float | None = None
) -> int:
    """Run a spec for each task of a folder in turn, and show the combined output.

    Args:
        spec: The run; its number of episodes is that of each task.
        folder: Folder of the task files.
        serial: Run in this process.
        coupled: Run the coupled baseline, as in :func:`run_spec`.
        price_per_hour: Price of the machine.

    Returns:
        Exit code: 0 when all episodes of all tasks are stored.

    Raises:
        InputError: The folder holds no task, or tasks that do not fit into one dataset.
    """
    paths = list_tasks(folder)
    check_tasks(paths, skills=spec.skills, robot=spec.robot)
    worst = 0
    for number, path in enumerate(paths, 1):
        write_out(f"\ntask {number} of {len(paths)}: {path.stem}\n")
        own = replace(spec, task=str(path.absolute()), collection=folder.absolute().name)
        try:
            code = run_spec(own, serial=serial, coupled=coupled, shows=False)
        except InputError as error:  # the other tasks run nevertheless
            write_error(error_line(error))
            code = SHORT
        if code not in (0, SHORT, InputError.exit_code):
            return code
        worst = max(worst, min(code, SHORT))
    if (Path(spec.folder) / "dataset.json").exists():
        show(Path(spec.folder), price=price_per_hour)
    return worst


def _sizes(task: Task) -> str:
    return ", ".join(f"{name} {camera.size[0]} x {camera.size[1]}" for name, camera in sorted(task.cameras.items()))
