"""Versions: of this Nimbus, and of the components and generators that decide the content of episodes."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from pathlib import Path

_MANIFEST = Path(__file__).resolve().parents[2] / "config" / "extension.toml"
_VERSIONED = re.compile(r"[1-9][0-9]{0,5}(\.[1-9][0-9]{0,5})*(-[0-9a-f]+)?")
_HASH = re.compile(r"[0-9a-f]{12,64}")


def nimbus_version() -> str:
    """Return the version of this code: of its extension if it is part of one, else of the installed distribution."""
    if _MANIFEST.is_file():
        match = re.search(r'(?m)^version = "([^"]+)"', _MANIFEST.read_text(encoding="utf-8"))
        return match[1] if match else ""
    try:
        return importlib.metadata.version("nimbus-datagen")
    except importlib.metadata.PackageNotFoundError:
        return ""


def component_version(component: object) -> int:
    """Return the version number of a class or function; 1 if it declares none.

    Raises:
        ValueError: The version is not a whole number from 1 to 999999; the message holds the value.
    """
    version = getattr(component, "version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version < 10**6:
        raise ValueError(f"version {version!r} is not a whole number from 1 to 999999")
    return version


def is_built_in(component: object) -> bool:
    """Return True for a class or function of Nimbus itself, False for a plug-in, even one derived from a built-in."""
    return (getattr(component, "__module__", None) or "").partition(".")[0] == "nimbus"


def versioned_hash(content: bytes, *versions: int) -> str:
    """Return an identity such as ``2-0123456789abcdef``: versions of the code, and a hash of its input."""
    return f"{'.'.join(map(str, versions))}-{hashlib.sha256(content).hexdigest()[:16]}"


def was_source_hash(then: str, now: str) -> bool:
    """Return True if ``now`` is a versioned identity and ``then`` a hash of source text, as up to Nimbus 0.1.0."""
    return bool(_HASH.fullmatch(then) and _VERSIONED.fullmatch(now))
