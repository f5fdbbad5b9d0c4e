"""Statements: the entries of a task file's ``steps:`` and ``success:``.

A skill is one file in ``skills/``:

```python
@register("skill", "pick")
class Pick(Skill):
    \"\"\"Grasp an object and lift it.\"\"\"

    main = "object"
    object: ObjectReference = Field(description="What to pick.")
    lift: Metres = Field(0.1, description="How far to lift it.")

    def run(self, arm: Workcell) -> None: ...
```

Loader, JSON Schema, documentation and editor derive the parameters from the class.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator

from nimbus.datagen.episode.trajectory import Outcome, Reason
from nimbus.datagen.files.quantities import Metres
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.objects.model import FlexibleKind
from nimbus.datagen.tasks.facts import Fact, parse_fact, parse_facts
from nimbus.datagen.tasks.points import normal_form
from nimbus.datagen.tasks.workcell_interface import Workcell, World

if TYPE_CHECKING:
    from nimbus.datagen.plan.motion import MotionPlan

Mark = TypeVar("Mark")

_HANDS = ("keeps", "takes", "puts", "")

MOTION_REASONS = (
    Reason.NO_IK,
    Reason.NO_PATH,
    Reason.COLLISION_AT_START,
    Reason.PLAN_REJECTED,
    Reason.TRACKING_ERROR,
    Reason.SLIPPED_IN_TRANSIT,
    Reason.UNSTABLE,
)
"""Reasons with which every skill may fail, because any motion may: it cannot be planned, the arm meets resistance, or
the held object slips. The list of a skill repeats those that have a special meaning for it."""


class SkillFailure(Exception):
    """Raised by a skill that fails; the attempt ends with its reason.

    Args:
        reason: Reason of Nimbus, or one that a skill or a condition declares as ``fails_with``.
        detail: Sentence with the measured values.
    """

    def __init__(self, reason: Reason | str, detail: str = "") -> None:
        self.reason, self.detail = Reason(reason), detail
        super().__init__(f"{reason}: {detail}" if detail else str(reason))

    @classmethod
    def of_plan(cls, plan: MotionPlan) -> Self:
        """Return the failure of a skill for which the planner found no motion."""
        return cls(plan.reason, plan.detail)


class GivenUp(SkillFailure):
    """Raised when the steps give the attempt up; no recovery follows."""


@dataclass(frozen=True)
class Reference:
    """Mark of a text parameter that is a reference, with the types that its target may have."""

    kinds: tuple[str, ...]
    """Types of things: ``object``, ``fixture`` or ``region``."""
    many: bool = False
    """True if the parameter accepts a group or a list of things; several names are a tuple at run time."""
    jointed: bool = False
    """True if the target must have moving parts."""


@dataclass(frozen=True)
class PoseMark:
    """Mark of a parameter that is a point, which may be given in words."""


ObjectReference = Annotated[str, Reference(("object",))]
"""One movable object: ``item``, ``items[0]``."""
FixtureReference = Annotated[str, Reference(("fixture",))]
"""One fixture of the scene: ``tray``, ``bins[item.class]``."""
RegionReference = Annotated[str, Reference(("region",))]
"""A region of the task file."""
PlaceReference = Annotated[str, Reference(("fixture", "region"))]
"""Destination of an object: a fixture or a region."""
ContainerReference = Annotated[str, Reference(("object", "fixture"))]
"""Container, or thing to touch: an object or a fixture."""
SupportReference = Annotated[str, Reference(("object", "fixture", "region"))]
"""Support: an object, a fixture or a region."""
ObjectsReference = Annotated[str | tuple[str, ...], Reference(("object",), many=True)]
"""One object, a group or a list of objects: ``item``, ``items``, ``[items[0], items[1]]``; a tuple of names at run
time."""
JointedReference = Annotated[str, Reference(("object",), jointed=True)]
"""Object with moving parts."""
PoseReference = Annotated[tuple[Metres, Metres, Metres] | Annotated[str, AfterValidator(normal_form)], PoseMark()]
"""Point: ``[0.4, 0, 10 cm]`` in the world frame, or in words: ``cup + [0, 0, 10 cm]``, ``above(cup, 10 cm)``,
``between(a, b)``, ``start.center``. At run time it is x, y, z in the world frame [m]."""


def _mark(parts: Iterable[Any], kind: type[Mark]) -> Mark | None:
    """Return the mark among a field's annotations, even inside ``… | None``."""
    for part in parts:
        if isinstance(part, kind):
            return part
        if mark := _mark((*getattr(part, "__metadata__", ()), *get_args(part)), kind):
            return mark
    return None


def each(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the names behind an ``ObjectsReference`` at run time."""
    return (names,) if isinstance(names, str) else names


class Statement(StrictModel, ABC):
    """Entry of ``steps:`` or ``success:``; its fields are its parameters."""

    version: ClassVar[int] = 1
    """Version of the behavior; it is raised when the behavior changes, and datasets are not continued across
    versions."""
    main: ClassVar[str] = ""
    """Parameter that the short form fills: ``- pick: item`` is ``- pick: {object: item}``."""
    needs_flexible: ClassVar[FlexibleKind] = ""
    """Flexible kind that the object of the main field must be; empty for any kind."""
    frames: ClassVar[dict[str, str]] = {}
    """Frame that an object needs, by the parameter that names the object; ``{hole}`` stands for the value of the
    parameter ``hole``."""

    fails_with: ClassVar[tuple[str, ...]] = ()
    """Reasons of failure of its own, in addition to those of ``Reason``: ``("no_nudge",)``."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Refuse a class whose main parameter does not exist, or with an invalid reason."""
        if cls.main and cls.main not in cls.model_fields:
            raise TypeError(f"{cls.__name__}.main is '{cls.main}', which is not one of its fields")
        if not isinstance(cls.fails_with, tuple):
            raise TypeError(f'{cls.__name__}.fails_with is {cls.fails_with!r}; write a tuple: ("no_nudge",)')
        try:
            for reason in cls.fails_with:
                Reason(reason)
        except ValueError as error:
            raise TypeError(f"{cls.__name__}.fails_with: {error}") from None

    @classmethod
    def references(cls) -> dict[str, Reference]:
        """Return the parameters that name things, with the types that they may have."""
        return cls._marked(Reference)

    @classmethod
    def poses(cls) -> dict[str, PoseMark]:
        """Return the parameters that are points."""
        return cls._marked(PoseMark)

    @classmethod
    def _marked(cls, kind: type[Mark]) -> dict[str, Mark]:
        fields = cls.model_fields.items()
        marks = {name: _mark((*field.metadata, field.annotation), kind) for name, field in fields}
        return {name: mark for name, mark in marks.items() if mark}

    def seen_from(self, folder: Path) -> Self:
        """Return the statement with paths relative to the working directory instead of the task's folder."""
        return self

    @property
    def file_names(self) -> tuple[str, ...]:
        """Paths of the files that the statement reads when it is executed.

        Those of a stored task are not opened unless this user ran it. A statement that reads files overrides this
        property and :meth:`without_files`.
        """
        return ()

    def without_files(self) -> Self:
        """Return the statement without its files, for readers of a foreign task, which do not execute it."""
        return self

    def check_files(self) -> None:
        """Check that the named files can be read; this is called for task files, not for the text of a stored task.

        Raises:
            InputError: A file is missing or invalid.
        """

    @classmethod
    def facts(cls, kind: str) -> tuple[Fact, ...]:
        """Return the facts declared as ``needs``, ``gives`` or ``states``."""
        return tuple(map(parse_fact, getattr(cls, kind)))

    @classmethod
    def reasons(cls) -> list[str]:
        """Return the failure reasons named in the docstring, in order, and its own."""
        known = {*Reason, *cls.fails_with}
        named = (name for name in re.findall(r"``(\w+)``", cls.__doc__ or "") if name in known)
        return list(dict.fromkeys((*named, *cls.fails_with)))

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or "").strip().split("\n")[0]


class Skill(Statement):
    """Action of a robot. References in its parameters are names of the scene's things at run time."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Facts that must hold before the skill: ``("held(object)", "open(into)")``. A fact about an omitted parameter is
    ignored. Settings in a fact, such as ``side=left``, become parameters of the proposed step that establishes it."""

    gives: ClassVar[tuple[str, ...]] = ()
    """Facts that hold after the skill. A skill without any is never proposed."""

    hand: ClassVar[Literal["keeps", "takes", "puts", ""]] = ""
    """Effect on the gripper: ``keeps`` its content, ``takes`` the main object, or ``puts`` down the main object, which
    must be in the gripper. By default the effect follows from the facts; empty means unknown. The effects reveal
    contradictions between steps before a run."""

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        """Refuse a class with an invalid value of ``hand``, or with facts about parameters that it does not have."""
        super().__pydantic_init_subclass__(**settings)
        if cls.hand not in _HANDS:
            raise TypeError(f"{cls.__name__}.hand is {cls.hand!r}; write {', '.join(filter(None, _HANDS))} or ''")
        for name in ("needs", "gives"):
            parse_facts(getattr(cls, name), cls.model_fields, where=f"{cls.__name__}.{name}")
        if not cls.hand:
            if cls._declares("gives", "held"):
                cls.hand = "takes"
            elif cls._declares("gives", "empty_hand") and cls._declares("needs", "held"):
                cls.hand = "puts"

    @classmethod
    def reasons(cls) -> list[str]:
        """Return the failure reasons named in the docstring, then those of :meth:`check_gripper`."""
        named = super().reasons()
        if cls._needs_empty_gripper():
            named.append(Reason.GRIPPER_NOT_CLEAR)
        if cls._needs_object_in_gripper():
            named.append(Reason.MISSED_GRASP)
        return list(dict.fromkeys(named))

    @classmethod
    def _needs_empty_gripper(cls) -> bool:
        return cls.hand == "takes" or cls._declares("needs", "empty_hand")

    @classmethod
    def _needs_object_in_gripper(cls) -> bool:
        return cls.hand == "puts" or cls._declares("needs", "held")

    @classmethod
    def _declares(cls, kind: str, relation: str) -> bool:
        return any(fact.relation == relation for fact in cls.facts(kind))

    def check_gripper(self, arm: Workcell) -> None:
        """Check the state of the gripper that the skill needs; this is called before :meth:`run`.

        Raises:
            SkillFailure: The gripper is not empty, or does not hold the main object.
        """
        if arm.held and self._needs_empty_gripper():
            raise SkillFailure(Reason.GRIPPER_NOT_CLEAR, f"{arm.held} is still in the gripper")
        if self._needs_object_in_gripper():
            if arm.held != (wanted := getattr(self, self.main)):
                raise SkillFailure(Reason.MISSED_GRASP, f"{wanted} is not in the gripper")

    @abstractmethod
    def run(self, arm: Workcell) -> None:
        """Execute the skill in physics.

        Args:
            arm: Arm that executes it, in its scene.

        Raises:
            SkillFailure: The skill fails.
        """


class Predicate(Statement):
    """Condition of ``success:``, ``if:`` or ``until:``, evaluated on the state of physics."""

    states: ClassVar[tuple[str, ...]] = ()
    """Facts that are equivalent to the condition: ``("in(object, container)",)``. Proposed tasks derive their success
    conditions from them."""

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        """Refuse facts about parameters that the class does not have."""
        super().__pydantic_init_subclass__(**settings)
        parse_facts(cls.states, cls.model_fields, where=f"{cls.__name__}.states")

    @abstractmethod
    def failure(self, world: World) -> Outcome | None:
        """Return reason and detail of the failure if the condition does not hold; None if it holds."""


class Randomization(StrictModel):
    """Settings of one randomizer: an entry of ``randomize:``, registered as kind ``randomizer``."""

    version: ClassVar[int] = 1
    """Version of the draws; it is raised when the draws change, and datasets are not continued across versions."""

    def seen_from(self, folder: Path) -> Self:
        """Return the settings with paths relative to the working directory instead of the task's folder."""
        return self

    @property
    def picture_places(self) -> tuple[str, ...]:
        """Paths of the images, or folders of images, that the settings name: those in ``folder`` and ``textures``.

        The content of these images is recorded with an episode. A randomizer that names images in other fields, or
        something else in these, overrides this property.
        """
        folder, files = getattr(self, "folder", ""), getattr(self, "textures", ())
        return (*([folder] if folder else []), *files)

    @property
    def library_names(self) -> tuple[str, ...]:
        """Names or paths of the object libraries that the settings name, from ``libraries``."""
        return tuple(getattr(self, "libraries", ()))
