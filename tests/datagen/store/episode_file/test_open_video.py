"""Videos that declare more samples than they can hold."""

from __future__ import annotations

import ast
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file import open_video, sample_tables
from nimbus.datagen.store.episode_file.decode import VideoReader
from nimbus.datagen.store.episode_file.h264 import INDEXED
from nimbus.datagen.store.episode_file.open_video import open_mp4
from tests.support import ROOT
from tests.support.foreign import pictures, write_video
from tools.sources import modules, parse

CONTAINERS = dict.fromkeys(b"moov trak edts mdia minf dinf stbl moof traf udta ilst".split(), 0)
CONTAINERS |= {b"meta": 4, b"dref": 8, b"stsd": 8, b"avc1": 78}
"""Boxes with parts, and the bytes before the first part."""
FRAGMENTS = "frag_keyframe+empty_moov+default_base_moof"
MANY = 8_000_000
WRITE_AV1 = """
import sys
from pathlib import Path
from tests.support.foreign import pictures, write_video
write_video(Path(sys.argv[1]), pictures(0, 0, 15), codec="libsvtav1", preset="12")
"""


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
        if (start := CONTAINERS.get(name)) is not None:
            body = body[:start] + rebuilt(body[start:], change)
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


def one_image(name: bytes, body: bytes) -> bytes | None:
    """Let each of 60,000 samples name the first image, in a chunk of its own."""
    count, size = 60_000, struct.unpack_from(">I", body, 12)[0] if name == b"stsz" else 0
    tables = {
        b"stsz": struct.pack(">III", 0, 0, count) + count * struct.pack(">I", size),
        b"stsc": struct.pack(">IIIII", 0, 1, 1, 1, 1),
        b"stts": struct.pack(">IIII", 0, 1, count, 1),
        b"stco": struct.pack(">II", 0, count) + count * body[8:12],
    }
    return tables.get(name, body)


def one_image_in_fragments(name: bytes, body: bytes) -> bytes | None:
    """Let each of 9,000 runs name the first image."""
    if name != b"traf":
        return body
    runs = body[body.index(b"trun") - 4 :]
    flags, _, offset, _, size = struct.unpack_from(">IIiII", runs, 8)
    assert flags == 0x205
    run = struct.pack(">I4sIIiI", 24, b"trun", 0x201, 1, offset, size)
    return body[: -len(runs)] + 9_000 * run


def outside(name: bytes, body: bytes) -> bytes | None:
    """Place the images among the tables."""
    return body[:8] + struct.pack(">I", 40) + body[12:] if name == b"stco" else body


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return video(tmp_path_factory.mktemp("plain") / "a.mp4")


@pytest.mark.parametrize(
    ("change", "flags", "text"),
    [
        (constant, "", "declares 8000000 samples, but has"),
        (fragment, FRAGMENTS, "declares 8000000 samples, but has"),
        (lambda name, body: body[:4] + b"\1" + body[5:] if name == b"elst" else body, "", "declares 16777217 edits"),
        (lambda name, body: body[:4] + b"\1" + body[5:] if name == b"stts" else body, "", "declares 16777217 times"),
        (one_image, "", "declares samples of "),
        (one_image_in_fragments, FRAGMENTS, "declares samples of "),
        (outside, "", "samples outside of its images"),
    ],
)
def test_declared_samples(
    tmp_path: Path, change: Callable[[bytes, bytes], bytes | None], flags: str, text: str
) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(rebuilt(video(path, flags), change))
    with pytest.raises(InputError, match=text):
        VideoReader(path, fps=30)


def test_repeated_samples(tmp_path: Path, plain: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each edit may repeat all samples."""
    monkeypatch.setattr(sample_tables, "MOST_SAMPLES", 399)
    path = tmp_path / "a.mp4"
    row = struct.pack(">III", 1, 0, 1 << 16)
    edits = struct.pack(">II", 0, 100) + 100 * row
    path.write_bytes(rebuilt(plain, lambda name, body: edits if name == b"elst" else body))
    with pytest.raises(InputError, match="declares 400 samples; the limit is 399"):
        VideoReader(path, fps=30)


def test_many_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the tables is small, but all of them are read."""
    path = tmp_path / "a.mp4"
    tables = box(b"styp", bytes(1000))
    path.write_bytes(video(path) + 100 * tables)
    monkeypatch.setattr(open_video, "_MOST_IN_ALL", 200_000)
    assert VideoReader(path, fps=30).read(0, 4).shape == (4, 64, 64, 3)
    path.write_bytes(path.read_bytes() + 100 * tables)
    with pytest.raises(InputError, match="boxes of more than 200000 bytes"):
        VideoReader(path, fps=30)


def box(name: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">I4s", len(body) + 8, name) + body


CHAPTERS = box(b"tref", box(b"chap", bytes(8)))
ITEMS = box(b"meta", bytes(4) + box(b"hdlr", bytes(25)) + box(b"iinf", struct.pack(">II", 1 << 24, 200_000_000)))


@pytest.mark.parametrize(
    ("place", "more", "text"),
    [
        (b"trak", CHAPTERS, "a box 'tref' in its trak"),
        (b"moov", CHAPTERS, "a box 'tref' in its moov"),
        (b"moov", box(b"cmov"), "a box 'cmov' in its moov"),
        (b"moov", ITEMS, "a box 'meta' in its moov"),
        (b"udta", ITEMS, "a second box 'meta' in its udta"),
        (b"udta", box(b"chpl"), "a box 'chpl' in its udta"),
        (b"meta", box(b"keys", bytes(8)), "a box 'keys' in its meta"),
        (b"ilst", box(b"covr"), "a box 'covr' in its ilst"),
        (b"ilst", box(b"\xa9nam", box(b"data", bytes(70_000))), "a box 'data' of 70000 bytes"),
        (b"stsd", box(b"mp4v", bytes(78)), "images of type 'mp4v'; only H.264, HEVC and AV1 are read"),
        (b"stsd", box(b"avc1", bytes(78)), "images of 0 bits a pixel"),
        (b"avc1", box(b"sinf", box(b"frma", b"avc1")), "a box 'sinf' in its avc1"),
        (b"stbl", box(b"sgpd", bytes(12)), "a box 'sgpd' in its stbl"),
        (b"stbl", box(b"stts", bytes(8)), "a second box 'stts' in its stbl"),
        (b"dref", box(b"alis", bytes(200)), "a box 'alis' in its dref"),
        (b"moov", box(b"free")[:7], "a table that ends early"),
        (b"moov", b"\0\0\0\x10udta", "a box 'udta' that does not fit in its moov"),
    ],
)
def test_unknown_boxes(tmp_path: Path, plain: bytes, place: bytes, more: bytes, text: str) -> None:
    """FFmpeg has readers for a hundred boxes; for example, it compares chapters with one another for hours."""
    path = tmp_path / "a.mp4"
    path.write_bytes(rebuilt(plain, lambda name, body: body + more if name == place else body))
    with pytest.raises(InputError, match=text):
        VideoReader(path, fps=30)


def test_sound(tmp_path: Path, plain: bytes) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(plain.replace(b"vide", b"soun"))
    with pytest.raises(InputError, match="a track or metadata of kind 'soun'; only a single track of video is read"):
        VideoReader(path, fps=30)


def test_tracks(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    video(path, tracks=2)
    with pytest.raises(InputError, match="several tracks; only a single track of video is read"):
        VideoReader(path, fps=30)


def test_hidden_fragment(tmp_path: Path) -> None:
    """An index may not name a place between boxes, where FFmpeg would find tables that nothing has checked."""
    path = tmp_path / "a.mp4"
    data = video(path, INDEXED)
    assert b"sidx" in data
    path.write_bytes(rebuilt(data, lambda name, body: body[:27] + b"\x09" + body[28:] if name == b"sidx" else body))
    with pytest.raises(InputError, match="does not exist"):
        VideoReader(path, fps=30)
    path.write_bytes(rebuilt(data, lambda name, body: body + bytes(12) if name == b"sidx" else body))
    with pytest.raises(InputError, match="declares an index of 1 fragments in 56 bytes"):
        VideoReader(path, fps=30)


@pytest.mark.parametrize("flags", ["", "+faststart", FRAGMENTS, INDEXED, "frag_keyframe+empty_moov"])
def test_ordinary_files(tmp_path: Path, flags: str) -> None:
    path = tmp_path / "a.mp4"
    video(path, flags)
    assert VideoReader(path, fps=30).read(0, 4).shape == (4, 64, 64, 3)
    with path.open("rb") as file, open_mp4(file) as container:
        assert len(container.streams.video) == 1


@pytest.mark.parametrize("codec", ["libx265", "libx264"])
def test_ordinary_codecs(tmp_path: Path, codec: str) -> None:
    """Each codec has its own boxes, as do frames in another order."""
    path = tmp_path / "a.mp4"
    write_video(path, pictures(0, 0, 15), codec=codec)
    assert VideoReader(path, fps=15).read(0, 15).shape == (15, 48, 64, 3)


def test_av1(tmp_path: Path) -> None:
    """The video is written in another process: for root, SVT-AV1 sets real-time priority for the process it runs in."""
    path = tmp_path / "a.mp4"
    subprocess.run([sys.executable, "-c", WRITE_AV1, str(path)], check=True, capture_output=True, cwd=ROOT)
    assert VideoReader(path, fps=15).read(0, 15).shape == (15, 48, 64, 3)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_a_path_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset that is opened as the current folder may name such a path, which FFmpeg would take for an address."""
    monkeypatch.chdir(tmp_path)
    video(tmp_path / "private.mp4", tracks=1)
    decoy = Path(f"file:{tmp_path}/private.mp4")
    for place in (Path("http:/127.0.0.1:9/a.mp4"), decoy):
        place.parent.mkdir(parents=True)
        video(tmp_path / place)
    (tmp_path / "private.mp4").unlink()
    for place in (Path("http:/127.0.0.1:9/a.mp4"), decoy):
        with open_mp4(place) as container:
            assert container.streams.video[0].width == 64


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
