"""A site's file of names for stores, so that commands and code do not change with the cloud."""

from __future__ import annotations

from nimbus.datagen.files.strict_yaml import StrictModel


class SiteStores(StrictModel):
    """Content of the file: ``stores:``, and below it an address by name."""

    stores: dict[str, str]
