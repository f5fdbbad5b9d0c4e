from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cells import finish, make_spec
from tests.support.shared import make_once


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the hashes of an undisturbed run of eight episodes."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "hashes.json").write_text(json.dumps(finish(make_spec(folder / "data"))))

    return json.loads((make_once(tmp_path_factory, "undisturbed", make) / "hashes.json").read_text())
