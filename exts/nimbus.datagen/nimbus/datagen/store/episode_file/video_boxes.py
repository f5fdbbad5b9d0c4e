"""Boxes that the MP4 file of one video may have: closed lists of what FFmpeg writes around H.264, HEVC and AV1.

FFmpeg has a reader for each of a hundred names, some of which reserve memory as a box demands, and it calls them
wherever it finds such a box. Names and structures: ISO/IEC 14496-12.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from
from typing import NamedTuple

_FRAMES = ("avc1", "avc3", "hvc1", "hev1", "av01")
"""Accepted types of images."""
_TEXTS = ("\xa9too", "\xa9nam", "\xa9cmt", "\xa9day", "\xa9ART")
"""Accepted texts about a file; FFmpeg names itself in the first."""
ACCEPTED = ("ftyp", "styp", "moov", "moof", "mdat", "free", "skip", "wide", "mfra", "sidx")
"""Accepted boxes at the top level of a file."""
_PARTS: dict[str, tuple[str, ...]] = {
    "": ACCEPTED,
    "moov": ("mvhd", "trak", "mvex", "udta"),
    "trak": ("tkhd", "edts", "mdia"),
    "edts": ("elst",),
    "mdia": ("mdhd", "hdlr", "minf"),
    "minf": ("vmhd", "dinf", "stbl"),
    "dinf": ("dref",),
    "dref": ("url ",),
    "stbl": ("stsd", "stts", "ctts", "stss", "stsc", "stsz", "stz2", "stco", "co64", "sdtp"),
    "stsd": _FRAMES,
    **dict.fromkeys(_FRAMES, ("avcC", "hvcC", "av1C", "colr", "pasp", "btrt", "fiel")),
    "mvex": ("mehd", "trex"),
    "moof": ("mfhd", "traf"),
    "traf": ("tfhd", "tfdt", "trun"),
    "udta": ("meta",),
    "meta": ("hdlr", "ilst"),
    "ilst": _TEXTS,
    **dict.fromkeys(_TEXTS, ("data",)),
}
"""Accepted boxes inside each box with parts; at the top level of the file for an empty name."""
SKIPPED = ("mdat", "free", "skip", "wide", "mfra")
"""Boxes that FFmpeg does not read when it opens a file that has a `moov`."""
_BEFORE = {"meta": 4, "dref": 8, "stsd": 8, **dict.fromkeys(_FRAMES, 78)}
"""Sizes of the fields before the first part of a box [bytes]."""
_COUNTED = ("dref", "stsd")
"""Boxes whose fields end in the number of parts."""
_DEPTH_AT, _DEPTH = 74, 24
"""Position and only value of the bits per pixel in the description of images. For some other values, FFmpeg reads a
palette behind them, and the parts behind it."""
_FIRST = {"meta": "hdlr", "traf": "tfhd"}
"""Parts that must come first, because they change how the others are read."""
_KINDS = {"mdia": b"vide", "meta": b"mdir"}
"""Only kind of track or metadata, by the box that contains the handler."""
_REPEATED = ("trun", *_FRAMES)
_TABLES = ("stts", "ctts", "stss", "stsc", "stsz", "stz2", "stco", "co64", "sdtp", "elst", "trun", "sidx")
_MOST_BYTES = 1 << 16
"""Largest accepted box without parts that is no table [bytes]."""
_MOST_PARTS = 10_000
"""Largest accepted number of parts of a box."""


class Box(NamedTuple):
    """Box with its parts."""

    name: str
    body: memoryview
    """Contents behind the header."""
    parts: tuple[Box, ...]

    def part(self, *names: str) -> Box | None:
        """Return the first part with the first name, the part of that with the second name, and so on."""
        found: Box | None = self
        for name in names:
            found = next((part for part in found.parts if part.name == name), None) if found else None
        return found

    def content(self, name: str) -> memoryview:
        """Return the contents of a part; nothing if there is none."""
        found = self.part(name)
        return found.body if found else memoryview(b"")


def read_box(name: str, body: memoryview, *, above: str = "") -> Box:
    """Return a box with its parts, after a check that all of them are accepted in their places.

    Args:
        name: Name of the box.
        body: Contents behind the header.
        above: Name of the box around it; empty at the top level.

    Raises:
        ValueError: A box is not accepted, does not fit, or is there twice.
        struct.error: A box is too short.
    """
    check_name(name, above)
    if name == "hdlr" and body[8:12] != _KINDS[above]:
        kind = bytes(body[8:12]).decode("latin-1")
        raise ValueError(f"a track or metadata of kind {kind!a}; only a single track of video is read")
    if name not in _PARTS:
        if len(body) > _MOST_BYTES and name not in _TABLES:
            raise ValueError(f"a box {name!a} of {len(body)} bytes")
        return Box(name, body, ())
    start = _BEFORE.get(name, 0)
    if name in _FRAMES and (depth := unpack_from(">H", body, _DEPTH_AT)[0]) != _DEPTH:
        raise ValueError(f"images of {depth} bits a pixel; the only depth is {_DEPTH}")
    parts = tuple(read_box(inner, content, above=name) for inner, content in _split(name, body, start))
    if name in _COUNTED and (count := unpack_from(">I", body, start - 4)[0]) != len(parts):
        raise ValueError(f"it declares {count} parts of its {name}, but has {len(parts)}")
    if parts and parts[0].name != _FIRST.get(name, parts[0].name):
        raise ValueError(f"a box {parts[0].name!a} before the {_FIRST[name]} of its {name}")
    return Box(name, body, parts)


def check_name(name: str, above: str = "") -> None:
    """Check that a box is accepted in a place.

    Raises:
        ValueError: It is not.
    """
    if name in _PARTS[above]:
        return
    if above == "stsd":
        raise ValueError(f"images of type {name!a}; only H.264, HEVC and AV1 are read")
    raise ValueError(f"a box {name!a} in its {above or 'file'}")


def _split(name: str, body: memoryview, start: int) -> Iterator[tuple[str, memoryview]]:
    """Yield names and contents of the parts of a box, which fill it from a position on."""
    found: set[str] = set()
    count = 0
    while start < len(body):
        size, inner = unpack_from(">I4s", body, start)
        part = inner.decode("latin-1")
        count += 1
        if not 8 <= size <= len(body) - start:
            raise ValueError(f"a box {part!a} that does not fit in its {name}")
        if count > _MOST_PARTS:
            raise ValueError(f"more than {_MOST_PARTS} boxes in its {name}")
        if part == "trak" and part in found:
            raise ValueError("several tracks; only a single track of video is read")
        if part in found and part not in _REPEATED:
            raise ValueError(f"a second box {part!a} in its {name}")
        found.add(part)
        yield part, body[start + 8 : start + size]
        start += size
