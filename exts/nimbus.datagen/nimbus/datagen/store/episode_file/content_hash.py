"""Content hashes: equal arrays and texts give equal hashes, whatever the compression, the host and the time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.store.episode_file.schema import FIELD_SCHEMA, TEXT, field_of

LEVELS = {"D0": "layouts and plans", "D1": "layouts, plans and pixels"}
"""What two datasets are compared in, by level of determinism."""


class ContentHash:
    """Hashes an episode's datasets one by one, as rows arrive, in any interleaving of the datasets."""

    def __init__(self) -> None:
        self._digests: dict[str, Any] = {}

    def begin(self, path: str, dtype: str, shape: Sequence[int]) -> None:
        """Announce a dataset; its rows follow through :meth:`extend`."""
        self._digests[path] = hashlib.sha256(f"{dtype} {tuple(shape)}".encode())

    def extend(self, path: str, rows: NDArray[Any]) -> None:
        """Add rows (n, ...) to a dataset, in order, in the unit in which it is stored."""
        self._digests[path].update(np.ascontiguousarray(rows).data)

    def array(self, path: str, values: NDArray[Any]) -> None:
        """Add a whole dataset of numbers, of any shape (n, ...), in the unit in which it is stored."""
        self.begin(path, str(values.dtype), values.shape)
        self.extend(path, values)

    def texts(self, path: str, values: Iterable[str]) -> None:
        """Add a whole dataset of texts."""
        encoded = [text.encode() for text in values]
        self.begin(path, TEXT, (len(encoded),))
        for text in encoded:
            self._digests[path].update(len(text).to_bytes(8, "little") + text)

    def hexdigest(self, level: str = "D1", *, fields: int = FIELD_SCHEMA) -> str:
        """Return the hash of what ``level`` compares, in the fields that field schema ``fields`` has."""
        total = hashlib.sha256()
        for path in sorted(self._digests):
            field = field_of(path)
            if field is None or field.since > fields or field.varying or (field.pixels and level == "D0"):
                continue
            total.update(f"{path} {self._digests[path].hexdigest()}\n".encode())
        return total.hexdigest()


def combine(episodes: dict[str, str]) -> str:
    """One hash over episode hashes, in the order of their ids."""
    total = hashlib.sha256()
    for episode_id in sorted(episodes):
        total.update(f"{episode_id} {episodes[episode_id]}\n".encode())
    return total.hexdigest()
