"""Read-only fsspec file system for datasets in a store; it uses the caches of this machine and its peers.

``pandas.read_parquet("nimbus://data/chunk-000/file-000.parquet", storage_options={"dataset": "s3://bucket/demos"})``
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fsspec  # pyright: ignore[reportMissingImports]

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.dataset_paths import resolve_inside
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER
from nimbus.datagen.store.remote.address import local_folder
from nimbus.datagen.store.remote.cache_root import note_origin
from nimbus.datagen.store.remote.range_file import span_of
from nimbus.datagen.store.remote.site import resolve_address
from nimbus.datagen.store.remote.working_copy import DESCRIPTIONS, copy_folder, local, open_dataset, open_store

PROTOCOL = "nimbus"


class DatasetFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Read-only file system of one dataset; paths are relative to the dataset.

    Args:
        dataset: Address of the dataset, such as ``s3://bucket/demos`` or ``nimbus://demos``.

    Raises:
        InputError: The address is invalid, or an extra is not installed.
    """

    protocol = PROTOCOL
    root_marker = ""

    def __init__(self, dataset: str, **options: Any) -> None:
        super().__init__(dataset=dataset, **options)
        address = resolve_address(dataset)
        self._store = open_store(str(address))
        self._folder: Path = local_folder(address) or copy_folder(address)
        if address.scheme != "file":
            note_origin(self._folder, str(address))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the name, the size [bytes] and the type of a file or folder.

        Raises:
            FileNotFoundError: The path does not exist.
        """
        name = self._name(path)
        if name and (stat := self._store.stat(name)):
            return {"name": name, "size": stat.byte_count, "type": "file", "ETag": stat.etag}
        if not name or self._names(name):
            return {"name": name, "size": 0, "type": "directory"}
        raise FileNotFoundError(self._store.place(name))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """List a folder; raises ``FileNotFoundError`` if it does not exist."""
        name = self._name(path)
        inside = f"{name}/" if name else ""
        found: dict[str, dict[str, Any]] = {}
        for entry, size in self._names(name).items():
            first, *below = entry.removeprefix(inside).split("/")
            child = inside + first
            folder: dict[str, Any] = {"name": child, "size": 0, "type": "directory"}
            file: dict[str, Any] = {"name": child, "size": size, "type": "file"}
            found.setdefault(child, folder if below else file)
        if not found:
            found = {name: self.info(name)}
        return list(found.values()) if detail else list(found)

    def _name(self, path: str) -> str:
        """Return the name of an object; raise an ``InputError`` for a path outside the dataset."""
        name = str(self._strip_protocol(path))
        resolve_inside(self._folder, name)
        return name

    def _names(self, folder: str) -> dict[str, int]:
        return dict(self._store.names(folder))

    def _open(self, path: str, mode: str = "rb", *_args: Any, **_options: Any) -> Any:
        """Open a file; blocks of 1 MB are fetched when they are read."""
        if mode != "rb":
            raise InputError("this file system is read-only", where=path, instead="write with nimbus run or mirror")
        name = self._name(path)
        size = self.info(name)["size"]
        if name in DESCRIPTIONS:  # a run replaces it: blocks of it could be of different versions
            folder = open_dataset(str(self._store.address), has_ledger=name == LEDGER)
            return local(folder / name).open("rb")
        span = span_of(self._folder / name, byte_count=size, name=name)
        return io.BufferedReader(span.open())
