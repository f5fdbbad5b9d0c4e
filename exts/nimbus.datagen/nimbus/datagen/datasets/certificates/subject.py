"""Which episodes a folder holds, and whether its certificates are of these."""

from __future__ import annotations

from pathlib import Path

from nimbus.datagen.datasets.certificates.record import Certificates, read_certificates, subject_of
from nimbus.datagen.datasets.export.publication import NAME, read_manifest
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER
from nimbus.datagen.store.ledger.ledger import Ledger


def episodes_of(folder: Path) -> list[tuple[str, str]] | None:
    """Id and content hash of each stored episode of a dataset or an export; None where the folder does not tell.

    Raises:
        InputError: Its ledger or its manifest cannot be read.
    """
    if (folder / LEDGER).exists():
        ledger = Ledger(folder, read_only=True)
        try:
            return [(one.episode_id, one.sha256) for one in ledger.stored()]
        finally:
            ledger.close()
    if not (folder / NAME).exists():
        return None
    manifest = read_manifest(folder)
    if "task" not in manifest.origin:
        return None  # converted: of whatever its source held
    return [*manifest.episodes[: len(manifest.episodes) - int(manifest.origin.get("failures", 0))]]


def certificates_of(folder: Path) -> Certificates | None:
    """The certificates of the very episodes that are in a folder; None where there are none of them.

    Raises:
        InputError: They cannot be read.
    """
    found = read_certificates(folder)
    episodes = episodes_of(folder) if found else None
    return found if found and episodes is not None and found.subject == subject_of(episodes) else None
