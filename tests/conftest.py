"""Settings of all tests: property tests use the same examples on every machine, however slow.

The garbage collector ignores all objects that exist before the first test, which saves a fifth of the tests' time. The
time of each test file is kept in pytest's cache, where ``tools/affected_tests.py`` reads it. Compiled kernels come from
the cache of the command, because a test that starts Warp by itself would compile them again in another folder.
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
"""Number of allocated minus freed objects at which the collector searches for cycles."""
_seconds: defaultdict[str, float] = defaultdict(float)


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return an empty address in a bucket, with a separate cache."""
    pytest.importorskip("moto", reason="the extra 'dev' brings moto")
    from tests.support.s3 import bucket  # only tests of stores load its libraries

    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    with bucket(f"test-{uuid.uuid4().hex[:12]}") as found:
        yield f"{found}/x"


def pytest_sessionstart() -> None:
    """Disable garbage collection while the libraries and tests are loaded."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage less often from now on, and exclude the objects that exist already."""
    gc.freeze()  # a collection before would take a second in each process
    gc.set_threshold(_COLLECT)
    gc.enable()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the time of a test file without its slow tests; under xdist the reports of all workers come here."""
    if "slow" in report.keywords:
        return
    _seconds[report.nodeid.partition("::")[0]] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Store the times; those of files that did not run are kept."""
    cache = getattr(session.config, "cache", None)
    if cache is not None and _seconds and not hasattr(session.config, "workerinput"):
        known = cache.get("nimbus/seconds", {})
        cache.set("nimbus/seconds", known | {name: round(value, 1) for name, value in _seconds.items()})
