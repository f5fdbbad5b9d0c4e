"""Walk of the structure of a foreign HDF5 file before the HDF5 library reads it.

The library follows trees and lists without limits and does not return to Python, so a file that names one node many
times would occupy it forever. Each node must be new and inside the file, and together they must fit in it. Global
heaps, with the values of variable length, are checked in the same way. Only the earliest format is accepted, which h5py
writes by default, and only messages that cannot lead to any other structure: https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import error, iter_unpack, unpack_from
from typing import Protocol

from nimbus.datagen.store.episode_file.heap_values import (
    HeapReference,
    attribute_references,
    element_size,
    heap_objects,
    heap_size,
    references,
    shape_of,
)

_NONE = (1 << 64) - 1
_CHUNK_K = 32
"""Half of the largest number of children of a chunk node; version 0 of the superblock does not state it."""
_SHAPE, _LINK_INFO, _TYPE, _OLD_FILL, _FILL, _LINK, _EXTERNAL, _LAYOUT = 1, 2, 3, 4, 5, 6, 7, 8
_ATTRIBUTE, _CONTINUATION, _SYMBOLS, _ATTRIBUTE_INFO = 12, 16, 17, 21
"""Types of messages in object headers that are checked."""
_HARMLESS = (0, 10, 11, 14, 18, 22)
"""Types of messages that name no other place in the file: none, group sizes, filters, times, count of references."""
_KNOWN = {*_HARMLESS, _ATTRIBUTE, _LINK, _CONTINUATION}
_SINGLE = {_SHAPE, _LINK_INFO, _TYPE, _OLD_FILL, _FILL, _LAYOUT, _SYMBOLS, _ATTRIBUTE_INFO}
"""Types of messages that a header has once; the library would use one of several."""
_COMPACT, _CONTIGUOUS, _CHUNKED = 0, 1, 2
"""Classes of layouts."""
_MOST_NODES = 1_000_000
"""Largest number of headers and nodes of a file; the index of two hours of images at 60 Hz has 14,000 for a dataset."""
_IS_SHARED = 2
_EARLIEST = "the earliest format of HDF5, h5py's default"

_Entry = tuple[int, tuple[int, int] | None]
"""Address of an object header, and the addresses of its symbol table's tree and heap where the entry states them."""


class SeekableFile(Protocol):
    """A file that is read at any place."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a position; return it."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """Read at most ``size`` bytes."""
        ...


def check_structure(file: SeekableFile) -> None:
    """Refuse a file whose groups, headers or chunk indices are not trees of the earliest HDF5 format.

    Args:
        file: Readable, seekable file; its position becomes 0.

    Raises:
        ValueError: The structure is refused.
    """
    try:
        _Walk(file).run()
    except (error, IndexError):
        raise ValueError("its structure ends early") from None
    file.seek(0)


class _Walk:
    def __init__(self, file: SeekableFile) -> None:
        self._file = file
        self._size = self._left = file.seek(0, 2)
        self._nodes_left = _MOST_NODES
        self._seen: set[int] = set()
        self._heaps: dict[int, dict[int, int]] = {}
        """Sizes of the objects of each global heap, by its address and their numbers [bytes]."""
        self._values_left = self._size
        """Bytes that values of variable length may still have; the library reads one for each of its references."""

    def run(self) -> None:
        head = self._bytes(0, min(96, self._size))
        if head[:8] != b"\x89HDF\r\n\x1a\n":
            raise ValueError("no HDF5 signature at its start")
        if head[8] or head[13] != 8 or head[14] != 8 or unpack_from("<Q", head, 24)[0]:
            raise ValueError(f"superblock version {head[8]}, expected {_EARLIEST}")
        self._leaf, self._group = 2 * unpack_from("<H", head, 16)[0], 2 * unpack_from("<H", head, 18)[0]
        todo, tables = self._entries(head[56:96], 1), dict[int, tuple[int, int] | None]()
        while todo:
            address, cached = todo.pop()
            if address not in tables:
                links, table = self._header(address)
                tables[address] = table
                todo += links
                todo += self._symbols(*table) if table else []
            # A link may repeat the addresses of its group's table; the library uses either.
            if cached and tables[address] not in (None, cached):
                raise ValueError("a group has two symbol tables")

    def _bytes(self, address: int, size: int) -> bytes:
        if address + size > self._size:
            raise ValueError("an address is beyond its end")
        self._file.seek(address)
        return self._file.read(size)

    def _claim(self, addresses: list[int], size: int) -> None:
        """Note nodes or stored values of a total size; refuse those that were named before."""
        before = len(self._seen)
        self._seen.update(addresses)
        if len(self._seen) < before + len(addresses):
            raise ValueError("a node of its structure is named twice")
        self._left -= size
        if self._left < 0:
            raise ValueError("its structure has more bytes than the file")

    def _new(self, address: int, size: int, signature: bytes = b"") -> bytes:
        """Read a node that was not read before; a server could make up any number for a size that it declares."""
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise ValueError(f"its structure has more than {_MOST_NODES} nodes")
        self._claim([address], size)
        data = self._bytes(address, size)
        if len(data) != size or not data.startswith(signature):
            raise ValueError(f"a node of its structure is not {signature.decode()}")
        return data

    def _header(self, address: int) -> tuple[list[_Entry], tuple[int, int] | None]:
        """Walk an object header of version 1; return its links, and the addresses of its symbol table."""
        head = self._bytes(address, 16)
        if head[0] != 1:
            raise ValueError(f"an object header of a newer version, expected {_EARLIEST}")
        blocks, links, found = [(address, 16 + unpack_from("<I", head, 8)[0])], list[_Entry](), dict[int, bytes]()
        for start, size in blocks:
            data, at = self._new(start, size), 16 if start == address else 0
            while at + 8 <= size:
                kind, length, flags = unpack_from("<HHB", data, at)
                body, at = data[at + 8 : at + 8 + length], at + 8 + length
                if kind and flags & _IS_SHARED:
                    raise ValueError(f"shared messages, expected {_EARLIEST}")
                if kind in _SINGLE:
                    if kind in found:
                        raise ValueError(f"a header has two messages of type {kind}")
                    found[kind] = body
                elif kind == _EXTERNAL:
                    raise ValueError("its data lie in another file")
                elif kind not in _KNOWN:
                    raise ValueError(f"a message of type {kind}, which no dataset here has")
                elif kind == _LINK:
                    links += _hard_link(body)
                elif kind == _CONTINUATION:
                    blocks.append(unpack_from("<QQ", body))
                elif kind == _ATTRIBUTE:
                    self._check_values(attribute_references(body))
        for kind, index_size in ((_LINK_INFO, 8), (_ATTRIBUTE_INFO, 2)):
            if kind in found:
                _check_compact(found[kind], index_size)
        self._dataset(found)
        return links, unpack_from("<QQ", found[_SYMBOLS]) if _SYMBOLS in found else None

    def _dataset(self, found: dict[int, bytes]) -> None:
        """Check the messages of a dataset; other objects lack them."""
        if layout := found.get(_LAYOUT):
            if layout[:2] == b"\4\3":  # a virtual dataset
                raise ValueError("its data lie in another file")
            if layout[0] != 3 or layout[1] not in (_COMPACT, _CONTIGUOUS, _CHUNKED):
                raise ValueError(f"a layout of version {layout[0]}, class {layout[1]}, expected {_EARLIEST}")
            if layout[1] == _CHUNKED and (root := unpack_from("<Q", layout, 3)[0]) != _NONE:
                self._tree(root, 1, 8 + 8 * layout[2], 2 * _CHUNK_K)
            if layout[1] == _CONTIGUOUS and (stored := unpack_from("<QQ", layout, 2))[0] != _NONE:
                self._claim([stored[0]], stored[1])
        size = element_size(found[_TYPE]) if _TYPE in found else 0
        if size and layout and not shape_of(found.get(_SHAPE, b"")):
            self._check_values(references(self._value(layout, found), 1, size))

    def _value(self, layout: bytes, found: dict[int, bytes]) -> bytes:
        """Return the stored bytes of a dataset that is one value of variable length; more of them are never read."""
        if _OLD_FILL in found or found.get(_FILL, b"")[4:].strip(b"\0"):
            raise ValueError("a text has a fill value")
        if layout[1] == _CHUNKED:
            raise ValueError("a text in chunks")
        if layout[1] == _COMPACT:
            return layout[4:]
        address = unpack_from("<Q", layout, 2)[0]
        return bytes(16) if address == _NONE else self._bytes(address, 16)

    def _check_values(self, values: Iterable[HeapReference]) -> None:
        """Check the heaps of values of variable length, and their sizes."""
        for value in values:
            if value.heap not in self._heaps:
                size = heap_size(self._bytes(value.heap, 16))
                self._heaps[value.heap] = heap_objects(self._new(value.heap, size))
            if self._heaps[value.heap].get(value.number) != value.byte_count:
                raise ValueError("a text is not where its reference leads")
            self._values_left -= value.byte_count
            if self._values_left < 0:
                raise ValueError("its texts have more bytes than the file")

    def _tree(self, root: int, kind: int, key: int, most: int) -> list[int]:
        """Walk a B-tree of version 1; return the children of its leaves, for a group the nodes with its entries."""
        leaves, todo = list[int](), [(root, -1)]
        while todo:
            address, expected = todo.pop()
            data = self._new(address, 24 + 8 * most + key * (most + 1), b"TREE")
            level, count = data[5], unpack_from("<H", data, 6)[0]
            if data[4] != kind or count > most or expected not in (-1, level):
                raise ValueError("a damaged node of a B-tree")
            if not level and kind:  # chunks, the sizes of which are in their keys
                chunks = [*iter_unpack(f"<I{key - 4}xQ", data[24 : 24 + count * (key + 8)])]
                self._claim([chunk for _, chunk in chunks], sum(size for size, _ in chunks))
                continue
            children = [unpack_from("<Q", data, 24 + key + (key + 8) * place)[0] for place in range(count)]
            if level:
                todo += [(child, level - 1) for child in children]
            else:
                leaves += children
        return leaves

    def _symbols(self, tree: int, heap: int) -> list[_Entry]:
        head = self._new(heap, 32, b"HEAP")
        size, free, start = unpack_from("<QQQ", head, 8)
        content, passed = self._new(start, size), set[int]()
        while free != 1:
            if free in passed or free + 16 > size:
                raise ValueError("the free list of a heap does not end")
            passed.add(free)
            free = unpack_from("<Q", content, free)[0]
        found = list[_Entry]()
        for node in self._tree(tree, 0, 8, self._group):
            data = self._new(node, 8 + 40 * self._leaf, b"SNOD")
            if (count := unpack_from("<H", data, 6)[0]) > self._leaf:
                raise ValueError("a damaged node of a group")
            found += self._entries(data[8:], count)
        return found

    @staticmethod
    def _entries(data: bytes, count: int) -> list[_Entry]:
        """Return the header of each entry, and its symbol table if it states one; soft links have no header."""
        parts = [unpack_from("<QQIIQQ", data, 40 * place) for place in range(count)]
        return [(part[1], part[4:6] if part[2] == 1 else None) for part in parts if part[2] != 2 and part[1] != _NONE]


def _check_compact(body: bytes, index_size: int) -> None:
    """Refuse links or attributes that are stored in a heap, outside of the object header."""
    if unpack_from("<Q", body, 2 + (index_size if body[1] & 1 else 0))[0] != _NONE:
        raise ValueError(f"links or attributes in a heap, expected {_EARLIEST}")


def _hard_link(body: bytes) -> list[_Entry]:
    """Return the object of a link message; none for a soft or external link."""
    flags, at = body[1], 2
    if flags & 8:
        if body[at]:
            return []
        at += 1
    at += (8 if flags & 4 else 0) + (1 if flags & 16 else 0)
    width = 1 << (flags & 3)
    at += width + int.from_bytes(body[at : at + width], "little")
    return [(unpack_from("<Q", body, at)[0], None)]
