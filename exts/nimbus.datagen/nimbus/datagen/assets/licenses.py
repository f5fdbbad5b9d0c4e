"""Licenses of assets, from the nearest license file or from the metadata of a Python wheel."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from nimbus.datagen.assets.source_files import text_beside

_TEXTS = (
    (r"CC[- ]BY[- ]NC[- ]ND", "CC-BY-NC-ND-4.0"),
    (r"CC[- ]BY[- ]NC[- ]SA|Attribution-NonCommercial-ShareAlike", "CC-BY-NC-SA-4.0"),
    (r"CC[- ]BY[- ]NC|Attribution-NonCommercial", "CC-BY-NC-4.0"),
    (r"CC[- ]BY[- ]SA|Attribution-ShareAlike", "CC-BY-SA-4.0"),
    (r"CC[- ]BY\b|Creative Commons Attribution", "CC-BY-4.0"),
    (r"CC0|Public Domain Dedication", "CC0-1.0"),
    (r"Apache License|Apache-2\.0", "Apache-2.0"),
    (r"MIT License|\bMIT\b|Permission is hereby granted, free of charge", "MIT"),
    (r"zlib|This software is provided 'as-is', without any express", "Zlib"),
    (r"BSD|Redistribution and use in source and binary forms", "BSD-3-Clause"),
    (r"GNU GENERAL PUBLIC|\bGPL", "GPL-3.0"),
    (r"non-?commercial|research (use )?only|all rights reserved", "LicenseRef-restricted"),
)
_RESTRICTED = re.compile(r"-N[CD]\b|restricted|unrecognized|proprietary|non-?commercial|research", re.IGNORECASE)
_ASSETS = re.compile(r"\bassets\b", re.IGNORECASE)
_LICENSED = re.compile(r"\blicensed? under\b", re.IGNORECASE)
"""Words of a sentence in a README about the license of its assets, which may differ from that of the code."""
_FILES = ("license", "licence", "copying")


def is_restricted(name: str) -> bool:
    """Return True if a license restricts redistribution (non-commercial, no derivatives, or research only)."""
    return bool(_RESTRICTED.search(name))


def find_license(root: Path, path: str) -> str:
    """Return the license of a file, from its folder, the nearest parent folder or the wheel; empty if none is found."""
    folder = (root / path).parent
    while folder.is_relative_to(root):
        for file in _named(folder, _FILES):
            return _named_in(root, file)
        if folder == root:
            break
        folder = folder.parent
    return _of_wheel(root)


def forget_licenses() -> None:
    """Clear the cache: archives of different imports are unpacked to the same paths."""
    for cached in (_of_wheel, _named, _named_in):
        cached.cache_clear()


@lru_cache(maxsize=64)
def _of_wheel(root: Path) -> str:
    for info in sorted(root.glob("*.dist-info")):
        for file in _named(info, ("metadata",)):
            text = text_beside(root, file)
            for line in text.split("\n"):
                if (word := _ASSETS.search(line)) and _LICENSED.search(line, word.end()):
                    return _match(line) or "LicenseRef-unrecognized"
            head = text.split("\n\n")[0]
            given = re.findall(r"^(?:License(?:-Expression)?|Classifier: License ::.*?)(?::| ::) *(.+)$", head, re.M)
            if found := next(filter(None, map(_match, given)), ""):
                return found
        for file in sorted(info.glob("licenses/*")):
            if file.name.lower().startswith(_FILES):
                return _named_in(root, file)
    return ""


@lru_cache(maxsize=4096)
def _named(folder: Path, names: tuple[str, ...]) -> tuple[Path, ...]:
    found = (path for path in folder.iterdir() if path.name.lower().startswith(names) and path.is_file())
    return tuple(sorted(found))


@lru_cache(maxsize=1024)
def _named_in(root: Path, path: Path) -> str:
    return _match(text_beside(root, path)[:4000]) or "LicenseRef-unrecognized"


def _match(text: str) -> str:
    return next((name for pattern, name in _TEXTS if re.search(pattern, text, re.IGNORECASE)), "")
