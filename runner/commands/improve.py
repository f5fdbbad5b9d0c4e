"""``nimbus improve TASK --out DIR``: trains a policy on demonstrations, then in rounds on its own rollouts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from nimbus.datagen.files.start_folder import start_folder
from nimbus.runner.commands.options import AsJson, Execute, Seed, one_of, whole
from nimbus.runner.commands.parser import new_path
from nimbus.runner.system.output import shown_path, write_out

MODES = ("async", "lockstep")
OBJECTIVES = ("dagger", "awr", "dagger+awr")


def command(
    task: Annotated[str, typer.Argument(metavar="TASK", parser=str, help="a task's name, or its file's path")],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", parser=new_path, help="folder of the output (out/improve_<task>)"),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds",
            metavar="N",
            parser=whole(1, 1000),
            help="number of rounds; a larger number than before continues the improvement",
        ),
    ] = 3,
    episodes: Annotated[
        int,
        typer.Option("--episodes", metavar="N", parser=whole(1, 10**6), help="number of demonstrations for version 0"),
    ] = 50,
    rollouts: Annotated[
        int,
        typer.Option("--rollouts", metavar="N", parser=whole(1, 10**5), help="number of layouts attempted in a round"),
    ] = 100,
    layouts: Annotated[
        int,
        typer.Option(
            "--layouts",
            metavar="N",
            parser=whole(0, 10**5),
            help="number of held-out layouts on which each version is evaluated; 0: no evaluation",
        ),
    ] = 100,
    mode: Annotated[
        Literal["async", "lockstep"],
        typer.Option(
            "--mode", metavar="MODE", parser=one_of(MODES), help="async: roles run in parallel; lockstep: in sequence"
        ),
    ] = "async",
    objective: Annotated[
        Literal["dagger", "awr", "dagger+awr"],
        typer.Option(
            "--objective",
            metavar="NAME",
            parser=one_of(OBJECTIVES),
            help="dagger: corrections of failures; awr: rollouts weighted by advantage; dagger+awr",
        ),
    ] = "dagger",
    staleness: Annotated[
        int | None,
        typer.Option(
            "--staleness",
            metavar="N",
            parser=whole(0, 100),
            help="number of versions by which rollouts may lag (async: 1)",
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", parser=whole(1, 10**7), help="number of training steps of version 0")
    ] = 2000,
    round_steps: Annotated[
        int,
        typer.Option(
            "--round-steps",
            metavar="N",
            parser=whole(1, 10**7),
            help="number of training steps of each further version",
        ),
    ] = 1500,
    execute: Execute = 8,
    proposal: Annotated[
        str,
        typer.Option("--proposal", metavar="ID", parser=str, help="id of the task's proposal, for the lineage"),
    ] = "",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> int:
    """Improve a policy in rounds; after an interruption, the same command continues."""
    from nimbus.datagen.errors import InputError
    from nimbus.datagen.files.folder_lock import lock_folder
    from nimbus.datagen.files.own_files import default_folder
    from nimbus.datagen.files.scene_files import resolve_from
    from nimbus.datagen.tasks.task import load_task
    from nimbus.runner.improvement.loop import Improvement, LoopSettings
    from nimbus.runner.improvement.results import lines_of, summarize, write_results
    from nimbus.runner.improvement.roles import run_in_lockstep
    from nimbus.runner.improvement.rows import check_rows
    from nimbus.runner.improvement.supervisor import supervise
    from nimbus.runner.system.threads import prepare_libraries

    prepare_libraries()
    loaded = load_task(task)
    side_by_side = mode == "async"
    if not side_by_side and staleness:
        instead = "leave --staleness out, or write --mode async"
        raise InputError(
            f"rollouts are never stale in lockstep mode, found {staleness}", where="--staleness", instead=instead
        )
    settings = LoopSettings(
        task=resolve_from(start_folder(), task),
        task_hash=loaded.content_hash,
        seed=seed,
        rounds=rounds,
        episodes=episodes,
        rollouts=rollouts,
        layouts=layouts,
        objective=objective,
        staleness=int(side_by_side) if staleness is None else staleness,
        steps=steps,
        round_steps=round_steps,
        execute=execute,
        proposal=proposal,
    )
    folder = default_folder(f"improve_{Path(task).stem}") if out is None else out
    loop = Improvement(folder.absolute(), settings)
    loop.begin()
    check_rows(loop)
    lock = lock_folder(loop.folder)
    try:
        code = 0
        if side_by_side and sys.platform.startswith("linux"):
            code = supervise(loop)
        else:
            run_in_lockstep(loop)
        if code:
            return code
        found = summarize(loop)
        write_results(loop, found)
    finally:
        lock.release()
    write_out(
        found.to_text() if as_json else "".join(f"{line}\n" for line in lines_of(found)) + f"\n{shown_path(folder)}\n"
    )
    return 0
