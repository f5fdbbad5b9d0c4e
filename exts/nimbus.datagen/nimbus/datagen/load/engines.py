"""Checks for tasks, pipelines and episodes that a physics engine cannot execute or repeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.model import FLEXIBLE_NOUNS

if TYPE_CHECKING:
    from nimbus.datagen.pipeline import Pipeline
    from nimbus.datagen.tasks.task import BaseTask

_WHERE = "--physics isaacsim"
_INSTEAD = "use --physics mujoco"


def find_unsupported_task(task: BaseTask) -> str:
    """Return the reason why PhysX cannot execute a task; empty if it can."""
    from nimbus.datagen.objects.libraries import open_library
    from nimbus.datagen.simulate.physx_world import STEP_RATE
    from nimbus.datagen.tasks.task import Task

    if not isinstance(task, Task):
        return "navigation tasks have no physics"
    if STEP_RATE % task.rate:
        return f"the rate of the task, {task.rate:g} Hz, does not divide {STEP_RATE:g} Hz"
    for group in task.objects.values():
        library = open_library(group.library)
        for kind in library.kinds if group.kinds == "all" else group.kinds:
            if bends := library.kind(kind).bends_as:
                return f"'{kind}' is {FLEXIBLE_NOUNS[bends]}, which Nimbus does not write for PhysX"
            if any(part.joint.speed for part in library.model(kind, 0).parts):
                return f"'{kind}' has a moving belt; in PhysX, friction would hold back the objects on it"
    return ""


def refuse_unsupported(task: BaseTask, pipeline: Pipeline) -> None:
    """Refuse a task or a pipeline that Isaac Sim's physics cannot execute.

    Raises:
        InputError: The task or the pipeline needs another engine.
    """
    if what := find_unsupported_task(task):
        raise InputError(what, where=_WHERE, instead=_INSTEAD)
    for part in pipeline.components:
        if part.kind == "plan" and part.name != "skills":
            what = f"plan: {part.name} does not run in PhysX"
            raise pipeline.document.error(part.keys, what, instead=_INSTEAD, at_key=True)


def check_engine(settings: Mapping[str, str], *, where: str) -> None:
    """Check that an episode was executed by the default simulator, which is about to repeat it.

    Args:
        settings: Settings of its provenance.
        where: Location for the error message.

    Raises:
        InputError: PhysX executed it.
    """
    if settings.get("physics") == "isaacsim":
        what = "was executed by PhysX in Isaac Sim (physics: isaacsim), but is repeated in MuJoCo"
        raise InputError(what, where=where, instead="use its stored states, or make it with --physics mujoco")
