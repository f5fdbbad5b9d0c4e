"""Points as text: parsed, written and evaluated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.datagen.tasks.points import normal_form, parse_pose, points_in
from nimbus.datagen.tasks.references import Expression, NameRef
from tests.support.refusals import refusal

PLACES = {"cup": (0.4, 0.1, 0.05), "tray": (0.5, -0.3, 0.0), "items[0]": (0.3, 0.0, 0.02)}
HEIGHT = {"center": 0.0, "top": 0.1, "rim": 0.08}


def locate(thing: Expression, feature: str) -> np.ndarray:
    name = thing.name if isinstance(thing, NameRef) else "items[0]"
    return np.add(PLACES[name], (0, 0, HEIGHT[feature]))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("cup", (0.4, 0.1, 0.05)),
        ("cup.center", (0.4, 0.1, 0.05)),
        ("cup.rim", (0.4, 0.1, 0.13)),
        ("cup + [0, 0, 10 cm]", (0.4, 0.1, 0.15)),
        ("cup - [10 mm, -0.1, 0] + [0, 0, 1e-1]", (0.39, 0.2, 0.15)),
        ("above(items[0], 5 cm)", (0.3, 0.0, 0.17)),
        ("between(cup, tray)", (0.45, -0.1, 0.025)),
        ("between(cup.rim, tray + [0, 0, 3 cm], 25 %)", (0.425, 0.0, 0.105)),
    ],
)
def test_a_point_in_words_is_where_it_says(text: str, place: tuple[float, float, float]):
    assert parse_pose(text).at(locate) == pytest.approx(np.array(place))


lengths = st.integers(-500, 500).map(lambda value: f"{value} mm") | st.floats(-1, 1).map(lambda value: f"{value:.3f}")
things = st.sampled_from(sorted(PLACES))
expressions = st.recursive(
    things | things.map(lambda thing: f"{thing}.top") | st.builds("above({}, {})".format, things, lengths),
    lambda inner: (
        st.builds("{} {} [{}, {}, {}]".format, inner, st.sampled_from("+-"), lengths, lengths, lengths)
        | st.builds("between({}, {}, {} %)".format, inner, inner, st.integers(0, 100))
    ),
    max_leaves=4,
)


@given(expressions)
def test_the_normal_form_is_read_as_itself_and_means_the_same(text: str):
    form = normal_form(text)
    assert normal_form(form) == form
    assert parse_pose(form).at(locate) == pytest.approx(parse_pose(text).at(locate), abs=1e-7)
    assert list(points_in(parse_pose(form)))


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("above(cup", "between { and }, put the point in quotes"),
        ("cup + [0", "between { and }, put the point in quotes"),
        ("above(cup)", "write one like cup + [0, 0, 10 cm]"),
        ("cup + 3", "write one like"),
        ("cup * [0, 0, 1]", "write one like"),
        ("between(cup, tray, 3 kg)", "expected a ratio"),
        ("cup + [0, 0, 1 deg]", "expected a length"),
        ("cup tray", "write one like"),
        ("", "write one like"),
    ],
)
def test_what_is_no_point_is_one_line(text: str, instead: str):
    assert instead in refusal(parse_pose, text)


@given(st.text(alphabet="cup+-[](),. 0123%above", max_size=20))
def test_any_text_is_a_point_or_one_line(text: str):
    try:
        parse_pose(text)
    except InputError as error:
        assert "\n" not in str(error)
