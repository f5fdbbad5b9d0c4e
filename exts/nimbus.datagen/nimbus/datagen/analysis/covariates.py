"""What may decide whether an attempt is kept, read from its row in the ledger: by factor, its values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from nimbus.datagen.store.ledger.attempt import Attempt

Values = dict[str, list[str | float]]
"""By factor: text of a category, or a number that belongs into a bin."""

CELL = 0.1
"""[m] Side of a cell of a region."""
_OWN = {"kind", "variant", "rest_pose", "x", "y"}
"""What is drawn for an object and has a factor of its own."""


def physical_factors(attempt: Attempt) -> Values:
    """What was drawn before anything moved, and can decide the outcome; the general before the particular."""
    values: Values = {}
    for item in attempt.objects:
        _add(values, "class", item.get("class", ""))
        _add(values, "kind", item["kind"])
        _add(values, "variant", f"{item['kind']} {item['variant']}")
        _add(values, "rest pose", f"{item['kind']} {item.get('rest_pose', '')}")
        if "x" in item and "y" in item:
            _add(values, "cell", cell_name(float(item["x"]), float(item["y"])))
    _add(values, "objects", float(len(attempt.objects)))
    _add_drawn(values, attempt, "physical")
    return values


def visual_factors(attempt: Attempt) -> Values:
    """What was drawn of the looks: it is shown, and decides no outcome."""
    values: Values = {}
    _add_drawn(values, attempt, "visual")
    return values


def step_of(text: str) -> str:
    """A step without the number of its object: ``pick items`` for ``pick items_0``."""
    skill, _, target = text.partition(" ")
    stem, _, number = target.rpartition("_")
    return f"{skill} {stem if number.isdigit() and stem else target}".rstrip()


def failed_step(attempt: Attempt) -> str:
    """The step in which a failed attempt ended; ``success`` where its end was not as it should be."""
    if attempt.phase.startswith("success"):
        return "success"
    return step_of(attempt.steps[-1]) if attempt.steps else attempt.phase.split(" ")[0] or "start"


def cell_name(x: float, y: float) -> str:
    """The cell of a point, by its lower corner."""
    low = (math.floor(value / CELL + 1e-9) * CELL + 0.0 for value in (x, y))
    return "x {:.1f} y {:.1f}".format(*low)


def _add(values: Values, factor: str, value: str | float) -> None:
    if value != "" and value not in (known := values.setdefault(factor, [])):
        known.append(value)


def _add_drawn(values: Values, attempt: Attempt, part: str) -> None:
    names = {item["name"] for item in attempt.objects}
    drawn = attempt.drawn.get(part, {})
    for path, value in _leaves(drawn if isinstance(drawn, Mapping) else {}):
        if path[0] == "objects" and (path[-1] in _OWN or path[-1] == "count"):
            continue
        factor = ".".join(key for key in path if key not in names)
        _add(values, factor, value)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str | float]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path[:-1], f"{path[-1]}[{index}]"))
    elif isinstance(value, bool | str):
        yield path, str(value)
    elif isinstance(value, int | float):
        yield path, float(value)
