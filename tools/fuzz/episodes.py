"""Episode files whose HDF5 structure is hostile, inside a complete dataset.

The damage is to the structure alone, because bytes anywhere in a file mostly change images: nodes that name one
another, fields of headers and indices, and features of HDF5 that no episode uses.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tools.fuzz import datasets
from tools.fuzz.mutations import files_of, pick
from tools.fuzz.sort import Sort, command

_SIGNATURES = (b"TREE", b"SNOD", b"HEAP", b"GCOL")
_EXTREMES = (b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f" * 2, (1 << 40).to_bytes(8, "little"), b"\1" + b"\0" * 7)
_LARGE = 1 << 20
_READERS = ("verify", "qa", "hash", "train")


def spoil(folder: Path, random: np.random.Generator) -> str:
    """Damage the structure of an episode's file."""
    path = pick(files_of(folder, ".hdf5"), random)
    match pick(("pointers", "fields", "bytes", "feature"), random):
        case "feature":
            return _add_feature(path, random)
        case kind:
            data = bytearray(path.read_bytes())
            places = structure(path)
            for _ in range(int(random.integers(1, 5))):
                _damage(data, places, kind, random)
            path.write_bytes(data)
            return kind


def read(folder: Path, random: np.random.Generator) -> None:
    """Read the dataset with one of the commands that read whole episodes, or as training does."""
    match pick(_READERS, random):
        case "verify":
            command("verify", folder, "--recompute", 0)
        case "train":
            datasets.train(folder)
        case name:
            command(name, folder)


def structure(path: Path) -> np.ndarray:
    """Return the positions of a file's bytes that are not stored values of numbers."""
    is_value = np.zeros(path.stat().st_size, bool)

    def mark(_: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or item.shape == ():
            return
        stored = item.id
        if item.chunks is None:
            if (offset := stored.get_offset()) is not None:
                is_value[offset : offset + stored.get_storage_size()] = True
            return
        for number in range(stored.get_num_chunks()):
            chunk = stored.get_chunk_info(number)
            is_value[chunk.byte_offset : chunk.byte_offset + chunk.size] = True

    with h5py.File(path) as file:
        file.visititems(mark)
    return np.flatnonzero(~is_value)


def _damage(data: bytearray, places: np.ndarray, kind: str, random: np.random.Generator) -> None:
    """Change one field or a few bytes of the structure."""
    at = int(pick(places, random))
    if kind == "bytes":
        data[at] = int(random.integers(256))
        return
    at -= at % 8
    if kind == "fields":
        width = pick((1, 2, 4, 8), random)
        data[at : at + width] = pick(_EXTREMES, random)[:width]
        return
    nodes = [place for signature in _SIGNATURES for place in _places(data, signature)]
    if not nodes:
        return
    known = {node.to_bytes(8, "little") for node in nodes}
    named = [place for place in range(0, len(data) - 7, 8) if bytes(data[place : place + 8]) in known]
    if named:
        place = pick(named, random)
        data[place : place + 8] = pick(nodes, random).to_bytes(8, "little")


def _places(data: bytearray, signature: bytes) -> list[int]:
    found, at = list[int](), data.find(signature)
    while at >= 0:
        found.append(at)
        at = data.find(signature, at + 1)
    return found


def _add_feature(path: Path, random: np.random.Generator) -> str:
    """Replace a dataset by one with a feature that episodes do not use, or add one beside it."""
    names: list[str] = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    name, kind = pick(names, random), pick(sorted(_FEATURES), random)
    if kind == "newest format":
        _rewrite(path)
        return kind
    with h5py.File(path, "r+") as file:
        held: Any = file[name]
        shape, kept = held.shape, held.dtype
        if kind not in _BESIDE:
            del file[name]
        try:
            _FEATURES[kind](file, name, shape, kept)
        except (OSError, TypeError, ValueError, RuntimeError) as error:
            return f"{name}: {kind}: {error}"
    return f"{name}: {kind}"


def _rewrite(path: Path) -> None:
    """Copy a file into the newest format of HDF5."""
    other = path.with_suffix(".new")
    with h5py.File(path) as source, h5py.File(other, "w", libver="latest") as target:
        for name in source:
            source.copy(name, target)
        target.attrs.update(source.attrs)
    other.replace(path)


def _virtual(file: h5py.File, name: str, shape: tuple[int, ...], kept: np.dtype) -> None:
    layout = h5py.VirtualLayout(shape=shape or (1,), dtype=kept)
    layout[:] = h5py.VirtualSource(".", "action", shape=shape or (1,))
    file.create_virtual_dataset(name, layout)


def _deep(file: h5py.File, *_: Any) -> None:
    group: Any = file
    for _level in range(1000):
        group = group.create_group("d")


def _wide(file: h5py.File, *_: Any) -> None:
    group = file.create_group("wide")
    for number in range(1000):
        group.create_group(str(number))


def _attributes(file: h5py.File, name: str, *_: Any) -> None:
    for number in range(500):
        file[name].attrs[f"a{number}"] = number


def _nested(file: h5py.File, name: str, shape: tuple[int, ...], _: np.dtype) -> None:
    kind = np.dtype("f8")
    for _level in range(30):
        kind = np.dtype([("x", kind)])
    file.create_dataset(name, shape, kind)


def _named_type(file: h5py.File, name: str, shape: tuple[int, ...], kept: np.dtype) -> None:
    file["kind"] = kept
    file.create_dataset(name, shape, file["kind"])


def _long_text(file: h5py.File, name: str, *_: Any) -> None:
    file.attrs.create("task", "x" * _LARGE, dtype=h5py.string_dtype()) if name else None


def _text_in_chunks(file: h5py.File, name: str, *_: Any) -> None:
    file.create_dataset(name, data=["x" * 1000] * 1000, dtype=h5py.string_dtype(), chunks=(10,), compression="gzip")


def _refer(file: h5py.File, name: str, *_: Any) -> None:
    file.attrs["task"] = file[name].ref


_Feature = Callable[[h5py.File, str, tuple[int, ...], np.dtype], object]


def _stored(**settings: Any) -> _Feature:
    """Return a function that stores zeros of the same shape in another way."""

    def store(file: h5py.File, name: str, shape: tuple[int, ...], kept: np.dtype) -> None:
        chosen = {"chunks": True, **settings} if shape else {}
        file.create_dataset(name, data=np.zeros(shape, kept), **chosen)

    return store


_FEATURES: dict[str, _Feature] = {
    "newest format": lambda *_: None,
    "virtual": _virtual,
    "deep groups": _deep,
    "many groups": _wide,
    "many attributes": _attributes,
    "nested types": _nested,
    "named type": _named_type,
    "long text": _long_text,
    "texts in chunks": _text_in_chunks,
    "reference": _refer,
    "stacked filters": _stored(compression="gzip", shuffle=True, fletcher32=True),
    "another filter": _stored(compression="lzf"),
    "scaled": _stored(scaleoffset=4),
    "unlimited": lambda file, name, shape, kept: file.create_dataset(name, shape, kept, maxshape=(None,) * len(shape)),
    "one value a chunk": lambda file, name, shape, kept: file.create_dataset(
        name, data=np.zeros(shape, kept), chunks=(1,) * len(shape) or None
    ),
    "large chunks": lambda file, name, shape, kept: file.create_dataset(
        name, data=np.zeros(shape, kept), maxshape=(None,) * len(shape), chunks=(4096,) * min(len(shape), 2)
    ),
    "zeros that expand": lambda file, name, shape, kept: file.create_dataset(
        name, (8, _LARGE, 8), "u1", chunks=(1, _LARGE, 8), compression="gzip", data=np.zeros((8, _LARGE, 8), "u1")
    ),
    "not written": lambda file, name, shape, kept: file.create_dataset(name, (_LARGE, *shape[1:]), kept, chunks=True),
    "fill value": lambda file, name, shape, kept: file.create_dataset(
        name, shape, kept, fillvalue=None if kept.kind == "S" else kept.type(7)
    ),
    "wide type": lambda file, name, shape, kept: file.create_dataset(name, shape, f"V{_LARGE}"),
    "array type": lambda file, name, shape, kept: file.create_dataset(name, shape, np.dtype(("f8", (256, 256)))),
    "other byte order": lambda file, name, shape, kept: file.create_dataset(name, shape, kept.newbyteorder()),
}
_BESIDE = ("deep groups", "many groups", "many attributes", "long text", "reference")
"""Features that are added beside the dataset."""

SORT = Sort(name="episodes", make=datasets.make, spoil=spoil, read=read)
