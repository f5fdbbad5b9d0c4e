"""Description of a task for the head, made in a process of its own: the head loads no simulator and stays small."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nimbus
from nimbus.datagen.errors import BUG, Diagnostic, InputError
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.runner.cell.transport.spec import CellSpec, Origin
from nimbus.runner.cluster.job import CountDraw, JobTask, NodeNeeds
from nimbus.runner.system.output import write_error


@dataclass(frozen=True, kw_only=True)
class TaskDescription:
    """What the child process found: a description, or an error of the input."""

    origin: Origin | None = None
    count_draws: tuple[CountDraw, ...] = ()
    error: Diagnostic | None = None


def describe_task(name: str, spec: CellSpec, *, priority: int = 0, needs: NodeNeeds | None = None) -> JobTask:
    """Load and check a task as a cell does, and describe it.

    Raises:
        InputError: Something that the spec names is wrong.
        SystemExit: Loading crashed; its traceback is shown.
    """
    done = subprocess.run(
        module_command("nimbus.runner.cluster.job_description"),
        input=spec.to_text(),
        capture_output=True,
        text=True,
        env=module_environment(),
        check=False,
    )
    if done.returncode:
        write_error(done.stderr)
        sys.exit(BUG)
    found = from_json(TaskDescription, done.stdout.splitlines()[-1])
    if found.error or found.origin is None:
        raise InputError.from_diagnostic(found.error or Diagnostic(what="no description of the task"))
    needs = needs or NodeNeeds(simulator=spec.simulator, engine=spec.planner)
    return JobTask(
        name=name, spec=spec, origin=found.origin, priority=priority, needs=needs, count_draws=found.count_draws
    )


def module_command(module: str, *words: str) -> list[str]:
    """Return the command that runs a module of this Nimbus."""
    return [sys.executable, "-P", "-m", module, *words]


def module_environment(**more: str) -> dict[str, str]:
    """Return the environment in which :func:`module_command` finds this Nimbus."""
    root = str(Path(nimbus.__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))} | more


def describe(spec: CellSpec) -> TaskDescription:
    """Describe a task in this process."""
    from nimbus.runner.cell.worker.job import load_job

    try:
        job = load_job(spec)
    except InputError as error:
        return TaskDescription(error=error.diagnostic)
    task = job.context.task
    groups = task.objects.items() if task else ()
    draws = (
        CountDraw(address=("physical", "objects", name, "count"), low=group.count[0], high=group.count[1])
        for name, group in groups
        if group.count[0] < group.count[1]
    )
    return TaskDescription(origin=job.origin, count_draws=tuple(draws))


def main() -> int:
    """Describe the spec on standard input, as the last line of standard output."""
    found = describe(CellSpec.from_text(sys.stdin.read()))
    sys.stdout.write(to_json(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
