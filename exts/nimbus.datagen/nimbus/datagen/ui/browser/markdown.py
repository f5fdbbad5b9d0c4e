"""Escaping of text from files and folders for the Markdown of the page."""

from __future__ import annotations

from nimbus.datagen.errors import visible

_MARKS = frozenset("\\`*_{}[]<>#|&!~$")
"""Characters with a meaning in Markdown, in HTML inside it, or in an expression that the page would evaluate."""


def escape(text: object) -> str:
    """Escape a text so that the page shows it unchanged."""
    return "".join(f"\\{letter}" if letter in _MARKS else letter for letter in visible(str(text)))
