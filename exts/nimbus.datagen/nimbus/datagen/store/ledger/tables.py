"""Tables of the ledger, each derived from the dataclass of its row."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, TypeVar, get_type_hints

from nimbus.datagen.files.codec import from_plain, parse_json, to_compact_json
from nimbus.datagen.store.ledger.attempt import Attempt
from nimbus.datagen.store.ledger.records import DrawnValues, EpisodeState, EpisodeStatus, Fault, Run, TimeSpan

T = TypeVar("T")
_EMPTY = {tuple: "[]", list: "[]", dict: "{}", type(None): "null"}
_TYPES = {str: "TEXT", EpisodeStatus: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL"}


@dataclass(frozen=True)
class Table(Generic[T]):
    """Table whose columns are the fields of its row; values without an SQLite type are stored as JSON."""

    name: str
    row: type[T]
    key: tuple[str, ...] = ()
    index: str = ""
    """Column with a separate index, by which rows are looked up."""
    order: tuple[str, ...] = ()
    """Columns of an index that yields rows in the order of a walk without sorting."""
    is_later: bool = False
    """True when ledgers of earlier versions lack this table."""
    later: dict[str, str] = field(default_factory=dict)
    """Columns that ledgers of earlier versions lack, with SQL for their default values."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(item.name for item in fields(self.row))  # pyright: ignore[reportArgumentType]

    @cached_property
    def _json(self) -> frozenset[str]:
        types = get_type_hints(self.row)
        return frozenset(name for name in self.columns if types[name] not in _TYPES)

    @cached_property
    def _json_places(self) -> tuple[int, ...]:
        return tuple(place for place, name in enumerate(self.columns) if name in self._json)

    @cached_property
    def _values(self) -> attrgetter[tuple[Any, ...]]:
        return attrgetter(*self.columns)

    def key_of(self, row: T) -> tuple[Any, ...]:
        """Return the key of a row; empty for a table without one."""
        return tuple(getattr(row, name) for name in self.key)

    @property
    def create(self) -> str:
        """SQL statements that create the table."""
        types = get_type_hints(self.row)
        columns = [f"{name} {_TYPES.get(types[name], 'TEXT')} NOT NULL" for name in self.columns]
        key = [f"PRIMARY KEY ({', '.join(self.key)})"] if self.key else []
        made = f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join(columns + key)})"
        # WITHOUT ROWID stores rows in the order of the key, which saves a separate index and a lookup for each row.
        made += " WITHOUT ROWID" if self.key else ""
        indices: dict[str, str] = {f"{self.name}_by_{self.index}": self.index} if self.index else {}
        indices |= {f"{self.name}_in_order": ", ".join(self.order)} if self.order else {}
        for name, sorted_by in indices.items():
            made += f"; CREATE INDEX IF NOT EXISTS {name} ON {self.name} ({sorted_by})"
        return made

    @cached_property
    def insert(self) -> str:
        """SQL statement that adds a row, or replaces one of the same key."""
        marks = ", ".join("?" for _ in self.columns)
        return f"INSERT OR REPLACE INTO {self.name} ({', '.join(self.columns)}) VALUES ({marks})"

    @cached_property
    def select(self) -> str:
        """Start of an SQL statement that reads rows."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"

    def select_with(self, **columns: str) -> str:
        """Return the start of a statement that reads rows, with other SQL in place of some columns."""
        chosen = ", ".join(columns.get(name, name) for name in self.columns)
        return f"SELECT {chosen} FROM {self.name}"

    def values(self, row: T) -> list[Any]:
        """Return the parameters of :attr:`insert`."""
        values = list(self._values(row))
        for place in self._json_places:
            values[place] = to_compact_json(values[place]) if values[place] else _EMPTY[type(values[place])]
        return values

    def parse(self, values: tuple[Any, ...]) -> T:
        """Build a row from a tuple of columns; raises ``ValueError`` for invalid values."""
        named: dict[str, Any] = dict(zip(self.columns, values, strict=True))
        named |= {name: parse_json(named[name]) for name in self._json}
        return from_plain(self.row, named, strict=False)  # SQLite has no Booleans: 0 and 1 are converted


ATTEMPTS = Table(
    "attempts",
    Attempt,
    key=("episode_id", "attempt"),
    index="idx",
    order=("task", "seed", "idx", "variant", "attempt"),
    later={"videos": "'[]'", "drawn": "'{}'", "steps": "'[]'", "grasps": "'[]'", "failure": "'null'"},
)
EPISODES = Table("episodes", EpisodeState, key=("task", "idx", "variant"), later={"task": "''"})
DRAWS = Table("draws", DrawnValues, key=("episode_id", "attempt"), is_later=True)
FAULTS = Table("faults", Fault)
SPANS = Table("spans", TimeSpan)
RUNS = Table("runs", Run, key=("id",), later={"busy": "'{}'"})
TABLES: tuple[Table[Any], ...] = (ATTEMPTS, DRAWS, EPISODES, FAULTS, SPANS, RUNS)
