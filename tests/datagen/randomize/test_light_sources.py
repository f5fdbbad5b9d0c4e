"""Randomization of the sun and its sky."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.randomize.base import blackbody_color, make_light, nominal_light

temperatures = st.floats(1700, 25000)


def test_6500_kelvin_is_near_white():
    assert np.allclose(blackbody_color(6500.0), 1.0, atol=0.07)


@pytest.mark.parametrize("limit", [2222.0, 4000.0])
def test_colours_have_no_step_where_the_fit_changes(limit: float):
    assert np.allclose(blackbody_color(limit), blackbody_color(limit + 0.1), atol=5e-3)


@given(temperatures, temperatures)
def test_lower_is_redder(one, other):
    low, high = sorted((one, other))
    red_low, _, blue_low = blackbody_color(low)
    red_high, _, blue_high = blackbody_color(high)
    assert red_low >= red_high - 5e-3 and blue_low <= blue_high + 5e-3
    if high > low + 200:
        assert blue_low / red_low < blue_high / red_high


@given(temperatures)
def test_the_brightest_channel_is_one(temperature):
    color = blackbody_color(temperature)
    assert max(color) == 1.0 and min(color) >= 0.0


@given(st.floats(-math.pi, math.pi), st.floats(0, math.pi / 2), st.floats(0.1, 2), st.floats(0.1, 1), temperatures)
def test_light_travels_down_from_where_the_sun_stands(azimuth, elevation, intensity, ambient, temperature):
    light = make_light(
        azimuth=azimuth, elevation=elevation, intensity=intensity, temperature=temperature, ambient=ambient
    )
    x, y, z = light.direction
    assert np.linalg.norm(light.direction) == pytest.approx(1)
    assert z == pytest.approx(-math.sin(elevation))
    assert (-x, -y) == pytest.approx((math.cos(azimuth) * math.cos(elevation), math.sin(azimuth) * math.cos(elevation)))
    assert max(light.color) == pytest.approx(intensity)
    assert max(light.sky) == pytest.approx(ambient)
    assert np.all(np.less(light.ground, light.sky))


def test_the_nominal_light_comes_from_above_and_leaves_room_to_white():
    light = nominal_light()
    assert light.direction[2] < -0.5
    assert max(np.add(light.color, light.sky)) < 1.6
