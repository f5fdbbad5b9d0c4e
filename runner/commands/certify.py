"""``nimbus certify DIR``: checks replay, fresh renderings, labels and accounting; stores a certificate of each."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from nimbus.runner.commands.options import AsJson, DatasetFolder, Skills, sample
from nimbus.runner.system.output import write_json


def command(
    folder: DatasetFolder,
    *,
    count: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", parser=sample, help="number of episodes to replay and render, or all"),
    ] = 8,
    skills: Skills = None,
    as_json: AsJson = False,
) -> int:
    """Certify a dataset; return 1 if a certificate is broken."""
    from nimbus.runner.checks.certify import certify, print_certificates

    found = certify(folder, sample=count, skills=skills)
    if as_json:
        write_json(asdict(found))
    else:
        print_certificates(found)
    return 0 if found.hold else 1
