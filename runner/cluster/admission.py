"""Admission of nodes to a job: checks nodes that join, and describes their tasks to them. No side effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace

import msgspec

from nimbus.datagen.version import nimbus_version
from nimbus.runner.cluster.job import ClusterJob
from nimbus.runner.cluster.machine import platform_name
from nimbus.runner.cluster.messages import (
    MOST_BYTES,
    Beat,
    CellTask,
    Description,
    Faults,
    GiveBack,
    Join,
    Joined,
    Report,
    Request,
    SignatureRequest,
    Vote,
)

_TASKS_BYTES = MOST_BYTES - 4000
"""Largest size of task descriptions in one message [bytes]."""


class Admission:
    """Decides which nodes may join, and on which tasks they work.

    Args:
        job: Job of the cluster.
        uploads: Destination of uploads by task.
        epoch: Number of the head's current start; it grows with each restart.
    """

    def __init__(self, job: ClusterJob, uploads: Mapping[str, str], *, epoch: int) -> None:
        self._job, self._uploads, self._epoch = job, uploads, epoch
        self._known = frozenset(task.name for task in job.tasks)
        self.lacking: dict[str, str] = {}
        """Resource that a joining node lacked, by name of the task."""

    def check(self, request: Join) -> tuple[list[str], str]:
        """Return the tasks that a node can work on and an empty text, or no tasks and the reason."""
        if line := _misfit(request):
            return [], line
        needs = {task.name: task.needs.lacking(request.capabilities) for task in self._job.tasks}
        self.lacking |= {name: lacks for name, lacks in needs.items() if lacks}
        fits = [name for name, lacks in needs.items() if not lacks]
        return fits, "" if fits else "lacks " + "; ".join(f"{name}: {what}" for name, what in needs.items())

    def check_content(self, request: Request) -> None:
        """Check that a message is about this job.

        Raises:
            ValueError: The message names a task of another job, or has rows of another episode.
        """
        if strangers := [name for name in _groups(request) if name not in self._known]:
            raise ValueError(f"node {request.node}: no task '{strangers[0]}' in this job")
        if _has_other_rows(request):
            raise ValueError(f"node {request.node}: rows of another episode")

    def describe(self, fits: Set[str], first: int) -> Joined:
        """Describe tasks to a node, as many as fit into one message.

        Args:
            fits: Names of the tasks that the node can work on.
            first: Number of the first task of the job to describe.
        """
        described: list[CellTask] = []
        room = _TASKS_BYTES
        for number, task in enumerate(self._job.tasks[first:], first):
            if task.name not in fits:
                continue
            one = CellTask(
                group=task.name,
                spec=replace(task.spec, folder="", indices=(), part=(1, 1)).to_text(),
                task_hash=task.origin.task_hash,
                inputs=task.origin.inputs,
                upload=self._uploads[task.name],
                gpus=self._job.gpus,
            )
            room -= len(msgspec.json.encode(one)) + 1
            if described and room < 0:
                return Joined(epoch=self._epoch, tasks=tuple(described), next=number)
            described.append(one)
        return Joined(epoch=self._epoch, tasks=tuple(described))


def _misfit(request: Join) -> str:
    if request.version != nimbus_version():
        return f"the node has Nimbus {request.version}, the head has {nimbus_version()}: install the same version"
    if request.platform != platform_name():
        return f"the node has the platform {request.platform}, the head has {platform_name()}: results would differ"
    return ""


def _groups(request: Request) -> Iterator[str]:
    """Yield the tasks that a request names."""
    match request:
        case Report(episodes=episodes):
            yield from (episode.group for episode in episodes)
        case Beat(held=held):
            yield from held
        case GiveBack() | Vote() | Faults() | SignatureRequest() | Description():
            yield request.group
        case _:
            return


def _has_other_rows(request: Request) -> bool:
    """Return True if a report lists rows of one episode under the number of another."""
    reports = request.episodes if isinstance(request, Report) else ()
    return any(row.idx != episode.index for episode in reports for row in episode.attempts)
