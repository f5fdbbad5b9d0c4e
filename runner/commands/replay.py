"""``nimbus replay``: executes stored actions in physics again, from the file alone, and compares the outcome."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder, Skills, StoredTask, one_of
from nimbus.runner.system.output import write_json, write_out

if TYPE_CHECKING:
    from nimbus.runner.checks.replay import FedActions

FED_ACTIONS = ("executed", "recorded")


def command(
    folder: DatasetFolder,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", parser=str, help="ids of the episodes (all)")] = None,
    *,
    actions: Annotated[
        str,
        typer.Option(
            "--actions",
            metavar="NAME",
            parser=one_of(FED_ACTIONS),
            help="executed: positions that were executed; states are equal. recorded: commands without execution noise",
        ),
    ] = "executed",
    as_json: AsJson = False,
    skills: Skills = None,
    task: StoredTask = None,
) -> int:
    """Replay episodes; return 1 if an outcome differs."""
    from nimbus.datagen.tasks.own_tasks import name_task
    from nimbus.runner.checks.replay import episode_paths, replay
    from nimbus.runner.system.threads import prepare_libraries

    paths = episode_paths(folder, ids or [])
    prepare_libraries(skill_folders=skills or [])
    if task:
        name_task(task, skill_folders=skills or [])
    results = []
    for path in paths:
        result = replay(path, actions=cast("FedActions", actions))
        results.append(result)
        if not as_json:
            verdict = "same outcome" if result.same_outcome else f"stored {result.stored}, replayed {result.replayed}"
            write_out(
                f"{result.episode_id}: {verdict}; joints within {result.joint_error:.2e}, "
                f"bodies within {result.body_error:.2e} m\n"
            )
    same = sum(result.same_outcome for result in results)
    if as_json:
        write_json([asdict(result) for result in results])
    else:
        write_out(f"{same} of {len(results)} with the same outcome\n")
    return 0 if same == len(results) else 1
