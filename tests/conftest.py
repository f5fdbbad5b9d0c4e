"""Settings of all tests: property tests take the same examples on every machine, however slow it is just now.

What is loaded before the first test is never looked through for garbage, which saves a fifth of the tests' time. The
time of each test file is kept in pytest's cache, from which ``tools/affected_tests.py`` reads it. Compiled kernels are
those of the command: a test that starts Warp by itself would compile them once more, elsewhere.
"""

from __future__ import annotations

import gc
import os
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from nimbus.datagen.files.cache import cache_folder

_PASSED_OVER = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]

settings.register_profile("same", deadline=None, max_examples=50, derandomize=True, suppress_health_check=_PASSED_OVER)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("NIMBUS_HYPOTHESIS", "same"))

os.environ.setdefault("WARP_CACHE_PATH", str(cache_folder("warp")))

_COLLECT = 50_000
"""Objects made beyond those freed, before the collector looks for cycles."""
_seconds: defaultdict[str, float] = defaultdict(float)


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty place in a bucket, and a cache of its own."""
    pytest.importorskip("moto", reason="the extra 'dev' brings moto")
    from tests.support.s3 import bucket  # its libraries are loaded by tests of stores alone

    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    with bucket(f"test-{uuid.uuid4().hex[:12]}") as found:
        yield f"{found}/x"


def pytest_sessionstart() -> None:
    """Look for no garbage while the libraries and tests load."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for it seldom from here on, and not in what is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT)
    gc.enable()


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
