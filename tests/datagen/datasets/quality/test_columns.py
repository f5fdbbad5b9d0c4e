from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from nimbus.datagen.datasets.quality.finding import Unreadable
from nimbus.datagen.datasets.quality.tables import check_columns, numbers

WANTED = {"episode_index": "whole", "timestamp": "time", "tasks": "texts"}


def test_columns_of_the_right_types_pass_and_others_are_passed_over() -> None:
    table = pa.table({"episode_index": [0, 1], "timestamp": [0.0, 0.1], "tasks": [["a"], ["b"]], "note": ["x", None]})
    check_columns(table, WANTED)


@pytest.mark.parametrize(
    ("name", "values", "what"),
    [
        ("episode_index", ["0", "1"], "column episode_index has type string, expected whole numbers"),
        ("episode_index", [0.0, 1.0], "has type double, expected whole numbers"),
        ("episode_index", [0, None], "column episode_index has rows without a value"),
        ("timestamp", ["a", "b"], "has type string, expected numbers"),
        ("timestamp", [0.0, float("nan")], "column timestamp has values that are not valid times"),
        ("timestamp", [0.0, float("inf")], "has values that are not valid times"),
        ("tasks", [1, 2], "has type int64, expected lists of texts"),
        ("tasks", [[1], [2]], "expected lists of texts"),
    ],
)
def test_a_column_of_another_type_is_named_with_what_it_holds(name: str, values: list[Any], what: str) -> None:
    with pytest.raises(Unreadable) as caught:
        check_columns(pa.table({name: values}), WANTED)
    assert what in caught.value.what


def test_a_table_without_rows_has_empty_columns() -> None:
    table = pa.table({"state": pa.array([], pa.list_(pa.float32())), "pose": pa.array([], pa.list_(pa.float32(), 3))})
    assert numbers(table, "state").shape == numbers(table, "pose").shape == (0, 0)
