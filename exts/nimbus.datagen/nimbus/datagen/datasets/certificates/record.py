"""Storage of certificates in ``certificates.json``: results of checks, and the episodes that they cover."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.bounded import Count, read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.publish import replace_text
from nimbus.datagen.version import nimbus_version

FILE_NAME = "certificates.json"

REPLAY, RERENDER, LABELS, ACCOUNTING = "replay", "rerender", "labels", "accounting"
MEANING = {
    REPLAY: "the stored actions, executed again in physics from the stored start, give the stored result",
    RERENDER: "a new rendering of the stored states shows the same as the stored images",
    LABELS: "the stored poses, projected through the stored cameras, agree with stored masks, boxes and depth",
    ACCOUNTING: "every planned episode is stored, failed for a known reason, or otherwise accounted for",
}
"""Meaning of each valid certificate."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Result of one check."""

    name: str
    """Name of the check, a key of :data:`MEANING`."""
    holds: bool | None
    """True if the check passed; None if it could not run."""
    checked: Count
    """Number of checked episodes."""
    of: Count
    """Total number of episodes."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Measured values by name."""
    problems: tuple[str, ...] = ()
    """First contradictions, one line each."""
    note: str = ""
    """Reason why the check could not run; empty if it ran."""


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """All certificates of a dataset."""

    subject: str
    """Hash of the ids and contents of the certified episodes; see :func:`subject_of`."""
    nimbus: str
    """Version of Nimbus that ran the checks."""
    certificates: tuple[Certificate, ...]

    @property
    def hold(self) -> bool:
        """True if no check failed."""
        return all(one.holds is not False for one in self.certificates)


def subject_of(episodes: Iterable[tuple[str, str]]) -> str:
    """Return the hash of a set of episodes.

    Args:
        episodes: Id and content hash of each episode, in any order.
    """
    return hashlib.sha256(to_json(sorted(episodes)).encode()).hexdigest()


def write_certificates(folder: Path, subject: str, certificates: Iterable[Certificate]) -> Certificates:
    """Store certificates in the folder of a dataset; the content hash of the dataset stays the same.

    Raises:
        StorageError: The disk is full.
    """
    made = Certificates(subject=subject, nimbus=nimbus_version(), certificates=tuple(certificates))
    replace_text(folder / FILE_NAME, to_json(made, indent=1) + "\n")
    return made


def read_certificates(folder: Path) -> Certificates | None:
    """Read the certificates of a dataset or an export; None if there are none.

    Raises:
        InputError: The certificates cannot be read.
    """
    path = file_in(folder, FILE_NAME)
    if not path.exists():
        return None
    try:
        return read_typed(Certificates, path)
    except InputError as error:
        instead = "delete it, and run 'nimbus certify' again"
        raise InputError(error.what, where=str(path), instead=instead) from None


def attach_certificates(folder: Path, episodes: Iterable[tuple[str, str]]) -> str:
    """Return the content of ``certificates.json`` for an export.

    Args:
        folder: Folder of the dataset.
        episodes: Id and content hash of each exported episode.

    Returns:
        JSON text; empty if the dataset has no certificates for exactly these episodes.
    """
    found = read_certificates(folder)
    return to_json(asdict(found), indent=1) + "\n" if found and found.subject == subject_of(episodes) else ""


def summary_of(one: Certificate) -> str:
    """Return the figures of a certificate in one line, or the reason why its check could not run."""
    if one.holds is None:
        return one.note
    parts = [f"{one.checked} of {one.of} episodes"] if one.name != ACCOUNTING else []
    parts += [f"{name.replace('_', ' ')} {_text(value)}" for name, value in one.figures.items()]
    return ", ".join(parts)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name} {count}" for name, count in value.items()) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
