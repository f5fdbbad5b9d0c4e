"""CPU-seconds of tests, children included: ``python -m pytest -p tests.support.cpu --cpu out/cpu.json PATH``.

Wall time on a busy machine is not meaningful. Only children that have ended and were waited for count; a process that a
test leaves running is missing.
"""

from __future__ import annotations

import json
import resource
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--cpu``."""
    parser.addoption("--cpu", type=Path, help="write the CPU-seconds of each test to this JSON file")


def _spent() -> float:
    """Return the CPU-seconds of this process and of its ended children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count a test, including fixtures that it is the first to use."""
    before = _spent()
    try:
        return (yield)
    finally:
        _seconds[item.nodeid] += _spent() - before


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Count the imports of the tests' modules."""
    before = _spent()
    try:
        return (yield)
    finally:
        _seconds["collection"] = _spent() - before


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the figures of this process, largest first, and print the largest."""
    file = session.config.getoption("--cpu")
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    longest = sorted(((round(seconds, 2), name) for name, seconds in _seconds.items()), reverse=True)
    file.write_text(json.dumps({name: seconds for seconds, name in longest}, indent=1))
