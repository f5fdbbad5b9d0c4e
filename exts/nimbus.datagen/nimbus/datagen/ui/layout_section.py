"""Form section for layouts of a task: choice of the episode and computed results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from nimbus.datagen.errors import Diagnostic
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.ui.form import Control, FormSection, buttons

SAMPLE_COUNT = 50
"""Number of layouts that are sampled together."""
MAX_STACK = 64
"""Largest number of steps that are shown side by side."""
_MAX_SEED, _MAX_INDEX = 2**31 - 1, 10_000_000


class TaskScene(Protocol):
    """Interface to the view of a task's scene in a host.

    Every call computes in the caller's thread. A returned text is one line about the result; it is empty if the view
    shows the result itself.
    """

    def outline(self, task: Task) -> None:
        """Update the regions and cameras after a change of the task."""
        ...

    def show_layout(self, task: Task, *, seed: int, index: int) -> str:
        """Show the layout of one episode."""
        ...

    def sample(self, task: Task, *, seed: int) -> str:
        """Mark the objects of :data:`SAMPLE_COUNT` layouts."""
        ...

    def reach(self, task: Task) -> str:
        """Mark the cells of regions that the robot reaches, and those that it does not."""
        ...

    def clear(self, task: Task) -> str:
        """Remove the marks of samples and reach."""
        ...

    def plan(self, task: Task, *, seed: int, index: int) -> str:
        """Plan and execute one attempt, and show its motion."""
        ...

    def photograph(self, task: Task) -> str:
        """Show the images of the task's cameras."""
        ...

    def examine(self, task: Task) -> list[Diagnostic]:
        """Return the doctor's findings."""
        ...


@runtime_checkable
class HostedScene(Protocol):
    """Further functions of a scene in a host that has a USD stage open, such as Isaac Sim."""

    @property
    def stop_count(self) -> int:
        """Number of calls of :meth:`stop`."""
        ...

    def plan_live(self, task: Task, *, seed: int, index: int, stops_before: int) -> str:
        """Plan one attempt and execute it in the open stage, unless :attr:`stop_count` exceeds ``stops_before``."""
        ...

    def stop(self) -> None:
        """End a live plan before its next step of physics, and a waiting one before it begins.

        This returns at once, and may be called from any thread.
        """
        ...

    def vary(self, task: Task, *, seed: int, index: int) -> str:
        """Change the open stage to the layout of an episode, in a separate layer that can be removed."""
        ...

    def restore(self, task: Task) -> str:
        """Remove the changes of :meth:`vary`."""
        ...

    def stack(self, task: Task, *, count: int) -> str:
        """Show steps of the last motion as regions of one stage."""
        ...


class LayoutSection:
    """Seed, episode, and buttons that start work of a scene.

    Args:
        scene: View that does the work.
        start: Called with the name of the work and a function of the task that returns one line.
    """

    def __init__(self, scene: TaskScene, start: Callable[[str, Callable[[Task], str]], None]) -> None:
        self._scene, self._start = scene, start
        self._seed = self._index = 0
        self._stack = 16

    def build(self) -> FormSection:
        """Build the section."""
        scene = self._scene
        return FormSection(
            title="Layouts",
            controls=(
                _number("seed", self._seed, _MAX_SEED, self._set_seed),
                _number("episode", self._index, _MAX_INDEX, self._set_index),
                buttons(
                    "layout",
                    "layout",
                    {
                        "This one": self._show,
                        "Next": self._show_next,
                        f"Sample {SAMPLE_COUNT}": self._sample,
                        "Clear": lambda: self._start("clearing", scene.clear),
                    },
                ),
                buttons(
                    "check",
                    "check",
                    {
                        "Reach": lambda: self._start("reach", scene.reach),
                        "Plan one": self._plan,
                        "Pictures": lambda: self._start("pictures", scene.photograph),
                    },
                ),
                *(self._hosted_controls(scene) if isinstance(scene, HostedScene) else ()),
            ),
        )

    def _hosted_controls(self, scene: HostedScene) -> tuple[Control, ...]:
        return (
            buttons(
                "live",
                "in PhysX",
                {"Plan live": lambda: self._plan_live(scene), "Stop": scene.stop},
                hint="Skills move the robot in the open stage; Stop ends the motion at the current step",
            ),
            buttons(
                "vary",
                "in place",
                {
                    "Randomize": lambda: self._vary(scene),
                    "Restore": lambda: self._start("restoring", scene.restore),
                },
                hint="Changes the open stage in a separate layer; Restore removes the layer",
            ),
            _number("stack", self._stack, MAX_STACK, self._set_stack, least=1),
            buttons("regions", "steps", {"Stack": lambda: self._show_stack(scene)}, hint="Steps of the last plan"),
        )

    def _set_seed(self, value: Any) -> None:
        self._seed = min(max(int(value), 0), _MAX_SEED)

    def _set_index(self, value: Any) -> None:
        self._index = min(max(int(value), 0), _MAX_INDEX)

    def _show(self) -> None:
        seed, index = self._seed, self._index
        self._start("drawing a layout", lambda task: self._scene.show_layout(task, seed=seed, index=index))

    def _show_next(self) -> None:
        self._set_index(self._index + 1)
        self._show()

    def _sample(self) -> None:
        seed = self._seed
        self._start(f"drawing {SAMPLE_COUNT} layouts", lambda task: self._scene.sample(task, seed=seed))

    def _plan(self) -> None:
        seed, index = self._seed, self._index
        self._start("planning", lambda task: self._scene.plan(task, seed=seed, index=index))

    def _plan_live(self, scene: HostedScene) -> None:
        seed, index, stops = self._seed, self._index, scene.stop_count
        self._start("planning live", lambda task: scene.plan_live(task, seed=seed, index=index, stops_before=stops))

    def _vary(self, scene: HostedScene) -> None:
        self._set_index(self._index + 1)
        seed, index = self._seed, self._index
        self._start("randomizing", lambda task: scene.vary(task, seed=seed, index=index))

    def _set_stack(self, value: Any) -> None:
        self._stack = min(max(int(value), 1), MAX_STACK)

    def _show_stack(self, scene: HostedScene) -> None:
        count = self._stack
        self._start("stacking", lambda task: scene.stack(task, count=count))


def _number(name: str, value: int, largest: int, act: Callable[[Any], None], *, least: int = 0) -> Control:
    return Control(id=name, kind="number", label=name, value=value, limits=(least, largest, 1), act=act)
