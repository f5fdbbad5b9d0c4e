"""``nimbus certify DIR``: checks replay, fresh renderings, labels and accounting; stores a certificate of each."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder, Skills, StoredTask, sample
from nimbus.runner.system.output import write_json


def command(
    folder: DatasetFolder,
    *,
    count: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", parser=sample, help="number of episodes to replay and render, or all"),
    ] = 8,
    skills: Skills = None,
    task: StoredTask = None,
    as_json: AsJson = False,
) -> int:
    """Certify a dataset; return 1 if a certificate is broken."""
    from nimbus.datagen.tasks.own_tasks import name_task
    from nimbus.runner.checks.certify import certify, print_certificates

    if task:
        name_task(task, skill_folders=skills or [])
    found = certify(folder, sample=count, skills=skills)
    if as_json:
        write_json(asdict(found))
    else:
        print_certificates(found)
    return 0 if found.hold else 1
