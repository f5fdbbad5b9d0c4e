"""Addresses of datasets in an object store."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from nimbus.datagen.errors import InputError, suggest

SCHEMES = ("s3", "gs", "az", "file", "http", "https")
READ_ONLY = ("http", "https")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_KEEP = "keys come from the environment, a profile or a role of the machine; remove them from the address"


@dataclass(frozen=True, kw_only=True)
class StoreAddress:
    """Location of a dataset in an object store."""

    scheme: str
    bucket: str
    """Bucket, container or host; empty for files."""
    prefix: str
    """Path of the dataset in the bucket, without slashes at its ends."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def is_read_only(self) -> bool:
        """True for read-only addresses."""
        return self.scheme in READ_ONLY

    @property
    def key(self) -> str:
        """Name of a local folder for the dataset, unique for each address."""
        last = re.sub(r"[^A-Za-z0-9_.-]", "_", self.prefix.rpartition("/")[2] or self.bucket).lstrip(".")[:40]
        return f"{last or 'dataset'}-{hashlib.sha256(str(self).encode()).hexdigest()[:12]}"

    def under(self, name: str) -> StoreAddress:
        """Return the address of a folder in it."""
        prefix = f"{self.prefix}/{name.strip('/')}".strip("/")
        return StoreAddress(scheme=self.scheme, bucket=self.bucket, prefix=prefix)


def is_address(text: str) -> bool:
    """Return True if a text is an address and not a path."""
    return bool(_URL.match(text))


def parse_address(text: str) -> StoreAddress:
    """Parse an address such as ``s3://bucket/demos``.

    Raises:
        InputError: The text is not an address, has an unknown scheme, or contains keys.
    """
    scheme = text.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise InputError(f"unknown scheme '{scheme}'", where=without_secrets(text), instead=suggest(scheme, SCHEMES))
    try:
        parts = urlsplit(text)
        has_password = "@" in parts.netloc
    except ValueError as error:
        what = f"invalid address: {error}"
        raise InputError(what, where=without_secrets(text), instead=f"write {scheme}://bucket/path") from None
    if has_password or parts.query or parts.fragment:
        what = "an address must not contain a user, password, '?' or '#'"
        raise InputError(what, where=without_secrets(text), instead=_KEEP)
    path = unquote(parts.path).strip("/")
    if any(part in ("", ".", "..") for part in path.split("/")) and path or "\0" in path or "\\" in path:
        what = "its path has an empty part, '.', '..' or a backslash"
        raise InputError(what, where=without_secrets(text), instead="write s3://bucket/path/of/the/dataset")
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise InputError(
                "a file:// address must not contain a host", where=without_secrets(text), instead="write file:///path"
            )
        return StoreAddress(scheme="file", bucket="", prefix=path)
    if not parts.netloc:
        raise InputError(
            "the address has no bucket", where=without_secrets(text), instead=f"write {scheme}://bucket/path"
        )
    return StoreAddress(scheme=scheme, bucket=parts.netloc, prefix=path)


def local_folder(address: StoreAddress) -> Path | None:
    """Return the folder of a ``file://`` address; None for others."""
    return Path(f"/{address.prefix}") if address.scheme == "file" else None


def without_secrets(text: str) -> str:
    """Return an address without possible secrets."""
    scheme, _, rest = text.partition("://")
    return f"{scheme}://{re.split('[?#]', rest)[0].rpartition('@')[2]}"
