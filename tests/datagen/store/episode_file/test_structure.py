"""Files whose structure does not end are refused before the HDF5 library reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from struct import pack, pack_into, unpack_from

import h5py
import numpy as np
import pytest

from nimbus.datagen.store.episode_file import structure
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


def test_values_of_variable_length_pass(tmp_path: Path) -> None:
    """Other programs write lists of texts, references to axes, and texts of their own characters."""
    path = tmp_path / "texts.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("text", data="hello", dtype=h5py.string_dtype())
        file.create_dataset("unset", shape=(), dtype=h5py.string_dtype())
        file.create_dataset("list", data=["a", "bc"], dtype=h5py.string_dtype())
        axis = file.create_dataset("x", data=np.zeros(3))
        axis.make_scale("axis")
        file.create_dataset("y", data=np.zeros((3, 2))).dims[0].attach_scale(axis)
        file.attrs.update(
            {"texts": ["", "a", "bc"], "é": "ü", "empty": "", "numbers": 1j, "is": True, "long": "a" * 60_000}
        )
        file.attrs["fixed"] = np.bytes_("text")
    check(path)


def heap_of(path: Path, *values: object) -> tuple[bytearray, int]:
    """Write texts as attributes; return the file and the position of its first global heap."""
    with h5py.File(path, "w") as file:
        file.attrs.update({f"attribute_{number}": value for number, value in enumerate(values)})
    content = bytearray(path.read_bytes())
    return content, content.index(b"GCOL")


@pytest.mark.parametrize(
    "object_of_heap", [(0, 0), (0, 8), (9, (1 << 64) - 16), (9, (1 << 64) - 17), (9, 1 << 20), (1, 8)]
)
def test_a_heap_without_an_end_is_refused(tmp_path: Path, object_of_heap: tuple[int, int]) -> None:
    """The HDF5 library would never return from its walk through the heap."""
    content, heap = heap_of(tmp_path / "file.hdf5", "abc", "def")
    pack_into("<HHIQ", content, heap + 16 + 24, object_of_heap[0], 0, 0, object_of_heap[1])
    (tmp_path / "file.hdf5").write_bytes(content)
    with pytest.raises(ValueError, match="a damaged global heap"):
        check(tmp_path / "file.hdf5")


def test_one_text_for_many_references_is_refused(tmp_path: Path) -> None:
    """The library would copy the text for each of them."""
    content, heap = heap_of(tmp_path / "file.hdf5", ["a" * 5_000, *["b"] * 100])
    first = content.index(pack("<IQ", 5_000, heap))
    content[first : first + 101 * 16] = content[first : first + 16] * 101
    (tmp_path / "file.hdf5").write_bytes(content)
    with pytest.raises(ValueError, match="its texts have more bytes than the file"):
        check(tmp_path / "file.hdf5")


def test_a_reference_of_another_length_is_refused(tmp_path: Path) -> None:
    content, heap = heap_of(tmp_path / "file.hdf5", "abc")
    pack_into("<I", content, content.index(pack("<IQI", 3, heap, 1)), 4_000)
    (tmp_path / "file.hdf5").write_bytes(content)
    with pytest.raises(ValueError, match="a text is not where its reference leads"):
        check(tmp_path / "file.hdf5")


def array_of_texts(file: h5py.File) -> None:
    """A scalar attribute whose type is an array of texts."""
    kind = h5py.h5t.array_create(h5py.h5t.py_create(h5py.string_dtype(), logical=True), (3,))
    h5py.h5a.create(file.id, b"a", kind, h5py.h5s.create(h5py.h5s.SCALAR))


def list_of_lists(file: h5py.File) -> None:
    file.create_dataset("a", (2,), dtype=h5py.vlen_dtype(h5py.vlen_dtype("i4")))


def record_with_a_text(file: h5py.File) -> None:
    file.create_dataset("a", (2,), dtype=[("x", "f8"), ("text", h5py.string_dtype())])


def regions(file: h5py.File) -> None:
    file["x"] = np.zeros(3)
    file.attrs["region"] = file["x"].regionref[:2]


def nested_arrays(file: h5py.File) -> None:
    kind = h5py.h5t.NATIVE_INT32
    for _ in range(12):
        kind = h5py.h5t.array_create(kind, (1,))
    h5py.h5a.create(file.id, b"a", kind, h5py.h5s.create(h5py.h5s.SCALAR))


def external(file: h5py.File) -> None:
    """The names of the other files are in a heap with a list of free places, which the library follows."""
    file.create_dataset("x", shape=(10,), dtype="f8", external=[("none", 0, 80)])


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout(shape=(10,), dtype="f8")
    layout[:] = h5py.VirtualSource("none.hdf5", "x", shape=(10,))
    file.create_virtual_dataset("x", layout)


def named_type(file: h5py.File) -> None:
    file["type"] = np.dtype("f8")
    file.create_dataset("x", (3,), dtype=file["type"])


REFUSED: dict[Callable[[h5py.File], None], str] = {
    array_of_texts: "of variable length inside another type",
    list_of_lists: "of variable length inside another type",
    record_with_a_text: "of variable length inside another type",
    regions: "a type of class 7",
    nested_arrays: "a type is nested too deeply",
    external: "its data lie in another file",
    virtual: "its data lie in another file",
    named_type: "shared messages",
}


@pytest.mark.parametrize("write", REFUSED, ids=lambda write: write.__name__)
def test_types_that_lead_to_other_structures_are_refused(tmp_path: Path, write: Callable[[h5py.File], None]) -> None:
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        write(file)
    with pytest.raises(ValueError, match=REFUSED[write]):
        check(tmp_path / "file.hdf5")


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


def test_a_chunk_of_many_rows_is_refused(tmp_path: Path) -> None:
    """One stored image could be unpacked for each of a million rows."""
    path = tmp_path / "file.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.zeros((40, 100)), chunks=(1, 100), compression="gzip")
    content = bytearray(path.read_bytes())
    first = content.index(b"TREE\1\0") + 24 + (key := 8 + 3 * 8)
    for number in range(1, 40):
        at = first + number * (key + 8)
        content[at : at + 8] = content[first : first + 8]
    path.write_bytes(content)
    with pytest.raises(ValueError, match="a node of its structure is named twice"):
        check(path)


def test_arrays_beyond_the_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.hdf5"
    with h5py.File(path, "w") as file:
        for number in range(3):
            file[f"x{number}"] = np.zeros((1, 1_000))
        places = [file[f"x{number}"].id.get_offset() for number in range(3)]
    content = bytearray(path.read_bytes())
    for number, place in enumerate(places):
        pack_into("<QQ", content, content.index(pack("<QQ", place, 8_000)), places[0] + number, 12_000)
    path.write_bytes(content)
    with pytest.raises(ValueError, match="its structure has more bytes than the file"):
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


def test_nodes_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server could declare any size, and make up nodes for it."""
    with h5py.File(tmp_path / "file.hdf5", "w") as file:
        for number in range(50):
            file.create_group(str(number))
    check(tmp_path / "file.hdf5")
    monkeypatch.setattr(structure, "_MOST_NODES", 50)
    with pytest.raises(ValueError, match="more than 50 nodes"):
        check(tmp_path / "file.hdf5")


def test_every_file_is_checked_before_it_is_opened() -> None:
    for name, path in modules().items():
        text = path.read_text()
        if "h5py.File(" in text and '"w")' not in text:
            assert "check_structure(" in text, name
