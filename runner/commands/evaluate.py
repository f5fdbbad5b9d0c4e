"""``nimbus evaluate TASK --policy P``: measures the success of a policy on layouts of a task."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.own_files import default_folder
from nimbus.datagen.files.scene_files import resolve_from
from nimbus.datagen.files.start_folder import start_folder
from nimbus.runner.commands.options import AsJson, Device, Execute, Robot, Seed, Serial, Skills, Videos, Workers, whole
from nimbus.runner.commands.parser import new_path, path
from nimbus.runner.system.output import shown_path, write_json, write_out


def command(
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", parser=str, help="a task's name, or its file's path")
    ] = None,
    *,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="P",
            parser=str,
            help="FILE.py:FUNCTION, a trained folder, replay:DIR, demonstrator, ws://HOST:PORT and other wires",
        ),
    ] = None,
    servers: Annotated[
        str | None,
        typer.Option(
            "--servers",
            metavar="URL,URL",
            parser=str,
            help="several servers of one policy, in place of --policy; workers use them in turn",
        ),
    ] = None,
    name_map: Annotated[
        str | None,
        typer.Option(
            "--map", metavar="FILE", parser=str, help="file with the names, sizes and order of a server's fields"
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="C",
            parser=str,
            help="weights of FILE.py:FUNCTION, a file or folder; or the name of a server's checkpoint",
        ),
    ] = None,
    timeout: Annotated[
        int | None,
        typer.Option(
            "--timeout",
            metavar="S",
            parser=whole(1, 3600),
            help="seconds to wait for a server's answer (30); ten times that for the first",
        ),
    ] = None,
    trained_on: Annotated[
        Path | None,
        typer.Option(
            "--trained-on",
            metavar="DIR",
            parser=path,
            help="dataset or export with the policy's actions and states; robot, rate and cameras must match the task",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", parser=new_path, help="folder of the output (out/eval_<task>)"),
    ] = None,
    layouts: Annotated[
        str,
        typer.Option(
            "--layouts", metavar="L", parser=str, help="number of held-out layouts; or run:SEED:N, or train:DIR"
        ),
    ] = "100",
    seed: Seed = 0,
    execute: Execute = 8,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", parser=whole(1, 100_000), help="largest number of steps of an episode"),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option("--actions", metavar="A", parser=str, help="actions of a replay: executed (default) or recorded"),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option("--compare", metavar="DIR DIR", help="compare two evaluations of the same layouts, and exit"),
    ] = None,
    randomize: Annotated[
        str | None,
        typer.Option(
            "--randomize",
            metavar="LEVEL",
            parser=str,
            help="level of randomization: none, small, medium or large; none is always evaluated as well, for "
            "comparison",
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            "--only", metavar="NAMES", parser=str, help="randomizers of the level to apply, separated by commas"
        ),
    ] = None,
    videos: Videos = 4,
    workers: Workers = None,
    serial: Serial = False,
    device: Device = "cpu",
    skills: Skills = None,
    robot: Robot = "",
    as_json: AsJson = False,
) -> int:
    """Evaluate a policy, or compare two evaluations; return 1 if the policy failed to answer too often."""
    if compare is not None:
        return _compare(*map(Path, compare), as_json=as_json)
    if servers is not None:
        if policy is not None:
            raise InputError("--servers already names the policy", where="--policy", instead="leave one of them out")
        policy = servers
    if task is None or policy is None:
        what, where = ("no task", "TASK") if task is None else ("no policy", "--policy")
        raise InputError(what, where=where, instead="write nimbus evaluate TASK --policy FILE.py:make_policy")
    from nimbus.datagen.tasks.task import check_form

    check_form(task)
    from nimbus.datagen.policies.open_policy import absolute_policy, options_from
    from nimbus.runner.evaluation.evaluate import EvaluationRequest, evaluate_with_control
    from nimbus.runner.evaluation.layouts import parse_layouts
    from nimbus.runner.evaluation.measures import read_answer_times
    from nimbus.runner.evaluation.show import lines_of, lines_of_control

    chosen = parse_layouts(layouts, seed=seed)
    given = {"actions": actions, "map": name_map, "checkpoint": checkpoint, "timeout": timeout}
    options = {name: str(value) for name, value in given.items() if value is not None}
    amount = _amount(task, randomize, only, skills=skills or [], robot=robot)
    stem = "-".join(filter(None, (Path(task).stem, Path(robot).stem)))
    folder = default_folder(f"eval_{stem}") if out is None else out
    if amount:
        folder = folder / "-".join((amount["randomize"], *amount["only"]))
    asked = EvaluationRequest(
        folder=folder,
        task=task,
        robot=resolve_from(start_folder(), robot),
        policy=absolute_policy(policy),
        layouts=chosen,
        execute=execute,
        limit=limit or 0,
        options=options_from(start_folder(), policy, options),
        trained_on=str(trained_on.absolute()) if trained_on else "",
        device=device,
        skills=tuple(str(path.absolute()) for path in skills or ()),
        **amount,
    ).with_identity()
    code, found, control = evaluate_with_control(
        asked, serial=serial, workers=workers.counts if workers else None, videos=videos
    )
    if found is not None:
        if as_json:
            write_out(found.to_text())
        else:
            times = read_answer_times(asked.folder, execute=found.execute)
            lines = [*lines_of(found, times), *(lines_of_control(found, control) if control else ())]
            write_out("".join(f"{line}\n" for line in lines) + f"\nevaluation: {shown_path(asked.folder)}\n")
    return code


def _amount(task: str, level: str | None, only: str | None, *, skills: list[Path], robot: str) -> dict[str, Any]:
    """Check ``--randomize`` and ``--only``, and return their fields of the evaluation request."""
    if level is None and only is None:
        return {}
    from nimbus.datagen.tasks.task import AS_THE_TASK, load_task, randomize_task

    names = tuple(filter(None, (only or "").split(",")))
    if only is not None and not names:
        raise InputError("names no randomizer", where="--only", instead="write --only camera,light")
    loaded = load_task(task, skill_folders=skills, robot=robot)
    randomize_task(loaded, level or AS_THE_TASK, only=names, where="--randomize")
    return {"randomize": level or AS_THE_TASK, "only": names}


def _compare(one: Path, other: Path, *, as_json: bool) -> int:
    from nimbus.runner.evaluation.compare import compare
    from nimbus.runner.evaluation.show import lines_of_comparison

    found = compare(one, other)
    if as_json:
        write_json(asdict(found))
    else:
        write_out("".join(f"{line}\n" for line in lines_of_comparison(found, (str(one), str(other)))))
    return 0
