"""Option and fixture of the golden tests."""

from __future__ import annotations

import pytest

from tests.golden.values import FOLDER, GoldenFile


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="replace golden values of components whose version was raised",
    )


@pytest.fixture(scope="module")
def golden(request: pytest.FixtureRequest) -> GoldenFile:
    """Return the golden values of a test module, from the file with its name."""
    name = request.path.stem.removeprefix("test_")
    update = bool(request.config.getoption("--update-golden", default=False))
    return GoldenFile(FOLDER / f"{name}.json", update=update)
