"""``nimbus multiply DEMOS --task T``: makes many episodes from a few demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import default_folder
from nimbus.runner.cell.transport.spec import CellSpec, Resources
from nimbus.runner.commands.options import PLANNERS, Images, Seed, Serial, Skills, Workers, one_of, whole
from nimbus.runner.commands.parser import new_path, path
from nimbus.runner.system.output import shown_path, write_out


def command(
    demos: Annotated[
        Path,
        typer.Argument(
            metavar="DEMOS", parser=path, help="demonstrations: dataset of Nimbus or LeRobot v3.0, file of robomimic"
        ),
    ],
    *,
    task: Annotated[str, typer.Option("--task", metavar="NAME", parser=str, help="a task's name, or its file's path")],
    episodes: Annotated[
        int, typer.Option("--episodes", metavar="N", parser=whole(1, 10**7), help="number of episodes")
    ] = 100,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", parser=new_path, help="folder of the dataset (out/multiplied_<task>)"),
    ] = None,
    use: Annotated[
        int | None,
        typer.Option("--use", metavar="N", parser=whole(1, 10**4), help="use the first N demonstrations (all)"),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            "--mapping",
            metavar="FILE",
            parser=path,
            help="file with the meaning of the columns of a LeRobot or robomimic dataset",
        ),
    ] = None,
    cuts: Annotated[
        Path | None,
        typer.Option(
            "--cuts",
            metavar="FILE",
            parser=path,
            help="file with the subtasks, as --cut-only or the studio writes it",
        ),
    ] = None,
    cut_only: Annotated[
        bool, typer.Option("--cut-only", help="write the cut demonstrations, their task and a file of the cuts; stop")
    ] = False,
    seed: Seed = 0,
    images: Images = "lossless",
    planner: Annotated[
        str, typer.Option("--planner", metavar="NAME", parser=one_of(PLANNERS), help=", ".join(PLANNERS))
    ] = "ompl",
    workers: Workers = None,
    serial: Serial = False,
    skills: Skills = None,
) -> int:
    """Cut demonstrations into subtasks, and repeat them in new layouts; return 0 if all episodes are stored, else 1."""
    from nimbus.datagen.tasks.task import check_form

    check_form(task)
    from nimbus.datagen.datasets.multiply.cuts_file import read_cuts, write_cuts
    from nimbus.datagen.datasets.multiply.cutting import cut_all, describe
    from nimbus.datagen.datasets.multiply.foreign_sets import is_foreign_set, read_foreign_set
    from nimbus.datagen.datasets.multiply.multiplied_task import keep_cuts, takes_folder, write_task
    from nimbus.datagen.datasets.multiply.source import read_nimbus_set
    from nimbus.datagen.robots.robot import load_robot
    from nimbus.datagen.tasks.task import load_task
    from nimbus.datagen.usd.stage import read_stage
    from nimbus.runner.cell.run import run_spec
    from nimbus.runner.system.threads import prepare_libraries

    if not demos.exists():
        raise InputError("no such dataset", where=f"DEMOS {demos}", instead="give the folder of a dataset")
    is_foreign = is_foreign_set(demos)
    if is_foreign and mapping is None:
        what = "the columns of a LeRobot or robomimic set have no fixed meaning"
        raise InputError(what, where=f"DEMOS {demos}", instead="give --mapping FILE, see docs/multiply.md")
    if mapping is not None and not is_foreign:
        raise InputError("a dataset of Nimbus needs no mapping", where="--mapping", instead="leave it out")
    if cuts is not None and use is not None:
        what = "a cuts file chooses the demonstrations"
        raise InputError(what, where="--use", instead="leave it out, or write use: false in the cuts file")
    cuts_file = None if cuts is None else read_cuts(cuts)
    prepare_libraries(skill_folders=skills or ())  # otherwise the simulator reports every kernel that it loads
    loaded = load_task(task, skill_folders=skills or ())
    robot, stage = load_robot(loaded.robot), read_stage(loaded.scene)
    if mapping is not None:
        found = read_foreign_set(demos, mapping, task=loaded, robot=robot, limit=use)
    else:
        found = read_nimbus_set(demos, task=loaded, robot=robot, limit=use)
    cut = cut_all(found, task=loaded, stage=stage, robot=robot, cuts_file=cuts_file)
    folder = (default_folder(f"multiplied_{loaded.name}") if out is None else out).absolute()
    beside = takes_folder(folder)
    names = {"task": loaded.name, "robot": robot.name}
    kept = keep_cuts(beside, write_cuts(cut.cuts, found, **names)) if cut_only and cuts is None else cuts
    path = write_task(cut, task=loaded, robot=robot, stage=stage, folder=beside)
    first = [subtasks[0] for subtasks in cut.columns.values()]
    write_out(f"{len(cut.used)} demonstration{'s' * (len(cut.used) != 1)}: {describe(first)}\n")
    for name, reason in cut.left_out.items():
        write_out(f"left out: {name}: {reason}\n")
    if kept is not None:
        write_out(f"cuts: {shown_path(kept)}\n")
    write_out(f"task: {shown_path(path)}\n")
    if cut_only:
        return 0
    spec = CellSpec(
        folder=str(folder),
        task=str(path),
        skills=tuple(str(place.absolute()) for place in skills or ()),
        seed=seed,
        episodes=episodes,
        planner=planner,
        settings={} if images == "lossless" else {"images": images},
        resources=Resources(workers=workers.counts if workers else None),
    )
    return run_spec(spec, serial=serial)
