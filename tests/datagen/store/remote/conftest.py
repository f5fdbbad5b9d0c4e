from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.s3 import bucket


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty place in a bucket, and a cache of its own."""
    pytest.importorskip("moto", reason="the extra 'dev' brings moto")
    monkeypatch.setenv("NIMBUS_CACHE", str(tmp_path / "cache"))
    with bucket(f"test-{uuid.uuid4().hex[:12]}") as found:
        yield f"{found}/x"
