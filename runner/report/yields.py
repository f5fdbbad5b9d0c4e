"""Yield ledger of the report: rarely kept values, and planned against kept episodes."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nimbus.datagen.analysis.semantic_yields import MEANINGS, SemanticYield
from nimbus.datagen.analysis.significance import wilson
from nimbus.datagen.analysis.yields import Part, YieldRow, Yields
from nimbus.datagen.episode.meaning import LENGTHS
from nimbus.datagen.errors import InputError

_MOST_BARS = 24
_MOST_MEANINGS = 16
"""Largest number of values of a meaning that are shown."""
_MOST_LOOKS = 48
"""Largest number of factors of looks that are shown."""
_FORMULA = re.compile(r"\s*(?:[=@]|[+-].*[=!|(])|[\t\r\n]", re.DOTALL)
"""Beginning of a text that spreadsheets take for a formula, also with signs of full width, once these are plain; ranges
of numbers may begin with a sign."""
_SEPARATOR = re.compile(r"[;\t\r\n]")
"""Characters at which spreadsheets of some countries begin a new cell, even in quotes."""
_CATEGORIES = ("kind", "variant", "class", "rest pose", "cell")
"""Categories that are shown elsewhere, or have too many values for bars."""
COLUMNS = (
    *("factor", "value", "part", "low", "high", "episodes", "kept", "attempts", "successes"),
    *("share", "p_value", "q_value", "flag"),
)


def flag_words(flag: YieldRow) -> str:
    """Describe a value with a low yield in one line."""
    what = f"{flag.factor} {flag.value}: {flag.flag}, {flag.kept} of {flag.episodes} episodes"
    return f"{what} (p = {flag.p_value:.2g}, q = {flag.q_value:.2g})"


@dataclass(frozen=True, kw_only=True)
class KeptChart:
    """Bars of one parameter: as long as the number of planned episodes, filled up to that of kept ones."""

    factor: str
    part: Part
    rows: Sequence[YieldRow]
    """Values, one bar each."""
    axis: str
    """Text below the bars."""


def flag_rows(yields: Yields) -> list[tuple[YieldRow, float, float]]:
    """List the flagged values, each with the 95 % interval of the fraction that is kept."""
    return [(flag, *wilson(flag.kept, flag.episodes)) for flag in yields.flags]


def chart_yields(yields: Yields) -> list[KeptChart]:
    """Chart planned against kept episodes, one chart per parameter, and only the first charts of visual parameters."""
    factors: dict[str, list[YieldRow]] = {}
    for row in yields.rows:
        if row.factor not in _CATEGORIES:
            factors.setdefault(row.factor, []).append(row)
    charts = [_chart(factor, rows) for factor, rows in factors.items()]
    looks = [chart for chart in charts if chart.part == "visual"][:_MOST_LOOKS]
    by_part = {part: [chart for chart in charts if chart.part == part] for part in ("physical", "doing")}
    return [*by_part["physical"], *by_part["doing"], *looks]


def least_kept(yields: Yields) -> list[YieldRow]:
    """List object variants and rest poses, the least kept first."""
    return sorted(yields.of("variant", "rest pose"), key=lambda row: (row.share, -row.episodes))[:16]


def shown_meanings(rows: Sequence[SemanticYield]) -> Iterator[tuple[str, list[SemanticYield], int]]:
    """Yield each meaning, its values, and how many more there are: the least successful first, lengths in order."""
    order = [name for _, name in LENGTHS]
    for meaning in MEANINGS:
        mine = [row for row in rows if row.meaning == meaning]
        if meaning == "length":
            mine.sort(key=lambda row: order.index(row.value) if row.value in order else len(order))
        if mine:
            yield meaning, mine[:_MOST_MEANINGS], max(0, len(mine) - _MOST_MEANINGS)


def _chart(factor: str, rows: Sequence[YieldRow]) -> KeptChart:
    shown = rows[:_MOST_BARS]
    ends = (shown[0].value, shown[-1].value)
    if shown[0].low is not None and shown[-1].high is not None:
        ends = (f"{shown[0].low:.3g}", f"{shown[-1].high:.3g}")
    axis = ends[0] if len(shown) == 1 or ends[0] == ends[1] else f"{ends[0]} … {ends[1]}"
    return KeptChart(factor=factor, part=rows[0].part, rows=shown, axis=axis)


def write_yields(path: Path, yields: Yields, semantic: Sequence[SemanticYield] = ()) -> None:
    """Write a CSV file with a line for each row. Rows of meanings count episodes that succeeded at the first attempt.

    Raises:
        InputError: The file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(COLUMNS)
            for row in yields.rows:
                table.writerow(_cell(getattr(row, column)) for column in COLUMNS)
            for one in semantic:
                numbers = one.episodes, one.kept, one.episodes, one.first, f"{one.share:.6g}"
                table.writerow((_cell(one.meaning), _cell(one.value), "meaning", "", "", *numbers, "", "", ""))
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise InputError(what, where=str(path), instead="give the path of a file, such as yields.csv") from None


def _is_formula(text: str) -> bool:
    return bool(_FORMULA.match(unicodedata.normalize("NFKC", text)))


def _cell(value: object) -> object:
    """Return a cell's content; spreadsheets would run a text of a dataset that looks like a formula."""
    if isinstance(value, str):
        first, *others = _SEPARATOR.split(value)
        if any(map(_is_formula, others)):
            value = " ".join((first, *others))
        return f"'{value}" if _is_formula(value) else value
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
