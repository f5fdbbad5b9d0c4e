"""HDF5 files that are read hold what they are read for: a link to another file is refused."""

from __future__ import annotations

from typing import Any

import h5py


def check_own(file: h5py.File, path: str) -> None:
    """Refuse what is not in the file itself; a path that is not there passes.

    Args:
        file: The file.
        path: Of a group or dataset in it.

    Raises:
        ValueError: An external link leads there, or its data lie in another file.
    """
    place: Any = file
    for part in path.split("/"):
        if not isinstance(place, h5py.Group) or place.get(part, getlink=True) is None:
            return
        if isinstance(place.get(part, getlink=True), h5py.ExternalLink):
            raise ValueError("a link into another file")
        place = place[part]
    if isinstance(place, h5py.Dataset) and (place.external or place.is_virtual):
        raise ValueError("its data lie in another file")
