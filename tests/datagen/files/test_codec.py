from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nimbus.datagen.files.codec import flatten, from_json, from_plain, parse_json, restore, to_compact_json, to_json
from tests.support.synthetic import make_layout


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Mark:
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if "bad" in self.tags:
            raise ValueError("tag 'bad' is not allowed")


@dataclass(frozen=True, kw_only=True)
class Point:
    position: tuple[float, float]
    color: Color = Color.RED
    drawn: dict[str, Any] = field(default_factory=dict)
    mark: Mark | None = None


@dataclass(frozen=True, kw_only=True)
class Path:
    points: tuple[Point, ...]
    times: NDArray[np.float64]
    counts: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    start: NDArray[np.float64] | None = None
    name: str = ""


NUMBERS = st.floats() | st.integers(-(2**63), 2**63 - 1)
PLAIN = st.none() | st.booleans() | NUMBERS | st.text()
ANY = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
TAGS = st.lists(st.text().filter(lambda text: text != "bad")).map(tuple)
POINTS = st.builds(
    Point,
    position=st.tuples(NUMBERS, NUMBERS),
    color=st.sampled_from(Color),
    drawn=st.dictionaries(st.text(), ANY, max_size=3),
    mark=st.none() | st.builds(Mark, tags=TAGS),
)
FLOATS = st.lists(st.floats(), max_size=4).map(lambda row: np.array(row, dtype=np.float64))
INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(lambda row: np.array(row, dtype=np.int64))
PATHS = st.builds(
    Path,
    points=st.lists(POINTS, max_size=3).map(tuple),
    times=FLOATS,
    counts=st.dictionaries(st.text(), INTEGERS, max_size=2),
    start=st.none() | FLOATS,
    name=st.text(),
)


@given(PATHS)
def test_flatten_and_restore_keep_every_bit(path: Path) -> None:
    plain, arrays = flatten(path)
    restored = restore(Path, json.loads(json.dumps(plain)), arrays, given={})
    assert repr(replace(restored, times=path.times, counts={}, start=None)) == repr(
        replace(path, counts={}, start=None)
    )
    assert restored.times.tobytes() == path.times.tobytes()
    assert {name: row.tolist() for name, row in restored.counts.items()} == {
        name: row.tolist() for name, row in path.counts.items()
    }


@given(POINTS)
def test_text_of_a_decoded_value_is_equal(point: Point) -> None:
    decoded = from_json(Point, to_json(point))
    assert to_json(from_json(Point, to_json(decoded))) == to_json(decoded)
    assert type(decoded.position[0]) is float and decoded.color is point.color


@given(ANY)
def test_compact_text_holds_the_same_values(value: Any) -> None:
    assert repr(parse_json(to_compact_json(value))) == repr(parse_json(json.dumps(value)))


def test_text_has_the_digits_of_python() -> None:
    value = {"b": [1e-9, 1e16, 0.1, 1, float("nan")], "a": "ü", "c": np.float64(2.0), "d": np.arange(2)}
    assert to_json(value) == '{"a": "ü", "b": [1e-09, 1e+16, 0.1, 1, NaN], "c": 2.0, "d": [0, 1]}'
    text = '{"color": "red", "drawn": {}, "mark": null, "position": [0, 1.5]}'
    assert to_json(Point(position=(0, 1.5))) == text


def test_fields_of_a_later_version_are_ignored_in_files() -> None:
    assert from_json(Point, '{"position": [1, 2], "further": 3}') == Point(position=(1.0, 2.0))


def test_defaults_are_set_in_the_decoded_value() -> None:
    point = from_json(Point, '{"position": [1, 2], "mark": {}}')
    assert vars(point) == vars(Point(position=(1.0, 2.0), mark=Mark())) and vars(point.mark) == {"tags": ()}
    plain, _ = flatten(point)
    assert restore(Point, plain, [], given={}) == point and parse_json(to_compact_json(point)) == parse_json(
        to_json(point)
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "Expecting value"),
        ('{"position": [1', "Expecting"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "missing required field `position`"),
        ('{"position": [1]}', "position: Expected `array` of length 2, got 1"),
        ('{"position": [1, 2, 3]}', "position: Expected `array` of length 2, got 3"),
        ('{"position": [1, "2"]}', r"position\[1\]: Expected `float`, got `str`"),
        ('{"position": [1, true]}', r"position\[1\]: Expected `float`, got `bool`"),
        ('{"position": [1, 2], "color": "green"}', "color: Invalid enum value 'green'"),
        ('{"position": [1, 2], "mark": {"tags": ["bad"]}}', "mark: tag 'bad' is not allowed"),
    ],
)
def test_text_that_does_not_fit_is_refused(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        from_json(Point, text)


def test_truth_from_sqlite_needs_the_lax_form() -> None:
    @dataclass
    class Row:
        done: bool

    assert from_plain(Row, {"done": 1}, strict=False) == Row(done=True)
    with pytest.raises(ValueError, match="done: Expected `bool`, got `int`"):
        from_plain(Row, {"done": 1})


def test_value_without_a_plain_form_is_refused() -> None:
    with pytest.raises(TypeError, match="set is not a plain JSON value"):
        to_json({"a": {1}})


ONE = Path(points=(Point(position=(1, 2.0)),), times=np.zeros(3))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"name": None}, "name: Expected `str`, got `null`"),
        ({"further": 1}, "unknown field `further`"),
        ({"points": [{"position": [1, 2]}]}, r"points\[0\]: Object missing required field"),
        ({"times": {"__array__": 1}}, "times: expected an array of float64, found dict"),
        ({"times": {"__array__": True}}, "times: expected an array"),
        ({"times": [0.0]}, "times: expected an array of float64, found list"),
        ({"start": {"__array__": 0}}, "expected an array"),
        ({"counts": {"a": {"__array__": 0}}}, "expected an array of int64, found float64|found dict"),
    ],
)
def test_plain_values_that_do_not_fit_are_refused(change: dict[str, Any], what: str) -> None:
    plain, arrays = flatten(ONE)
    with pytest.raises(ValueError, match=what):
        restore(Path, plain | change, arrays, given={})


def test_arrays_that_no_field_has_are_refused() -> None:
    plain, arrays = flatten(ONE)
    with pytest.raises(ValueError, match="arrays without a field: 1"):
        restore(Path, plain, [*arrays, np.zeros(1)], given={})


def test_an_array_is_no_dictionary() -> None:
    """A server may send one, which msgspec takes for a dictionary."""
    with pytest.raises(ValueError, match="found an array instead of a dictionary"):
        from_plain(dict[str, int], np.zeros(3))


def test_arrays_among_plain_values_become_lists() -> None:
    point = Point(position=(np.float64(1.0), 2.0), drawn={"size": np.arange(2), "flag": np.bool_(True)})
    plain, arrays = flatten(replace(ONE, points=(point,)))
    restored = restore(Path, plain, arrays, given={}).points[0]
    assert restored.drawn == {"size": [0, 1], "flag": True} and to_json(restored) == to_json(point)


def test_wrong_values_are_refused_when_flattened() -> None:
    with pytest.raises(TypeError, match="times: expected an array of float64, found float32"):
        flatten(replace(ONE, times=cast(Any, np.zeros(3, np.float32))))
    with pytest.raises(TypeError, match="name: Expected `str`, got `int`"):
        flatten(replace(ONE, name=cast(Any, 3)))


def test_integers_in_a_layout_stay_integers() -> None:
    camera = replace(make_layout().visual.cameras[0], vertical_fov=1, width=cast(Any, np.int64(64)))
    plain, _ = flatten(camera)
    assert (plain["vertical_fov"], plain["width"]) == (1, 64)
    assert to_json(restore(type(camera), plain, [], given={})) == to_json(camera)
