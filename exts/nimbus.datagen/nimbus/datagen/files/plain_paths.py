"""Paths in files of others that every library takes for the same file.

One library opens a path as it is written. Another one first replaces backslashes by slashes, decodes ``%2e``, or takes
the beginning for an address. A file of that literal name could then be checked, and a private one be opened.
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PART = r"(?!\.+(?:/|$))[\w.,'&@=+()-](?:[\w .,'&@=+()-]*[\w.,'&@=+()-])?"
"""A name that neither consists of dots only nor begins or ends with a space."""
_RELATIVE = re.compile(rf"(?:\./)?(?:\.\./)*{_PART}(?:/{_PART})*")
_ANY = re.compile(rf"/?(?:(?:{_PART}|\.\.?)/)*{_PART}")
ALPHABET = "letters, digits, spaces and .,'&@=+()-_"
"""Characters of a plain path, for errors."""


def is_address(name: str) -> bool:
    """Return True if a name begins like an address.

    Libraries take a relative path of this form for an address, also if there is such a file.
    """
    return bool(_ADDRESS.match(name))


def is_plain_relative(name: str) -> bool:
    """Return True for a relative path of plain names; ``.`` and ``..`` are only at its beginning."""
    return bool(_RELATIVE.fullmatch(name))


def is_plain(name: str) -> bool:
    """Return True for a path of plain names, which may be absolute and may contain ``.`` and ``..``."""
    return bool(_ANY.fullmatch(name))
