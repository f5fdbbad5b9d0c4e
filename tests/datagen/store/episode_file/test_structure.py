"""Files whose structure does not end are refused before the HDF5 library reads them."""

from __future__ import annotations

from pathlib import Path
from struct import pack, pack_into, unpack_from

import h5py
import numpy as np
import pytest

from nimbus.datagen.store.episode_file.structure import check_structure
from tests.support.synthetic import make_rendered, write_dataset
from tools.sources import modules

CHILDREN = 32
"""Number of children of a node of a group, and half of those of a node of chunks."""


def check(path: Path) -> None:
    with path.open("rb") as file:
        check_structure(file)
        assert file.tell() == 0


def repeat_child(content: bytearray, at: int, *, key: int, most: int) -> None:
    """Put the leaf of a B-tree, moved to the end, below two levels of nodes that name one child in all their places."""
    size = 24 + 8 * most + key * (most + 1)
    first = bytes(content[at + 24 : at + 24 + key])
    last = bytes(content[at + 24 + key + 8 : at + 24 + 2 * key + 8])
    kind, leaf = content[at + 4], bytes(content[at : at + size])
    content.extend(bytes(-len(content) % 8))
    child = len(content)
    content.extend(leaf)
    for level in (1, 2):
        node = bytearray(b"TREE" + pack("<BBH", kind, level, most) + b"\xff" * 16 + first)
        for _ in range(most):
            node += pack("<Q", child) + last
        if level == 1:
            child = len(content)
            content.extend(node)
        else:
            content[at : at + size] = node
    pack_into("<Q", content, 40, len(content))


def test_every_episode_passes(tmp_path: Path) -> None:
    write_dataset(tmp_path / "data", [make_rendered(0), make_rendered(1)])
    for path in (tmp_path / "data/episodes").glob("*.hdf5"):
        check(path)


def test_large_groups_attributes_and_many_chunks_pass(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "large.hdf5", "w") as file:
        for number in range(600):
            file.create_group(f"data/demo_{number}").attrs["text"] = "a" * 900
        file.create_dataset("chunks", data=np.zeros((5_000, 2)), chunks=(1, 2), compression="gzip")
        file.attrs.update({f"attribute_{number}": number for number in range(30)})
        file["again"] = file["data"]
        file["soft"] = h5py.SoftLink("/data")
    check(tmp_path / "large.hdf5")


@pytest.mark.parametrize("kind", ["group", "chunks"])
def test_a_node_named_twice_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.zeros((8, 2)), chunks=(4, 2))
    content = bytearray(path.read_bytes())
    number = int(kind == "chunks")
    place = next(at for at in range(len(content)) if content[at : at + 6] == b"TREE" + bytes([number, 0]))
    if number:
        repeat_child(content, place, key=8 + 8 * 3, most=2 * CHILDREN)
    else:
        repeat_child(content, place, key=8, most=CHILDREN)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="a node of its structure is named twice"):
        check(path)


def test_a_header_that_continues_in_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.hdf5"
    with h5py.File(path, "w") as file:
        for number in range(20):
            file.attrs[f"attribute_{number}"] = "a" * 100
    content = bytearray(path.read_bytes())
    (header,) = unpack_from("<Q", content, 64)
    at, end = header + 16, header + 16 + unpack_from("<I", content, header + 8)[0]
    while at < end:
        kind, length = unpack_from("<HH", content, at)
        if kind == 16:
            block = unpack_from("<Q", content, at + 8)[0]
            pack_into("<HHB3xQQ", content, block, 16, 16, 0, block, 24)
        at += 8 + length
    path.write_bytes(content)
    with pytest.raises(ValueError, match="a node of its structure is named twice"):
        check(path)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w", libver="latest") as file:
        file["x"] = 1
    with pytest.raises(ValueError, match="superblock version 3, expected the earliest format of HDF5, h5py's default"):
        check(tmp_path / "file.hdf5")


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        file.create_dataset("group/x", data=np.zeros((8, 2)), chunks=(4, 2))
    content = (tmp_path / "file.hdf5").read_bytes()
    for length in range(0, 2_000, 50):
        (tmp_path / "cut.hdf5").write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"its |an address|a node"):
            check(tmp_path / "cut.hdf5")


def test_every_file_is_checked_before_it_is_opened() -> None:
    for name, path in modules().items():
        text = path.read_text()
        if "h5py.File(" in text and '"w")' not in text:
            assert "check_structure(" in text, name
