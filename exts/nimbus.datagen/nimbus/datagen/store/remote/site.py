"""Site-wide names of stores, so that commands and code do not depend on the cloud."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nimbus.datagen.errors import InputError, suggest
from nimbus.datagen.files.strict_yaml import StrictModel, load
from nimbus.datagen.files.variables import variable_path
from nimbus.datagen.store.remote.address import StoreAddress, is_address, parse_address, without_secrets

SCHEME = "nimbus://"
SITE_FILE = "NIMBUS_STORES"
"""Environment variable with the path of the file of names."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class SiteStores(StrictModel):
    """Content of the file: ``stores:``, and below it one address per name."""

    stores: dict[str, str]


def resolve_address(text: str) -> StoreAddress:
    """Parse an address; a name such as ``nimbus://demos`` is looked up in the site's file.

    Raises:
        InputError: The address is invalid, has an unknown scheme or contains keys, or the site has no such name.
    """
    return _site_address(text) if text.startswith(SCHEME) else parse_address(text)


def site_file() -> Path:
    """Return the path of the file with this site's names."""
    if given := os.environ.get(SITE_FILE):
        return variable_path(SITE_FILE, given)
    import platformdirs

    return Path(platformdirs.user_config_dir("nimbus", appauthor=False)) / "stores.yaml"


def _site_address(text: str) -> StoreAddress:
    name, _, rest = text.removeprefix(SCHEME).partition("/")
    if not _NAME.fullmatch(name):
        raise InputError(
            "the address has no name", where=without_secrets(text), instead="write nimbus://name, or nimbus://name/path"
        )
    path = site_file()
    if not path.is_file():
        instead = f"create {path} with 'stores:' and a line '{name}: s3://bucket/path'"
        raise InputError(
            f"'{name}' cannot be looked up: there is no file with this site's stores",
            where=without_secrets(text),
            instead=instead,
        )
    stores = load(path, SiteStores).stores
    if name not in stores:
        raise InputError(f"this site has no store '{name}'", where=str(path), instead=suggest(name, stores))
    found = stores[name]
    if not is_address(found) or found.startswith(SCHEME):
        raise InputError(f"'{name}' is not an address: {found}", where=str(path), instead="write s3://bucket/path")
    address = parse_address(found)
    return address.under(rest) if rest.strip("/") else address
