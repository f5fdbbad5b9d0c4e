"""Whether stored certificates are of the episodes that are there, and hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nimbus.datagen.datasets.certificates.record import FILE_NAME, read_certificates, summary_of
from nimbus.datagen.datasets.certificates.subject import certificates_of
from nimbus.datagen.datasets.quality.finding import fail, warn
from nimbus.datagen.errors import Diagnostic, InputError


def check_certificates(folder: Path) -> Iterator[Diagnostic]:
    """What is wrong with the certificates of a dataset or an export; nothing where it has none."""
    try:
        if not read_certificates(folder):
            return
        found = certificates_of(folder)
    except InputError as error:
        yield fail("certificates", FILE_NAME, error.what)
        return
    if not found:
        yield warn("certificates", FILE_NAME, "of other episodes: give 'nimbus certify' again")
        return
    for one in found.certificates:
        if one.holds is False:
            told = one.problems[0] if one.problems else summary_of(one)
            yield fail("certificates", one.name, f"is broken: {told}")
