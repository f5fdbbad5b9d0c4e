"""Text from files and folders in the Markdown of the page."""

from __future__ import annotations

from nimbus.datagen.errors import visible

_MARKS = frozenset("\\`*_{}[]<>#|&!~$")
"""Characters that begin something in Markdown, in HTML inside of it, or an expression: the page would run that."""


def escape(text: object) -> str:
    """Escape a text so that the page shows it as it is."""
    return "".join(f"\\{letter}" if letter in _MARKS else letter for letter in visible(str(text)))
