"""``nimbus skills``: lists the steps and conditions of the task language."""

from __future__ import annotations

from typing import Annotated

import typer

from nimbus.runner.commands.options import Skills
from nimbus.runner.system.output import write_out

_MORE = "nimbus skills NAME describes its parameters with units and defaults, and the reasons of failures"


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", parser=str, help="skills and conditions to describe in full")
    ] = None,
    *,
    skills: Skills = None,
) -> int:
    """Print every skill and condition with its parameters, or full descriptions of the named ones."""
    from nimbus.datagen.tasks.plugins import discover
    from nimbus.runner.commands.statement_text import details, list_statements

    discover(skills or [])
    if not names:
        write_out("".join(f"{line}\n" for line in (*list_statements(), _MORE)))
    for name in names or ():
        write_out("\n".join(details(name)) + "\n")
    return 0
