from __future__ import annotations

import pytest

from tests.support.cells import finish, make_spec


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Hashes of what a run of eight episodes makes to which nothing happens."""
    return finish(make_spec(tmp_path_factory.mktemp("undisturbed") / "data"))
