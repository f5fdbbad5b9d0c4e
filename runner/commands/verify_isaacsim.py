"""``nimbus verify-isaacsim``: tests the Isaac Sim of this machine, and prints the results with times.

The processes of a normal run make two episodes in four ways: with the default simulator, in Isaac Sim step by step, in
Isaac Sim with K steps together, and executed by PhysX. Then an imported object, a room, a home and a scene of triangles
are opened. If all checks pass, PhysX becomes the default of ``--sim isaacsim`` on this machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import default_folder
from nimbus.runner.cell.transport.spec import CellSpec, Instances, Resources
from nimbus.runner.commands.options import AsJson, stack
from nimbus.runner.commands.parser import new_path
from nimbus.runner.system.output import write_json

if TYPE_CHECKING:
    from nimbus.runner.isaac.compare import Check, Frames

EPISODES = 2
"""Number of episodes. An instance opens a stage for each; the last one is checked, because later stages are the harder
case."""
_STACK = 16


def command(
    *,
    task: Annotated[
        str, typer.Option("--task", metavar="NAME", parser=str, help="a task's name or path")
    ] = "sort_trash",
    steps: Annotated[
        int | None,
        typer.Option("--stack", metavar="K", parser=stack, help=f"steps rendered together ({_STACK})"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", parser=new_path, help="a new folder (out/verify-isaacsim)"),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Print the table; return 1 if a check fails."""
    from nimbus.runner.isaac.compare import Check
    from nimbus.runner.isaac.find import find_instances
    from nimbus.runner.isaac.physics import record_verification

    begin = time.monotonic()
    instances = find_instances()
    found = f"{instances.executable}, {len(instances.gpus)} GPU(s): {', '.join(instances.gpus)}"
    checks = [Check(name="Isaac Sim found", passed=True, found=found, seconds=time.monotonic() - begin)]
    out = default_folder("verify-isaacsim") if out is None else out
    if any(out.glob("*")):
        raise InputError("not empty", where=f"--out {out}", instead="name a new folder")
    checks += check(task, out, instances=replace(instances, gpus=instances.gpus[:1]), stack=steps or _STACK)
    if all(item.passed for item in checks):
        record_verification(instances)
    if as_json:
        write_json([asdict(item) for item in checks])
    else:
        show(checks)
    return 0 if all(item.passed for item in checks) else 1


def check(task: str, folder: Path, *, instances: Instances, stack: int) -> list[Check]:
    """Make the episodes in each way, compare the last one, and open a stage of each kind.

    Args:
        task: Name or path of a task file.
        folder: Folder of the four datasets.
        instances: Instances of Isaac Sim.
        stack: Number of steps that are rendered together.
    """
    from nimbus.runner.isaac.compare import compare_with_default, equal, first_images, moving_prims
    from nimbus.runner.isaac.trial_stages import try_stages

    ways = {
        "default": (Instances(), stack, "newton"),
        "one by one": (instances, 1, "newton"),
        f"{stack} together": (instances, stack, "newton"),
        "PhysX": (instances, stack, "isaacsim"),
    }
    checks: list[Check] = []
    frames: list[Frames] = []
    for name, (given, count, physics) in ways.items():
        spec = CellSpec(
            folder=str((folder / name.replace(" ", "_")).absolute()),
            task=task,
            episodes=EPISODES,
            simulator="isaacsim" if given.executable else "newton",
            physics=physics,
            stack=count,
            instances=given,
            resources=Resources(workers=(1, 1), fixed_roles=True),
        )
        made, shown = _make(spec, f"made: {name}")
        checks.append(made)
        if shown is None:
            return checks
        frames.append(shown)
    default, one, many, _ = frames
    checks += [*first_images(one), moving_prims(one), *equal(one, many), *compare_with_default(one, default)]
    return [*checks, *try_stages(folder / "stages", instances)]


def show(checks: list[Check]) -> None:
    """Print the checks as a table."""
    from rich.table import Table

    from nimbus.runner.system.console import TerminalConsole

    table = Table()
    for column in ("check", "", "found", "s"):
        table.add_column(column)
    for item in checks:
        seconds = "" if item.seconds is None else f"{item.seconds:.1f}"
        table.add_row(item.name, "pass" if item.passed else "FAIL", item.found, seconds)
    TerminalConsole().print(table)


def _make(spec: CellSpec, name: str) -> tuple[Check, Frames | None]:
    """Run a spec; return its check, and the images of its last episode unless the run ended early."""
    from nimbus.runner.cell.launcher import run_cell
    from nimbus.runner.isaac.compare import Check

    begin = time.monotonic()
    ended = run_cell(spec, watch=lambda: 0)
    seconds = time.monotonic() - begin
    if ended.code == 130:
        raise KeyboardInterrupt
    files = sorted(Path(spec.folder, "episodes").glob("*.hdf5"))
    if ended.code or not files:
        return Check(name=name, passed=False, found=ended.line or ended.state, seconds=seconds), None
    with _episode(files[-1]) as (frames, count):
        faults = len(list(Path(spec.folder, "incidents").glob("*")))
        text = f"{count} steps, {faults} incidents"
        return Check(name=name, passed=not faults, found=text, seconds=seconds), frames


@contextmanager
def _episode(path: Path) -> Iterator[tuple[Frames, int]]:
    from nimbus.datagen.store.episode_file.read import EpisodeFile

    with EpisodeFile(path) as episode:
        count = episode.step_count
        yield {camera: episode.frames(camera, 0, count) for camera in episode.cameras}, count
