"""What a task file's ``steps:`` and ``success:`` are made of.

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

Loader, JSON Schema, documentation and editor read the parameters from the class.
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
from nimbus.datagen.tasks.facts import Fact, parse_fact, parse_facts
from nimbus.datagen.tasks.points import normal_form
from nimbus.datagen.tasks.workcell_interface import Workcell, World

if TYPE_CHECKING:
    from nimbus.datagen.plan.motion import MotionPlan

Mark = TypeVar("Mark")

_HANDS = ("keeps", "takes", "puts", "")


class SkillFailure(Exception):
    """A skill cannot be done here; the attempt ends with this reason."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else str(reason))

    @classmethod
    def of_plan(cls, plan: MotionPlan) -> Self:
        """The failure of a skill for which there is no motion."""
        return cls(plan.reason, plan.detail)


class GivenUp(SkillFailure):
    """The steps end the attempt here; no recovery follows."""


@dataclass(frozen=True)
class Reference:
    """Marks a text parameter as a reference, and says what kinds of thing it may name."""

    kinds: tuple[str, ...]
    """Of ``object``, ``fixture`` and ``region``."""
    many: bool = False
    """One thing, a group or a list of things: names in a tuple when the statement is carried out."""
    jointed: bool = False
    """It must have moving parts."""


@dataclass(frozen=True)
class PoseMark:
    """Marks a parameter as a point, which may be given in words."""


ObjectReference = Annotated[str, Reference(("object",))]
"""One movable object: ``item``, ``items[0]``."""
FixtureReference = Annotated[str, Reference(("fixture",))]
"""One thing that stands in the scene: ``tray``, ``bins[item.class]``."""
RegionReference = Annotated[str, Reference(("region",))]
"""A region of the task file."""
PlaceReference = Annotated[str, Reference(("fixture", "region"))]
"""Where an object can be put: a fixture or a region."""
ContainerReference = Annotated[str, Reference(("object", "fixture"))]
"""What can contain something, or be touched: an object or a fixture."""
SupportReference = Annotated[str, Reference(("object", "fixture", "region"))]
"""What something can lie on: an object, a fixture or a region."""
ObjectsReference = Annotated[str | tuple[str, ...], Reference(("object",), many=True)]
"""One object, a group or a list of objects: ``item``, ``items``, ``[items[0], items[1]]``; a tuple of names when the
statement is carried out."""
JointedReference = Annotated[str, Reference(("object",), jointed=True)]
"""An object with moving parts."""
PoseReference = Annotated[tuple[Metres, Metres, Metres] | Annotated[str, AfterValidator(normal_form)], PoseMark()]
"""A point: ``[0.4, 0, 10 cm]`` in the world frame, or in words: ``cup + [0, 0, 10 cm]``, ``above(cup, 10 cm)``,
``between(a, b)``, ``start.center``. When the statement is carried out it is x, y, z in the world frame [m]."""


def _mark(parts: Iterable[Any], kind: type[Mark]) -> Mark | None:
    """The mark among a field's annotations, also inside ``… | None``."""
    for part in parts:
        if isinstance(part, kind):
            return part
        if mark := _mark((*getattr(part, "__metadata__", ()), *get_args(part)), kind):
            return mark
    return None


def each(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """The names that an ``ObjectsReference`` led to."""
    return (names,) if isinstance(names, str) else names


class Statement(StrictModel, ABC):
    """One entry of ``steps:`` or ``success:``; its fields are its parameters."""

    version: ClassVar[int] = 1
    """Raise it when what it does changes: runs of another version do not continue a dataset."""
    main: ClassVar[str] = ""
    """The parameter that the short form fills: ``- pick: item`` is ``- pick: {object: item}``."""
    frames: ClassVar[dict[str, str]] = {}
    """Frames that objects need, by the parameter that names the object; ``{hole}`` stands for its value."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Refuse a class whose main parameter does not exist."""
        if cls.main and cls.main not in cls.model_fields:
            raise TypeError(f"{cls.__name__}.main is '{cls.main}', which is none of its fields")

    @classmethod
    def references(cls) -> dict[str, Reference]:
        """The parameters that name things, and what they may name."""
        return cls._marked(Reference)

    @classmethod
    def poses(cls) -> dict[str, PoseMark]:
        """The parameters that are points."""
        return cls._marked(PoseMark)

    @classmethod
    def _marked(cls, kind: type[Mark]) -> dict[str, Mark]:
        fields = cls.model_fields.items()
        marks = {name: _mark((*field.metadata, field.annotation), kind) for name, field in fields}
        return {name: mark for name, mark in marks.items() if mark}

    @classmethod
    def facts(cls, kind: str) -> tuple[Fact, ...]:
        """The facts that it declares as ``needs``, ``gives`` or ``states``."""
        return tuple(map(parse_fact, getattr(cls, kind)))

    @classmethod
    def reasons(cls) -> list[str]:
        """The reasons of failure that its docstring names, in its order."""
        named = re.findall(r"``(\w+)``", cls.__doc__ or "")
        return [name for name in dict.fromkeys(named) if name in set(Reason)]

    @classmethod
    def summary(cls) -> str:
        """The first line of its docstring."""
        return (cls.__doc__ or "").strip().split("\n")[0]


class Skill(Statement):
    """Something a robot does. References in its parameters are names of the scene's things when it runs."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Facts that must hold before it: ``("held(object)", "open(into)")``. A need over a parameter that is left out
    does not count; settings are those with which the skill that gives it should be written."""

    gives: ClassVar[tuple[str, ...]] = ()
    """Facts that hold after it. A skill that declares none is never proposed."""

    hand: ClassVar[Literal["keeps", "takes", "puts", ""]] = ""
    """What it does to the gripper: leaves it as it is, takes the main object into it, or lets go of the main object,
    which must be in it. Left out: what its facts lead to; empty: not known. Steps that contradict each other are
    found by this before a run."""

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        """Refuse a class with another value of ``hand``, and facts over parameters that it does not have."""
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
    def _declares(cls, kind: str, relation: str) -> bool:
        return any(fact.relation == relation for fact in cls.facts(kind))

    def check_gripper(self, arm: Workcell) -> None:
        """Check the state of the gripper that the skill needs; called before :meth:`run`.

        Raises:
            SkillFailure: It is not empty, or does not hold the main object.
        """
        if arm.held and (self.hand == "takes" or self._declares("needs", "empty_hand")):
            raise SkillFailure(Reason.GRIPPER_NOT_CLEAR, f"{arm.held} is still in the gripper")
        if self.hand == "puts" or self._declares("needs", "held"):
            if arm.held != (wanted := getattr(self, self.main)):
                raise SkillFailure(Reason.MISSED_GRASP, f"{wanted} is not in the gripper")

    @abstractmethod
    def run(self, arm: Workcell) -> None:
        """Do it, in physics.

        Args:
            arm: The arm that does it, in its scene.

        Raises:
            SkillFailure: It cannot be done here.
        """


class Predicate(Statement):
    """A condition of ``success:``, ``if:`` or ``until:``, judged from physics."""

    states: ClassVar[tuple[str, ...]] = ()
    """Facts that hold where it holds: ``("in(object, container)",)``. A planner writes success from these."""

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        """Refuse facts over parameters that it does not have."""
        super().__pydantic_init_subclass__(**settings)
        parse_facts(cls.states, cls.model_fields, where=f"{cls.__name__}.states")

    @abstractmethod
    def failure(self, world: World) -> Outcome | None:
        """Reason and detail with which the condition does not hold, or None when it does."""


class Randomization(StrictModel):
    """Settings of one randomizer: an entry of ``randomize:``, registered as kind ``randomizer``."""

    version: ClassVar[int] = 1
    """Raise it when what it draws changes: runs of another version do not continue a dataset."""

    def seen_from(self, folder: Path) -> Self:
        """The same with relative paths, which begin at the task's folder, seen from the working directory."""
        return self
