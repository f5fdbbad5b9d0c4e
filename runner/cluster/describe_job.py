"""Program that loads the simulator and the objects of a spec's task, and prints a description of it for the head."""

from __future__ import annotations

import sys

from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks.task import Task
from nimbus.runner.cell.transport.spec import CellSpec
from nimbus.runner.cell.worker.job import load_job
from nimbus.runner.cluster.job import CountDraw
from nimbus.runner.cluster.job_description import TaskDescription
from nimbus.runner.system.output import write_json


def describe(spec: CellSpec) -> TaskDescription:
    """Describe a task in this process."""
    try:
        job = load_job(spec)
    except InputError as error:
        return TaskDescription(error=error.diagnostic)
    task = job.context.task
    groups = task.objects.items() if isinstance(task, Task) else ()
    draws = (
        CountDraw(address=("physical", "objects", name, "count"), low=group.count[0], high=group.count[1])
        for name, group in groups
        if group.count[0] < group.count[1]
    )
    return TaskDescription(origin=job.origin, count_draws=tuple(draws))


def main() -> int:
    """Describe the task of the spec read from standard input; print the description as the last line."""
    write_json(describe(CellSpec.from_text(sys.stdin.read())), indent=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
