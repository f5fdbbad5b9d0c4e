"""Quantities in files: numbers in SI units, or texts with a unit such as ``5 cm``, ``30 deg`` or ``80 g``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Annotated, Any, TypeVar, cast, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

_TEXT = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\s\d].*?)\s*")
_LONGEST = 100
"""Longest text that is matched [characters]: the time grows with the square of its length."""
_BOUNDS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
"""Names of bounds in JSON Schema, by pydantic's names; the schema of a validated float keeps pydantic's names."""


@dataclass(frozen=True)
class Quantity:
    """Marker of a float that is a quantity, with its name, an example, and the factors of its units to SI."""

    meaning: str
    example: str
    units: tuple[tuple[str, float], ...]

    def parse(self, value: Any) -> Any:
        """Convert a text with a unit to SI; numbers are unchanged."""
        if isinstance(value, str) and len(value) <= _LONGEST and (match := _TEXT.fullmatch(value)):
            value = float(match[1]) * factor if (factor := dict(self.units).get(match[2])) else value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
        units = ", ".join(unit for unit, _ in self.units)
        expected = f"{self.meaning} such as {self.example} (units: {units})"
        raise PydanticCustomError("quantity", "expected {expected_quantity}", {"expected_quantity": expected})

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a finite float, after conversion of the unit."""
        number = handler(source)  # already has the field's bounds if pydantic has applied them
        strictly = {"strict": True, "allow_inf_nan": False} if number["type"] == "float" else {}
        return core_schema.no_info_before_validator_function(self.parse, cast(CoreSchema, {**number, **strictly}))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema of a number, or of text with one of the units."""
        number = {_BOUNDS.get(keyword, keyword): rule for keyword, rule in handler(schema).items()}
        return {"anyOf": [number, {"type": "string", "pattern": self.pattern}]}

    @property
    def pattern(self) -> str:
        """Regular expression of a text with one of its units."""
        units = "|".join(re.escape(unit) for unit, _ in self.units)
        return rf"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*({units})\s*$"

    @property
    def unit(self) -> str:
        """Unit of a bare number; empty without one."""
        name, factor = self.units[0]
        return name if factor == 1.0 else ""


LENGTH = Quantity("a length", "0.05 or '5 cm'", (("m", 1.0), ("cm", 0.01), ("mm", 0.001)))
RATIO = Quantity("a ratio", "0.33 or '33 %'", (("%", 0.01),))

Metres = Annotated[float, LENGTH]
Radians = Annotated[float, Quantity("an angle", "0.5 or '30 deg'", (("rad", 1.0), ("deg", math.pi / 180)))]
Seconds = Annotated[float, Quantity("a time", "0.5 or '500 ms'", (("s", 1.0), ("ms", 0.001)))]
Kilograms = Annotated[float, Quantity("a mass", "0.08 or '80 g'", (("kg", 1.0), ("g", 0.001)))]
Kelvin = Annotated[float, Quantity("a color temperature", "4000 or '4000 K'", (("K", 1.0),))]
Hertz = Annotated[float, Quantity("a rate", "15 or '15 Hz'", (("Hz", 1.0),))]
Ratio = Annotated[float, RATIO]
Speed = Annotated[float, Quantity("a speed", "0.6 or '60 cm/s'", (("m/s", 1.0), ("cm/s", 0.01)))]
TurnRate = Annotated[float, Quantity("a turn rate", "1.2 or '70 deg/s'", (("rad/s", 1.0), ("deg/s", math.pi / 180)))]

_KINDS: tuple[Quantity, ...] = tuple(
    get_args(kind)[1] for kind in (Metres, Radians, Seconds, Kilograms, Kelvin, Hertz, Ratio)
)
_UNITS = {unit: factor for kind in _KINDS for unit, factor in kind.units}
_BY_PATTERN = {kind.pattern: kind for kind in _KINDS}

T = TypeVar("T")


@dataclass(frozen=True)
class _Interval:
    """Marker of a pair ``[low, high]``; a single value stands for both."""

    def pair(self, value: Any) -> Any:
        return (value, value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else value

    def check(self, value: Any) -> Any:
        low, high = value
        if low > high:
            context = {"low": f"{low:g}", "high": f"{high:g}", "instead": f"write [{high:g}, {low:g}]"}
            raise PydanticCustomError("upside_down", "the range is reversed: {low} is above {high}", context)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        paired = core_schema.no_info_before_validator_function(self.pair, handler(source))
        return core_schema.no_info_after_validator_function(self.check, paired)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        pair = handler(schema)
        return {"anyOf": [pair["prefixItems"][0], pair]}


Range = Annotated[tuple[T, T], _Interval()]
"""``Range[Metres]`` and so on: ``[low, high]``, or one value for both."""


def in_unit_of(text: str, bound: float, *, most: bool) -> str:
    """Format an SI bound in the unit of a text such as ``179 deg``; empty without a unit.

    Args:
        text: Text as written.
        bound: The bound [SI].
        most: True to round down, for an upper bound; False to round up.
    """
    match = _TEXT.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        return ""
    round_to = Context(prec=4, rounding=ROUND_FLOOR if most else ROUND_CEILING)
    value = float(round_to.create_decimal(f"{bound / _UNITS[match[2]]:.12g}"))
    return f"{value:g} {match[2]}"


def quantity_of(schema: dict[str, Any]) -> Quantity | None:
    """Return the quantity whose text a JSON Schema describes, or None."""
    return _BY_PATTERN.get(schema.get("pattern", ""))
