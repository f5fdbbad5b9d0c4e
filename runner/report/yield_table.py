"""The yield ledger as a table: what was tried and what was kept, a row for every value."""

from __future__ import annotations

import csv
from pathlib import Path

from nimbus.datagen.analysis.yields import Yields
from nimbus.datagen.errors import InputError

COLUMNS = (
    *("factor", "value", "part", "low", "high", "episodes", "kept", "attempts", "successes"),
    *("share", "p_value", "q_value", "flag"),
)


def write_yields(path: Path, yields: Yields) -> None:
    """Write a CSV file, a line for each row.

    Raises:
        InputError: It cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(COLUMNS)
            for row in yields.rows:
                table.writerow(_cell(getattr(row, column)) for column in COLUMNS)
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise InputError(what, where=str(path), instead="give the path of a file, such as yields.csv") from None


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else value
