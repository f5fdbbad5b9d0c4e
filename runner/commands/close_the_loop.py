"""``nimbus close-the-loop TASK``: makes demonstrations, trains a policy on their states, and evaluates it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nimbus.runner.cell.transport.spec import CellSpec, Resources
from nimbus.runner.commands.options import AsJson, Seed, Serial, Skills, Videos, Workers, whole
from nimbus.runner.commands.parser import new_path
from nimbus.runner.system.output import shown_path, write_error, write_json, write_out

if TYPE_CHECKING:
    from nimbus.runner.evaluation.page import RateBar

DATA, POLICY, CEILING, RESULT = "demonstrations", "policy", "demonstrator", "evaluation"
"""Folders below ``--out``."""
_STAGES = 5
"""Number of stages whose beginning is printed."""


def command(
    task: Annotated[str, typer.Argument(metavar="TASK", parser=str, help="a task's name, or its file's path")],
    *,
    episodes: Annotated[
        int, typer.Option("--episodes", metavar="N", parser=whole(1, 10**6), help="number of demonstrations")
    ] = 200,
    layouts: Annotated[
        int,
        typer.Option(
            "--layouts", metavar="N", parser=whole(1, 100_000), help="number of held-out layouts of the evaluation"
        ),
    ] = 100,
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", parser=whole(1, 10**7), help="number of training steps")
    ] = 5000,
    seed: Seed = 0,
    execute: Annotated[
        int,
        typer.Option("--execute", metavar="K", parser=whole(1, 16), help="number of actions executed per prediction"),
    ] = 8,
    videos: Videos = 4,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", parser=new_path, help="folder of the output (out/loop_<task>)"),
    ] = None,
    workers: Workers = None,
    serial: Serial = False,
    skills: Skills = None,
    as_json: AsJson = False,
) -> int:
    """Demonstrate, train, evaluate; after an interruption, the same command continues."""
    from nimbus.datagen.files.own_files import default_folder, refuse_links
    from nimbus.datagen.policies.open_policy import WEIGHTS_ONLY
    from nimbus.datagen.tasks.task import check_form

    check_form(task)
    from nimbus.datagen.policies.perceptron import TrainingSettings
    from nimbus.datagen.store.episode_file.videos import NO_IMAGES
    from nimbus.runner.cell.run import SHORT, run_spec
    from nimbus.runner.evaluation.compare import pair
    from nimbus.runner.evaluation.evaluate import EvaluationRequest, evaluate, show_evaluation
    from nimbus.runner.evaluation.layouts import parse_layouts
    from nimbus.runner.evaluation.page import NAME, Curve, rate_bar
    from nimbus.runner.evaluation.show import lines_of
    from nimbus.runner.evaluation.training_log import train_on

    folder = (default_folder(f"loop_{Path(task).stem}") if out is None else out).absolute()
    refuse_links(folder)
    counts = workers.counts if workers else None
    own_skills = tuple(str(path.absolute()) for path in skills or ())
    demonstrations = CellSpec(
        folder=str(folder / DATA),
        task=task,
        skills=own_skills,
        seed=seed,
        episodes=episodes,
        settings={"images": NO_IMAGES},
        resources=Resources(workers=counts),
    )
    _begin(1, f"{episodes} demonstrations, without images")
    if (code := run_spec(demonstrations, serial=serial)) not in (0, SHORT):
        return code
    _begin(2, f"training of a policy on states, {steps} steps")
    training = train_on(
        folder / DATA,
        folder / POLICY,
        settings=TrainingSettings(steps=steps, seed=seed),
        report=lambda text: write_error(f"{text}\n"),
    )
    asked = EvaluationRequest(
        folder=folder / RESULT,
        task=task,
        policy=f"{WEIGHTS_ONLY}:{folder / POLICY}",  # a continued folder may come from another user
        layouts=parse_layouts(str(layouts)),
        execute=execute,
        skills=own_skills,
    ).with_identity()
    demonstrator = replace(asked, folder=folder / CEILING, policy=CEILING, identity=CEILING)
    _begin(3, f"the demonstrator on {layouts} held-out layouts, for comparison")
    code, ceiling = evaluate(demonstrator, serial=serial, workers=counts)
    if ceiling is None:
        return code
    _begin(4, f"the policy on the same {layouts} layouts")
    code, found = evaluate(asked, serial=serial, workers=counts)
    if found is None:
        return code
    _begin(5, f"the page{f', and up to {2 * videos} videos' if videos else ''}")
    bars = (rate_bar("the demonstrator, one attempt each", ceiling), _first_attempts(folder / DATA))
    show_evaluation(
        asked,
        found,
        beside=bars,
        comparison=pair(found, ceiling),
        facts=[("demonstrations", f"{training.episode_count} episodes, {training.row_count} rows")],
        curve=Curve(title="Training loss by step", points=training.losses),
        videos=videos,
    )
    if as_json:
        shown = (rate_bar("policy", found), *bars)
        write_json({bar.name: {"success": bar.count, "of": bar.of} for bar in shown})
        return code
    lines = [*lines_of(found), "", *(bar.line for bar in bars)]
    write_out("".join(f"{line}\n" for line in lines) + f"\npage: {shown_path(asked.folder / NAME)}\n")
    return code


def _begin(number: int, text: str) -> None:
    """Print the heading of a stage."""
    sys.stdout.flush()  # the lines of the previous stage come first, also in a file with both streams
    write_error(f"stage {number} of {_STAGES}: {text}\n")


def _first_attempts(data: Path) -> RateBar:
    from contextlib import closing

    from nimbus.datagen.store.ledger.ledger import Ledger
    from nimbus.runner.evaluation.page import bar_of

    with closing(Ledger(data, read_only=True)) as ledger:
        first = [attempt.success for attempt in ledger.attempts() if attempt.attempt == 0]
    return bar_of("first attempts of the demonstrations", sum(first), len(first))
