from __future__ import annotations

import pytest

from nimbus.runner.monitor.lower_bound import find_bound

GPUS = [f"GPU-{number:08x}-1111-2222" for number in range(8)]


@pytest.mark.parametrize(
    ("busy", "seconds", "resource"),
    [
        ({}, 100.0, "cores"),
        ({"disk": 90.0}, 100.0, "cores"),
        ({"disk": 140.0}, 140.0, "disk"),
        ({"disk": 140.0, GPUS[0]: 150.0, GPUS[1]: 20.0}, 150.0, GPUS[0]),
        ({gpu: 101.0 + number for number, gpu in enumerate(GPUS)}, 108.0, GPUS[7]),
    ],
)
def test_the_bound_is_that_of_the_slowest_resource(busy: dict[str, float], seconds: float, resource: str) -> None:
    found = find_bound(400.0, cores=4, longest_episode=30.0, busy=busy)
    assert (found.seconds, found.resource) == (seconds, resource)
    assert found.name == resource[:12] or not resource.startswith("GPU-")


def test_one_long_episode_bounds_a_run_on_many_cores() -> None:
    found = find_bound(400.0, cores=64, longest_episode=30.0)
    assert (found.seconds, found.resource) == (30.0, "longest episode")


def test_without_measurements_no_resource_is_named() -> None:
    assert find_bound(0.0, cores=2, longest_episode=0.0, busy={"disk": 0.0}).resource == ""
