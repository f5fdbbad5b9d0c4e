"""Do: repeat a demonstrated motion on a thing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import PrivateAttr, field_serializer

from nimbus.datagen.execute.toolkit import DemonstratedMotion, find_demonstration, read_demonstration
from nimbus.datagen.plugin import Field, InputError, Reference, Skill, Workcell, register


@register("skill", "do")
class Do(Skill):
    """Repeat a demonstrated motion on a thing; ``nimbus multiply`` cuts these motions from demonstrations.

    The motion is transformed with the thing, and the path to its start is planned. Among the takes that the arms can
    follow, the one whose motion changes least is repeated; the choice among similar takes is random. Fails with
    ``no_ik`` when no take is in reach, with ``no_grasp`` when the thing lacks the demonstrated part, or with
    ``missed_grasp``, ``slipped_at_lift``, ``gripper_not_clear``, ``not_held`` or ``tracking_error``.
    """

    version: ClassVar[int] = 2
    main = "on"
    on: Annotated[str, Reference(("object", "fixture", "region"))] | None = Field(
        None, description="Thing in whose frame the motion is given; default: the world."
    )
    demo: str = Field(
        min_length=1, description="Demonstration: NAME of NAME.demo.json beside the task file, or a path."
    )

    _is_closed: bool = PrivateAttr(default=False)
    """True for a step of a foreign task, whose demonstration is not opened."""

    @field_serializer("demo")
    def _identity(self, demo: str) -> str:
        """Return the hash of the demonstration, which represents it in the hash of a task."""
        if self._is_closed:
            return "missing demonstration"
        try:
            return f"demonstration {read_demonstration(demo).content_hash()}"
        except InputError:
            return "missing demonstration"

    def seen_from(self, folder: Path) -> Self:
        """Return the skill with its demonstration's path relative to the working directory."""
        return self.model_copy(update={"demo": find_demonstration(self.demo, folder)})

    @property
    def file_names(self) -> tuple[str, ...]:
        """Path of the demonstration."""
        return (self.demo,)

    def without_files(self) -> Self:
        """Return the step with its demonstration closed."""
        closed = self.model_copy()
        closed._is_closed = True
        return closed

    def check_files(self) -> None:
        """Check that the demonstration can be read, and that the step names the thing on which a hand closes."""
        if read_demonstration(self.demo).closes_on_thing and self.on is None:
            what, instead = "closes a hand on a thing, and the step names none", "add 'on: NAME' to the step"
            raise InputError(what, where=self.demo, instead=instead)

    def run(self, arm: Workcell) -> None:
        """Choose a take, reach its start and repeat it."""
        DemonstratedMotion(arm, read_demonstration(self.demo), self.on or "").run()
