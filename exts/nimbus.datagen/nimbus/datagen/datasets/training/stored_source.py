"""Source of a Nimbus dataset for training, from the manifest of a dataset in a store or from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.export.source import ExportItem, Source, camera_of, open_source
from nimbus.datagen.store.dataset_paths import DatasetPaths
from nimbus.datagen.store.episode_file.h264 import whole_rate
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.ledger import FILE_NAME as LEDGER
from nimbus.datagen.store.remote.cache_root import address_of
from nimbus.datagen.store.remote.episode_manifest import FILE_NAME, read_manifest
from nimbus.datagen.store.remote.working_copy import is_remote, open_dataset

if TYPE_CHECKING:
    import pyarrow


class ManifestItems(Sequence[ExportItem]):
    """Sequence of the episodes in a manifest; items are created on access, which saves memory for 100,000 episodes.

    Args:
        folder: Folder of the dataset.
        table: Manifest, in the order of an export.
    """

    def __init__(self, folder: Path, table: pyarrow.Table) -> None:
        self._inside, self._table = DatasetPaths(folder), table

    def __len__(self) -> int:
        return self._table.num_rows

    @overload
    def __getitem__(self, position: int) -> ExportItem: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[ExportItem]: ...
    def __getitem__(self, position: int | slice) -> ExportItem | Sequence[ExportItem]:
        if isinstance(position, slice):
            return tuple(self[number] for number in range(*position.indices(len(self))))
        if not -len(self) <= position < len(self):
            raise IndexError(f"episode {position} of {len(self)}")
        position %= len(self)
        row = self._table.slice(position, 1).to_pylist()[0]
        paths: list[str] = row.pop("videos")
        return ExportItem(
            position=position,
            phase="",
            path=self._inside.path(row.pop("path")),
            videos={camera_of(row["episode_id"], path): self._inside.path(path) for path in paths},
            **row,
        )

    def column(self, name: str) -> NDArray[Any]:
        """Return a column (E,) of the manifest; texts as objects."""
        return self._table.column(name).to_numpy()


def column(items: Sequence[ExportItem], name: str) -> NDArray[Any]:
    """Return a field of all episodes as an array (E,).

    Texts are objects: in an array of texts, each would take the space of the longest one.
    """
    if isinstance(items, ManifestItems):
        return items.column(name)
    values = [getattr(item, name) for item in items]
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


def open_stored(folder: Path) -> Source:
    """Open the stored episodes of a dataset; for a dataset in a store, its manifest is used if there is one.

    Raises:
        InputError: The folder contains no dataset or no episode, or a file is missing or differs from its ledger row.
    """
    has_manifest = (folder / FILE_NAME).is_file()
    if not is_remote(folder) or not has_manifest and (folder / LEDGER).is_file():
        return open_source(folder)
    info = read_info(folder)
    table = read_manifest(folder / FILE_NAME, info)
    if table is None:
        return open_source(open_dataset(address_of(folder)))
    return Source(
        folder=folder,
        task=info.task,
        robot=info.robot,
        fps=whole_rate(info.rate, where=folder),
        cameras=dict(sorted(info.cameras.items())),
        joint_names=info.joint_names,
        action_names=info.action_names,
        items=ManifestItems(folder, table),
    )
