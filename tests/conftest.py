"""Settings of all tests: property tests take the same examples on every machine, however slow it is just now.

The time of each test file is kept in pytest's cache, from which ``tools/affected_tests.py`` reads it.
"""

from __future__ import annotations

import os
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, settings

_PASSED_OVER = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]

settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=_PASSED_OVER)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("NIMBUS_HYPOTHESIS", "same"))

_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the time of a test file without its slow tests; under xdist the reports of all workers come here."""
    if "slow" in report.keywords:
        return
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the times; those of files that did not run stay."""
    cache = getattr(session.config, "cache", None)
    if cache is not None and _seconds and not hasattr(session.config, "workerinput"):
        known = cache.get("nimbus/seconds", {})
        cache.set("nimbus/seconds", known | {name: round(value, 1) for name, value in _seconds.items()})
