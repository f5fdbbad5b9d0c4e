"""Change of a dataset's description, as if it came from another machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def describe(folder: Path, *, inputs: dict[str, str] | None = None, **values: Any) -> None:
    """Change entries of ``dataset.json``, and inputs in it."""
    path = folder / "dataset.json"
    described = json.loads(path.read_text()) | values
    described["inputs"] |= inputs or {}
    path.write_text(json.dumps(described))
