"""Description of a task for the head, created in a child process because it needs the simulator."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.errors import BUG, Diagnostic, InputError
from nimbus.datagen.files.codec import from_json
from nimbus.datagen.store.remote.cache_root import address_of
from nimbus.datagen.store.remote.working_copy import is_remote
from nimbus.runner.cell.transport.spec import CellSpec, Origin
from nimbus.runner.cluster.job import CountDraw, JobTask, NodeNeeds
from nimbus.runner.system.child_module import module_command, module_environment
from nimbus.runner.system.output import write_error


@dataclass(frozen=True, kw_only=True)
class TaskDescription:
    """Result of the child process: a description, or an error of the input."""

    origin: Origin | None = None
    count_draws: tuple[CountDraw, ...] = ()
    error: Diagnostic | None = None


def describe_task(name: str, spec: CellSpec, *, needs: NodeNeeds, priority: int = 0) -> JobTask:
    """Load and check a task as a cell does, and describe it.

    Args:
        name: Name of the task in the job.
        spec: Specification of the task's cells.
        needs: Free resources that the task needs on a node.
        priority: Priority of the task; higher ones come first.

    Raises:
        InputError: An input of the spec is invalid.
        SystemExit: The child process crashed; its traceback is shown.
    """
    done = subprocess.run(
        module_command("nimbus.runner.cluster.describe_job"),
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
    folder = Path(spec.folder)
    return JobTask(
        name=name,
        spec=spec,
        origin=found.origin,
        priority=priority,
        needs=needs,
        address=address_of(folder) if is_remote(folder) else "",
        count_draws=found.count_draws,
    )
