"""Goals of a scene increase the coverage, are the same for every worker, and are refused with the value and the
limit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.navigate.body import BodyShape
from nimbus.datagen.navigate.drive import DriveLimits
from nimbus.datagen.navigate.goals import GoalRequest, GoalSampler, check_kinds
from nimbus.datagen.navigate.homes import home_scene
from nimbus.datagen.navigate.keep import check_clearance, frechet
from nimbus.datagen.navigate.route import find_route
from nimbus.datagen.navigate.scene_map import SceneMap, map_scene
from nimbus.datagen.tasks.plugins import discover
from tests.support.refusals import refusal

BODY = BodyShape(radius=0.25, height=1.4, step=0.03)


@cache
def home() -> SceneMap:
    """Map a home of four or five rooms."""
    discover()
    return map_scene(home_scene(15, (4, 5)), BODY)


def request(to: str = "point", **changes: object) -> GoalRequest:
    """Make a request for goals."""
    values: dict[str, object] = {"to": to, "length": (1.5, 20.0), "detour": 1.0, "duplicates": 0.3} | changes
    return GoalRequest(**values)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("to", ["point", "room", "object", "instruction"])
def test_goals_are_reached_by_clear_drives(to: str):
    sampler = GoalSampler(home(), request(to), seed=1, number=0)
    for rank in range(3):
        goal = sampler.goal(rank)
        assert not goal.refused
        route = find_route(home(), goal.start, goal.goal, limits=DriveLimits(speed=0.6, turn=1.2), rate=10)
        assert route is not None
        assert route.clearance.min() >= BODY.radius
        assert route.distance_to_goal[0] == pytest.approx(goal.geodesic, rel=0.02, abs=0.05)
        assert route.distance_to_goal[-1] < 0.1


def test_goals_do_not_depend_on_the_order_of_requests():
    one, other = (GoalSampler(home(), request(), seed=1, number=0) for _ in range(2))
    last = one.goal(4)
    assert [other.goal(rank) for rank in range(5)][-1] == last
    assert GoalSampler(home(), request(), seed=2, number=0).goal(0) != one.goal(0)


def test_goals_cover_what_no_path_has_covered():
    sampler = GoalSampler(home(), request(), seed=1, number=0)
    shares = []
    for rank in range(12):
        sampler.goal(rank)
        shares.append(sampler.covered)
    assert shares == sorted(shares)
    assert shares[-1] > 0.8


def test_unreachable_lengths_are_refused_with_the_limits():
    goal = GoalSampler(home(), request(length=(400.0, 500.0)), seed=1, number=0).goal(0)
    assert goal.refused == "unreachable: nothing between 400 m and 500 m away"


def test_unknown_kinds_of_goals_are_named():
    assert "scene home_15 has no 'unicorn'" in refusal(check_kinds, home(), "object", ["unicorn"])
    with pytest.raises(InputError):
        GoalSampler(home(), request("object", kinds=("unicorn",)), seed=0, number=0)


def test_frechet_distance_is_that_of_shifted_paths():
    path = np.column_stack([np.linspace(0, 3, 40), np.zeros(40), np.zeros(40)])
    assert frechet(path, path + (0, 0.2, 0)) == pytest.approx(0.2)
    rejected = check_clearance(np.array([0.3, 0.2]), least=0.25)
    assert rejected is not None
    assert rejected.detail == "clearance 0.200 m, at least 0.250 m"
