"""Hash of an episode's content, taken while it is written or read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.store.episode_file.schema import FIELD_SCHEMA, TEXT, field_of


class ContentHash:
    """Hash of an episode's datasets, updated as rows arrive; rows of several datasets may alternate."""

    def __init__(self) -> None:
        self._digests: dict[str, Any] = {}

    def begin(self, path: str, dtype: str, shape: Sequence[int]) -> None:
        """Begin a dataset; its rows follow through :meth:`extend`."""
        self._digests[path] = hashlib.sha256(f"{dtype} {tuple(shape)}".encode())

    def extend(self, path: str, rows: NDArray[Any]) -> None:
        """Add rows (n, ...) to a dataset, in order, in stored units."""
        self._digests[path].update(np.ascontiguousarray(rows).data)

    def array(self, path: str, values: NDArray[Any]) -> None:
        """Add a complete numeric dataset of any shape (n, ...), in stored units."""
        self.begin(path, str(values.dtype), values.shape)
        self.extend(path, values)

    def texts(self, path: str, values: Iterable[str]) -> None:
        """Add a complete dataset of texts."""
        encoded = [text.encode() for text in values]
        self.begin(path, TEXT, (len(encoded),))
        for text in encoded:
            # The length separates the texts: without it, ["ab", "c"] and ["a", "bc"] would be equal.
            self._digests[path].update(len(text).to_bytes(8, "little") + text)

    def hexdigest(self, level: str = "D1", *, fields: int = FIELD_SCHEMA) -> str:
        """Return the hash over the fields that ``level`` compares and that field schema ``fields`` contains."""
        total = hashlib.sha256()
        for path in sorted(self._digests):
            field = field_of(path)
            if field is None or field.since > fields or field.varying or (field.pixels and level == "D0"):
                continue
            total.update(f"{path} {self._digests[path].hexdigest()}\n".encode())
        return total.hexdigest()
