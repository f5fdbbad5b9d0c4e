"""Which Nimbus this is."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

_MANIFEST = Path(__file__).resolve().parents[2] / "config" / "extension.toml"


def nimbus_version() -> str:
    """The version of this code: of its extension where it lies in one, else of the installed distribution."""
    if _MANIFEST.is_file():
        match = re.search(r'(?m)^version = "([^"]+)"', _MANIFEST.read_text(encoding="utf-8"))
        return match[1] if match else ""
    try:
        return importlib.metadata.version("nimbus-datagen")
    except importlib.metadata.PackageNotFoundError:
        return ""
