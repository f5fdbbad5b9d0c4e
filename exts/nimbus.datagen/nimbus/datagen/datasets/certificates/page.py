"""Certificates as a piece of a page, and as findings."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from nimbus.datagen.datasets.certificates.record import MEANING, Certificates, summary_of
from nimbus.datagen.datasets.certificates.subject import certificates_of
from nimbus.datagen.errors import InputError


def render_certificates(folder: Path) -> str:
    """A table of a dataset's certificates; empty where there are none of its episodes that can be read."""
    try:
        found = certificates_of(folder)
    except InputError:
        return ""
    return _table(found) if found else ""


def _table(found: Certificates) -> str:
    return f"<table class=left>{''.join(_rows(found))}</table>"


def _rows(found: Certificates) -> Iterator[str]:
    for one in found.certificates:
        verdict = {True: "holds", False: "broken", None: "not checked"}[one.holds]
        told = escape(summary_of(one))
        if one.problems:
            told += f"<br>{escape(one.problems[0])}"
        meaning = escape(MEANING.get(one.name, ""))
        yield f'<tr><td><b>{escape(one.name)}</b></td><td>{verdict}</td><td class="text">{meaning}: {told}</td></tr>'
