"""Videos that declare more samples than they can hold."""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.decode import VideoReader
from nimbus.datagen.store.episode_file.h264 import INDEXED
from nimbus.datagen.store.episode_file.open_video import open_mp4
from tools.sources import modules, parse

CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf", b"edts", b"udta"}
FRAGMENTS = "frag_keyframe+empty_moov+default_base_moof"
MANY = 8_000_000


def video(path: Path, flags: str = "", *, tracks: int = 1) -> bytes:
    """Write a video with four images per track."""
    import av

    with av.open(str(path), "w", format="mp4", options={"movflags": flags} if flags else {}) as container:
        streams = [container.add_stream("libx264", rate=30) for _ in range(tracks)]
        for stream in streams:
            stream.width = stream.height = 64
            stream.options = {"bf": "0"}
            stream.pix_fmt = "yuv420p"
        for k in range(4):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 10 * k, np.uint8), format="rgb24")
            frame.pts = k
            for stream in streams:
                container.mux(stream.encode(frame))
        for stream in streams:
            container.mux(stream.encode(None))
    return path.read_bytes()


def rebuilt(data: bytes, change: Callable[[bytes, bytes], bytes | None]) -> bytes:
    """Replace the contents of boxes; None leaves a box out."""
    out, at = b"", 0
    while at + 8 <= len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + size]
        body = rebuilt(body, change) if name in CONTAINERS else body
        if (new := change(name, body)) is not None:
            out += struct.pack(">I4s", len(new) + 8, name) + new
        at += size
    return out


def constant(name: bytes, body: bytes) -> bytes | None:
    """Declare many samples of one byte in one chunk."""
    if name in (b"ctts", b"edts", b"stss"):
        return None
    tables = {
        b"stsz": struct.pack(">III", 0, 1, MANY),
        b"stsc": struct.pack(">IIIII", 0, 1, 1, MANY, 1),
        b"stts": struct.pack(">IIII", 0, 1, MANY, 1),
    }
    return tables.get(name, body)


def fragment(name: bytes, body: bytes) -> bytes | None:
    """Declare many samples without sizes of their own."""
    return struct.pack(">II", 0, MANY) if name == b"trun" else body


def edits(name: bytes, body: bytes) -> bytes | None:
    """Repeat the samples many times."""
    rows = 3_000_000
    return struct.pack(">II", 0, rows) + body[8:] if name == b"elst" else body


def sound(name: bytes, body: bytes) -> bytes | None:
    """Declare many values per chunk, which FFmpeg believes for uncompressed sound."""
    if name == b"stco":
        return struct.pack(">II", 0, 4) + 4 * body[-4:]
    return struct.pack(">IIIII", 0, 1, 1, 2**31, 1) if name == b"stsc" else body


@pytest.mark.parametrize(
    ("change", "flags", "text"),
    [
        (constant, "", "declares 8000000 samples, but has"),
        (fragment, FRAGMENTS, "declares 8000000 samples, but has"),
        (edits, "", "declares 12000001 samples"),
        (sound, "", "declares 16777220 samples; the limit"),
        (lambda name, body: body + b"cmov" if name == b"mvhd" else body, "", "compressed"),
    ],
)
def test_declared_samples(
    tmp_path: Path, change: Callable[[bytes, bytes], bytes | None], flags: str, text: str
) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(rebuilt(video(path, flags), change))
    with pytest.raises(InputError, match=text):
        VideoReader(path, fps=30)


@pytest.mark.parametrize(
    ("name", "text"), [(b"iinf", "items of a picture file"), (b"keys", "declares 200000000 names of metadata")]
)
def test_declared_metadata(tmp_path: Path, name: bytes, text: str) -> None:
    """FFmpeg reserves memory for as many entries as a box of some bytes declares."""
    path = tmp_path / "a.mp4"
    data = video(path)
    body = struct.pack(">II", 1 << 24 if name == b"iinf" else 0, 200_000_000)
    box = struct.pack(">I4s", len(body) + 8, name) + body
    path.write_bytes(rebuilt(data, lambda name, body: body + box if name == b"udta" else body))
    with pytest.raises(InputError, match=text):
        VideoReader(path, fps=30)


@pytest.mark.parametrize("place", [b"trak", b"moov", b"stbl"])
def test_unknown_boxes(tmp_path: Path, place: bytes) -> None:
    """Chapters that name one track many times are compared with one another for hours."""
    path = tmp_path / "a.mp4"
    box = struct.pack(">I4sI4sII", 24, b"tref", 16, b"chap", 1, 1)
    path.write_bytes(rebuilt(video(path), lambda name, body: body + box if name == place else body))
    with pytest.raises(InputError, match=f"a box 'tref' in its {place.decode()}"):
        VideoReader(path, fps=30)


def test_tracks(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    video(path, tracks=17)
    with pytest.raises(InputError, match="17 tracks"):
        VideoReader(path, fps=30)


def test_hidden_fragment(tmp_path: Path) -> None:
    """An index may not name a place between boxes, where FFmpeg would find tables that nothing has checked."""
    path = tmp_path / "a.mp4"
    data = video(path, INDEXED)
    assert b"sidx" in data
    path.write_bytes(rebuilt(data, lambda name, body: body[:27] + b"\x09" + body[28:] if name == b"sidx" else body))
    with pytest.raises(InputError, match="does not exist"):
        VideoReader(path, fps=30)


@pytest.mark.parametrize("flags", ["", "+faststart", FRAGMENTS, INDEXED])
def test_ordinary_files(tmp_path: Path, flags: str) -> None:
    path = tmp_path / "a.mp4"
    video(path, flags)
    assert VideoReader(path, fps=30).read(0, 4).shape == (4, 64, 64, 3)
    with path.open("rb") as file, open_mp4(file) as container:
        assert len(container.streams.video) == 1


def test_all_videos_are_opened_there() -> None:
    others = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if "av.open" in path.read_text()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "av.open" and "'mp4'" in ast.unparse(node)
        if "'w'" not in ast.unparse(node) and not name.endswith("episode_file.open_video")
    ]
    assert not others
