"""Whether stored certificates are of the episodes that are there, and hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from nimbus.datagen.certificates.record import FILE_NAME, read_certificates, subject_of, summary_of
from nimbus.datagen.errors import InputError
from nimbus.datagen.qa.finding import Finding, fail, warn


def check_certificates(folder: Path, episodes: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """What is wrong with a dataset's certificates; nothing where it has none.

    Args:
        folder: Of the dataset or export.
        episodes: Id and content hash of each episode in it.
    """
    try:
        found = read_certificates(folder)
    except InputError as error:
        yield fail("certificates", FILE_NAME, error.what)
        return
    if not found:
        return
    if found.subject != subject_of(episodes):
        yield warn("certificates", FILE_NAME, "of other episodes: give 'nimbus certify' again")
        return
    for one in found.certificates:
        if one.holds is False:
            told = one.problems[0] if one.problems else summary_of(one)
            yield fail("certificates", one.name, f"is broken: {told}")
