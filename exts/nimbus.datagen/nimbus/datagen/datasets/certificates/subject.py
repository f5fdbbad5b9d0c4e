"""Episodes covered by the certificates of a folder, and the HTML section that shows the certificates."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from nimbus.datagen.datasets.certificates.record import MEANING, Certificates, read_certificates, subject_of, summary_of
from nimbus.datagen.datasets.export.publication import NAME, read_manifest
from nimbus.datagen.errors import InputError
from nimbus.datagen.media.pages import render_html
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER
from nimbus.datagen.store.ledger.ledger import Ledger

_TEMPLATE = Path(__file__).parent / "templates" / "certificates.html.j2"


def episodes_of(folder: Path) -> list[tuple[str, str]] | None:
    """Return the id and content hash of each stored episode of a dataset or an export.

    Returns:
        None if the folder is neither a dataset nor an export of one.

    Raises:
        InputError: The ledger or the manifest cannot be read.
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
        return None  # a conversion has no episodes of a dataset
    return [*manifest.episodes[: len(manifest.episodes) - int(manifest.origin.get("failures", 0))]]


def certificates_of(folder: Path) -> Certificates | None:
    """Return the certificates that cover exactly the episodes in a folder; None if there are none.

    Raises:
        InputError: The certificates cannot be read.
    """
    found = read_certificates(folder)
    episodes = episodes_of(folder) if found else None
    return found if found and episodes is not None and found.subject == subject_of(episodes) else None


def render_certificates(folder: Path) -> Markup:
    """Render a dataset's certificates as an HTML table; empty if there are none for its episodes."""
    try:
        found = certificates_of(folder)
    except InputError:
        return Markup()
    if not found:
        return Markup()
    return render_html(_TEMPLATE, certificates=found.certificates, meaning=MEANING, summary_of=summary_of)
