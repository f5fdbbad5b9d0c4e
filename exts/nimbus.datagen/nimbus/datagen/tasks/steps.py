"""Language of ``steps:`` and ``success:``: statements, and composites of them such as loops.

A composite is one file in ``control_flow/``, which defines its keys and runs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias

from nimbus.datagen import registry
from nimbus.datagen.episode.trajectory import Outcome
from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.strict_yaml import Document, Keys, dotted
from nimbus.datagen.tasks.references import GroupRef
from nimbus.datagen.tasks.statements import SkillFailure, Statement


@dataclass(frozen=True)
class Scope:
    """Names at one point of the steps."""

    names: Mapping[str, Any]
    """Meaning of each name, from ``references.build_environment`` and the enclosing loops."""
    choices: Mapping[str, int] = field(default_factory=dict)
    """Results of the episode's draws, by address."""
    inside: tuple[str, ...] = ()
    """Names of the current members of the enclosing loops, outermost first."""
    tried: Any = ()
    """Steps that failed, in a recovery."""
    reason: Any = None
    """Failure of the tried steps, in a recovery."""

    def bind(self, variable: str, member: Any) -> Scope:
        """Return the scope with a further name."""
        return replace(self, names={**self.names, variable: member}, inside=(*self.inside, member.name))

    def members(self, group: str) -> tuple[Any, ...]:
        """Return the members of a group; empty for a group without members in this episode."""
        found = self.names.get(group, GroupRef(group, ()))
        return found.members if isinstance(found, GroupRef) else (found,)

    def choice(self, address: str, count: int) -> int:
        """Return the result of a draw among a number of things.

        Raises:
            InputError: The layout, which may come from a foreign file, has no such result.
        """
        found = self.choices.get(address)
        if not isinstance(found, int) or not 0 <= found < count:
            what = f"the layout of the episode has no choice for '{address}'"
            raise InputError(what, where="layout", instead="run 'nimbus verify' for details")
        return found

    def address(self, keys: Keys | str) -> str:
        """Return the address of a draw: its location or text in the file, and the iteration of each enclosing loop."""
        return " ".join((keys if isinstance(keys, str) else dotted(keys), *self.inside))


def stored_choices(drawn: Mapping[str, Any]) -> Mapping[str, int]:
    """Return the drawn choices of a physical layout, for :class:`Scope`; none if they are not a mapping."""
    found = drawn.get("choices")
    return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True)
class Step:
    """Statement with its location in the file."""

    name: str
    statement: Any
    """``Skill`` or ``Predicate``."""
    keys: Keys
    kind: str
    """Kind that it is registered as: ``skill`` or ``predicate``."""

    @property
    def target(self) -> str:
        """Name of the statement's only thing; empty if it has several or none."""
        main = type(self.statement).main
        value = getattr(self.statement, main) if main else ""
        return value if isinstance(value, str) else ""

    def canonical(self) -> Any:
        """Return plain data that are the same for every way of writing the step."""
        # A parameter that a later version of Nimbus adds defaults to None, so that the hash of older tasks is
        # unchanged.
        return {self.name: self.statement.model_dump(mode="json", exclude_none=True)}


class Judge(Protocol):
    """Interface through which composites evaluate the conditions inside them."""

    def failure(self, conditions: Steps, scope: Scope) -> Outcome | None:
        """Return the first condition that does not hold; None when all hold."""
        ...


class Performer(Judge, Protocol):
    """Interface through which composites run the steps and conditions inside them."""

    def do(self, steps: Steps, scope: Scope) -> None:
        """Run steps in sequence.

        Raises:
            SkillFailure: A step fails.
        """
        ...

    def attempt(self, steps: Steps, scope: Scope) -> SkillFailure | None:
        """Run steps, and return a failure that can be recovered from."""
        ...

    def regain(self) -> None:
        """Prepare the arm to continue after a failure."""
        ...

    def together(self, bodies: Mapping[str, Steps], scope: Scope) -> None:
        """Run the steps of several arms, by name, at the same time.

        Raises:
            SkillFailure: The first arm's failure; the other arms are stopped.
        """
        ...


class Composite(ABC):
    """Combination of steps or conditions; it is registered as kind ``composite``."""

    version: ClassVar[int] = 1
    """Version of the behavior; it is raised when the behavior changes, and datasets are not continued across
    versions."""
    kinds: ClassVar[tuple[str, ...]] = ("skill",)
    """Kinds of its entries: ``skill`` in ``steps:``, ``predicate`` in ``success:``."""
    words: ClassVar[tuple[str, ...]] = ()
    """Keys of the combination in a task file; the first one names it."""
    flow: ClassVar[Literal["loop", "branches", "guarded", "unknown"]] = "unknown"
    """Execution of the blocks, which the check for contradictions uses: repeated, one of several, guarded by
    conditions, or unknown."""
    variable: str = ""
    """Name that is bound to a member of ``group``; empty if the composite binds none."""
    group: str = ""
    arms: tuple[str, ...] = ()
    """Names of the robot's arms that the composite needs."""
    keys: Keys

    @classmethod
    def claims(cls, entry: Any) -> bool:
        """Return True if an entry of the file is of this type."""
        return isinstance(entry, dict) and next(iter(entry), None) == cls.words[0]

    @classmethod
    @abstractmethod
    def parse(cls, reader: StepParser, keys: Keys, entry: Any) -> Self:
        """Parse the entry at ``keys``."""

    @classmethod
    @abstractmethod
    def schema(cls, block: dict[str, Any], conditions: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of an entry, given the schemas of a block of steps and of a block of conditions."""

    @abstractmethod
    def canonical(self) -> Any:
        """Return plain data that are the same for every way of writing the composite."""

    @abstractmethod
    def blocks(self) -> tuple[Steps, ...]:
        """Return its blocks."""

    def draws(self, scope: Scope) -> tuple[str, list[float]] | None:
        """Return the draw that the composite needs in an episode, if any: address in ``scope.choices``, and weights."""
        return None

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """Yield the scope of each execution of its blocks in sequence."""
        yield scope

    def perform(self, performer: Performer, scope: Scope) -> None:
        """Run the steps; composites with the kind ``skill`` implement this."""
        raise TypeError(f"{type(self).__name__} is only allowed among conditions")

    def failure(self, judge: Judge, scope: Scope) -> Outcome | None:
        """Return the failure, or None if the conditions hold; composites with the kind ``predicate`` implement this."""
        raise TypeError(f"{type(self).__name__} is only allowed among steps")


Steps: TypeAlias = tuple[Step | Composite, ...]


def parse_steps(
    document: Document, keys: Keys, data: Any, *, kind: str, folder: Path = Path(), opens: bool = True
) -> Steps:
    """Read a list of statements.

    Args:
        document: The task file.
        keys: Location of the list in it.
        data: The list.
        kind: Kind that the names are registered as: ``skill`` or ``predicate``.
        folder: Folder that relative paths start from.
        opens: False for statements that open no files.

    Raises:
        InputError: There is an unknown name or a wrong parameter, or the value is not a list.
    """
    return StepParser(document, kind, folder=folder, opens=opens).steps(keys, data)


@dataclass(frozen=True)
class StepParser:
    """Parser of a task file's steps or conditions."""

    document: Document
    kind: str
    recovering: bool = False
    """True within ``recover:``."""
    folder: Path = Path()
    """Folder that relative paths start from."""
    opens: bool = True
    """False for statements that open no files."""

    def error(self, keys: Keys, what: str, *, instead: str = "", at_key: bool = False) -> InputError:
        """Return an error about one field of the file, ready to raise."""
        return self.document.error(keys, what, instead=instead, at_key=at_key)

    def steps(self, keys: Keys, data: Any) -> Steps:
        """Parse a list."""
        if not isinstance(data, tuple) or not data:
            instead = f"begin each with '- ' and the name of a {self.kind}"
            raise self.error(keys, "expected a list of steps", instead=instead)
        return tuple(self._entry((*keys, index), entry) for index, entry in enumerate(data))

    def block(self, keys: Keys, data: Any) -> Steps:
        """Parse a list, or a single entry."""
        return self.steps(keys, data) if isinstance(data, tuple) else (self._entry(keys, data),)

    def fields(self, keys: Keys, entry: dict[str, Any], known: Collection[str], *, needed: Collection[str]) -> None:
        """Check the keys of a composite."""
        for key in entry:
            if key not in known:
                raise self.error((*keys, key), f"unknown key '{key}'", instead=suggest(key, known), at_key=True)
        for key in needed:
            if key not in entry:
                first = next(iter(entry))
                raise self.error((*keys, first), f"'{key}' is missing", instead=f"add '{key}: …'", at_key=True)

    def count(self, keys: Keys, value: Any) -> int:
        """Parse a number of repetitions."""
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 100:
            raise self.error(keys, f"expected a whole number from 1 to 100, found {value!r}")
        return value

    def _entry(self, keys: Keys, entry: Any) -> Step | Composite:
        for name in registry.names("composite"):
            composite: type[Composite] = registry.lookup("composite", name)
            if not composite.claims(entry):
                continue
            if self.kind not in composite.kinds:
                place = "steps" if self.kind == "predicate" else "conditions"
                raise self.error(keys, f"'{composite.words[0]}' is only allowed among {place}")
            return composite.parse(self, keys, entry)
        if isinstance(entry, str):
            return Step(entry, self._statement(keys, entry, {}), keys, self.kind)
        if not isinstance(entry, dict) or len(entry) != 1:
            what = "expected one name, or one 'name: parameters'"
            # YAML splits unquoted text in flow style at its comma: {move: above(cup, 10 cm)}
            cut = isinstance(entry, dict) and any(
                value is None and key[-1:] in (")", "]") for key, value in entry.items()
            )
            instead = "put text with commas or brackets in quotes" if cut else "begin every step with its own '- '"
            raise self.error(keys, what, instead=instead)
        (key, value), *_ = entry.items()
        inside = (*keys, key)
        if key.split()[0:1] == ["for"]:
            raise self.error(inside, f"'{key}' is not a loop", instead="write 'for item in items:'", at_key=True)
        return Step(key, self._statement(inside, key, value), inside, self.kind)

    def _statement(self, keys: Keys, name: str, value: Any) -> Statement:
        if name not in registry.names(self.kind):
            known = (*registry.names(self.kind), *_words(self.kind))
            raise self.error(keys, f"unknown {self.kind} '{name}'", instead=suggest(name, known), at_key=True)
        model: type[Statement] = registry.lookup(self.kind, name)
        if not isinstance(value, dict):
            if not model.main:
                what = f"'{name}' takes no value" if not model.model_fields else f"'{name}' needs named parameters"
                raise self.error(keys, what, instead=f"known: {', '.join(model.model_fields) or 'none'}")
            # An error in the value of the short form is located at the value of the statement itself.
            value = {model.main: value}
        statement = self.document.validate(model, data=value, at=keys).seen_from(self.folder)
        return statement if self.opens else statement.without_files()


def _words(kind: str) -> list[str]:
    """Return the first keywords of the composites."""
    composites = [registry.lookup("composite", name) for name in registry.names("composite")]
    return [composite.words[0] for composite in composites if kind in composite.kinds and composite.words]


def composites(steps: Steps) -> Iterator[Composite]:
    """Yield every composite, outer ones first."""
    for step in steps:
        if isinstance(step, Composite):
            yield step
            for block in step.blocks():
                yield from composites(block)


def walk(steps: Steps, *, loops: tuple[Composite, ...] = ()) -> Iterator[tuple[Step, tuple[Composite, ...]]]:
    """Yield every step and condition, with the enclosing composites that bind a name, outermost first."""
    for step in steps:
        if isinstance(step, Step):
            yield step, loops
            continue
        for block in step.blocks():
            yield from walk(block, loops=(*loops, step) if step.variable else loops)
