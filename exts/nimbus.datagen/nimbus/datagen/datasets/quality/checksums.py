"""Files of an export against the sums that it carries, and its certificates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from nimbus.datagen.datasets.export.publication import NAME, read_manifest
from nimbus.datagen.datasets.quality.certificate_checks import check_certificates
from nimbus.datagen.datasets.quality.finding import fail
from nimbus.datagen.errors import Diagnostic, InputError


def check_sums(folder: Path) -> Iterator[Diagnostic]:
    """Every file that is missing or changed since Nimbus exported it; none where somebody else wrote the dataset."""
    if not (folder / NAME).exists():
        return
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        yield fail("checksums", NAME, error.what)
        return
    for name, (size, digest) in manifest.files.items():
        path = folder / name
        if not path.is_file():
            yield fail("checksums", name, "missing")
        elif path.stat().st_size != size or _sum(path) != digest:
            yield fail("checksums", name, "changed since it was exported")
    if "task" in manifest.origin:  # an export: its episodes are those of a dataset of Nimbus
        yield from check_certificates(folder)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
