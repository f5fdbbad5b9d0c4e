"""Assembly of video files from segments of other video files: packets are copied, and nothing is encoded again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.convert.lerobot_set import VideoClip
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.decode import limit_pixels
from nimbus.datagen.store.episode_file.open_video import open_mp4

_TICKS = 1000
"""Ticks of a file's clock per frame; times are whole numbers in files of any length."""
_FAR = 10**12
"""Number of ticks that exceeds all times in a file; its negative serves as the time before the first packet."""
_OFF = 0.1
"""Largest accepted error of a time stamp, as a fraction of a frame's duration."""
_INDEXED = "frag_keyframe+delay_moov+default_base_moof+global_sidx"
"""Container flags for fragments with one index before them; a long file then opens as fast as a short one."""
_FRAGMENT = 1_000_000
"""Smallest duration of a fragment [µs]; a codec with a keyframe every other frame would otherwise cause thousands of
fragments."""
_BEFORE = 1000
"""Number of images before the first keyframe of a file that are read, and then left out."""
_SEE_QA = "run 'nimbus qa' for details"


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Segment of a video with the images of one episode."""

    clip: VideoClip
    length: int
    """Number of images."""
    name: str
    """Name of the segment in messages."""


@dataclass(frozen=True, kw_only=True)
class Packets:
    """Encoded images of one episode, in decoding order."""

    packets: list[Any]
    frames: NDArray[np.int64]
    """(P,) index of each packet's image in the episode, from 0."""
    decoded: NDArray[np.float64]
    """(P,) decoding time of each packet, from the start of the episode [frames]."""


def remux(cuts: Sequence[Cut], target: Callable[[int], Path], *, fps: int, indexed: bool) -> list[int]:
    """Concatenate segments of videos without decoding; frame ``k`` of a file is at exactly ``k / fps`` [s].

    A new file begins when the parameters of the codec change, because a file has a single set of parameters.

    Args:
        cuts: Segments in order.
        target: Returns the path of a file, given its number from 0.
        fps: Frames per second [Hz].
        indexed: Write fragments with an index, for long files; otherwise a plain file.

    Returns:
        Number of episodes in each file.

    Raises:
        InputError: A video cannot be read, lacks frames, or cannot be cut at the border of a segment.
    """
    counts: list[int] = []
    joined: _Joined | None = None
    known: Any = None
    try:
        for cut in cuts:
            with _opened(cut) as (container, stream):
                parameters = _parameters(stream)
                if joined is None or parameters != known:
                    if joined is not None:
                        joined.close()
                    joined, known = _Joined(target(len(counts)), stream, fps=fps, indexed=indexed), parameters
                    counts.append(0)
                joined.add(_packets(container, stream, cut, fps=fps), cut.length)
                counts[-1] += 1
    finally:
        if joined is not None:
            joined.close()
    return counts


def check_whole(cut: Cut, *, fps: int) -> None:
    """Check that a video contains all frames of a segment, without copying them.

    Raises:
        InputError: The video cannot be read, or lacks frames.
    """
    with _opened(cut) as (container, stream):
        _packets(container, stream, cut, fps=fps)


class _Joined:
    """Video file that grows by one episode at a time."""

    def __init__(self, path: Path, template: Any, *, fps: int, indexed: bool) -> None:
        from nimbus.datagen.files.av_library import av

        options = {"movflags": _INDEXED if indexed else "+faststart", "video_track_timescale": str(fps * _TICKS)}
        if indexed:
            options["min_frag_duration"] = str(_FRAGMENT)
        self._container: Any = av.open(str(path), "w", format="mp4", options=options)
        self._stream: Any = self._container.add_stream_from_template(template)
        self._tick = Fraction(1, fps * _TICKS)
        self._stream.time_base = self._tick
        self._start = 0
        self._last = -_FAR

    def add(self, found: Packets, length: int) -> None:
        """Append an episode."""
        base, last, stream, tick = self._start * _TICKS, self._last, self._stream, self._tick
        times = (base + found.frames * _TICKS).tolist()
        moments = (base + np.rint(found.decoded * _TICKS).astype(np.int64)).tolist()
        for packet, shown, moment in zip(found.packets, times, moments, strict=True):
            if moment <= last:
                moment = last + 1  # decoding times must grow between episodes, too
            last = moment if moment < shown else shown
            packet.stream, packet.time_base = stream, tick
            packet.pts, packet.dts, packet.duration = shown, last, _TICKS
        self._container.mux(found.packets)
        self._last = last
        self._start += length

    def close(self) -> None:
        self._container.close()


class _opened:
    """Context manager that opens a video file; errors of the codec library become an ``InputError``."""

    def __init__(self, cut: Cut) -> None:
        self._cut = cut

    def __enter__(self) -> tuple[Any, Any]:
        from nimbus.datagen.files.av_library import FFmpegError

        try:
            self._container: Any = open_mp4(self._cut.clip.path, quick=False)
            stream = self._container.streams.video[0]
            limit_pixels(stream)
            if stream.time_base is None:
                raise ValueError("its images have no times")
            return self._container, stream
        except (OSError, ValueError, IndexError, FFmpegError) as error:
            raise _unreadable(self._cut, error) from None

    def __exit__(self, kind: object, error: object, _: object) -> None:
        from nimbus.datagen.files.av_library import FFmpegError

        self._container.close()
        if isinstance(error, FFmpegError):
            raise _unreadable(self._cut, error) from None


def _packets(container: Any, stream: Any, cut: Cut, *, fps: int) -> Packets:
    """Return the packets of a segment, after a check that each frame exists once and the first is a keyframe."""
    unit = float(stream.time_base * fps)
    start: int | None = None
    if not cut.clip.is_whole:
        start = round(Fraction(cut.clip.begin).limit_denominator(10**9) / stream.time_base)
        container.seek(max(0, start), stream=stream)
    packets = _taken(container, stream, cut, start, unit)
    begin = packets[0].pts if start is None and packets else start or 0
    places = (np.array([packet.pts for packet in packets], np.float64) - begin) * unit
    if cut.clip.is_whole and (places < -_OFF).any():  # frames before the first keyframe cannot be decoded
        packets = [packet for packet, place in zip(packets, places, strict=True) if place >= -_OFF]
        places = places[places >= -_OFF]
    frames = np.rint(places).astype(np.int64)
    for number, packet in enumerate(packets):
        if packet.is_corrupt:
            raise InputError(f"image {frames[number]} is truncated", where=cut.name, instead=_SEE_QA)
    if (off := np.flatnonzero(np.abs(places - frames) >= _OFF)).size:
        what = f"the time of image {off[0]} is not a multiple of 1/{fps} s"
        raise InputError(what, where=cut.name, instead=_SEE_QA)
    moments = [packet.pts if packet.dts is None else packet.dts for packet in packets]
    found = Packets(packets=packets, frames=frames, decoded=(np.array(moments, np.float64) - begin) * unit)
    _check(found, cut)
    return found


def _taken(container: Any, stream: Any, cut: Cut, start: int | None, unit: float) -> list[Any]:
    """Return the packets of a segment.

    Args:
        container: Opened file.
        stream: Video stream of the file.
        cut: Segment.
        start: Time of the first image [ticks of the stream]; None if the file contains only this segment.
        unit: Number of frames per tick of the stream.
    """
    most = 2 * cut.length + _BEFORE
    packets: list[Any] = []
    for packet in container.demux(stream):
        if packet.pts is None:
            if not packet.size:
                continue  # the demuxer marks the end with an empty packet
            raise InputError("a frame has no time stamp", where=cut.name, instead=_SEE_QA)
        if start is not None:
            frame = round((packet.pts - start) * unit)
            if frame >= cut.length and len(packets) == cut.length:
                break
            if not 0 <= frame < cut.length:
                continue
        packets.append(packet)
        if len(packets) > most:
            what = f"there are more than {most} images, but {cut.length} rows"
            raise InputError(what, where=cut.name, instead=_SEE_QA)
    return packets


def _check(found: Packets, cut: Cut) -> None:
    if len(found.frames) != cut.length or (np.sort(found.frames) != np.arange(cut.length)).any():
        what = f"there are {len(found.frames)} images, but {cut.length} rows"
        if len(found.frames) == cut.length:
            what = "frames are missing or repeated"
        raise InputError(what, where=cut.name, instead=_SEE_QA)
    if not found.packets[0].is_keyframe:
        what = "the segment does not begin with a keyframe; it cannot be cut without encoding it again"
        raise InputError(what, where=cut.name, instead="keep the neighboring episodes too")


def _parameters(stream: Any) -> tuple[Any, ...]:
    codec = stream.codec_context
    return codec.name, codec.width, codec.height, codec.pix_fmt, codec.extradata


def _unreadable(cut: Cut, error: BaseException) -> InputError:
    no_video = "it contains no video" if isinstance(error, IndexError) else ""
    reason = no_video or getattr(error, "strerror", None) or str(error)
    return InputError(f"cannot be read: {reason}", where=cut.name, instead="restore it from a copy")
