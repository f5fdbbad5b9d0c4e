"""Certificates as a section of a page."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from nimbus.datagen.datasets.certificates.record import MEANING, summary_of
from nimbus.datagen.datasets.certificates.subject import certificates_of
from nimbus.datagen.errors import InputError
from nimbus.datagen.media.pages import render_html

_TEMPLATE = Path(__file__).parent / "templates" / "certificates.html.j2"


def render_certificates(folder: Path) -> Markup:
    """Render a table of a dataset's certificates; empty where there are none of its episodes that can be read."""
    try:
        found = certificates_of(folder)
    except InputError:
        return Markup()
    if not found:
        return Markup()
    return render_html(_TEMPLATE, certificates=found.certificates, meaning=MEANING, summary_of=summary_of)
