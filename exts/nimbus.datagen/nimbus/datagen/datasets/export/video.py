"""Videos of an export: many files joined into one without encoding again."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.h264 import CODEC, ENCODER, GROUP, INDEXED, PIXELS, TICKS, container_options


def join(parts: Iterable[Path], target: Path, *, fps: int, flags: str = INDEXED) -> None:
    """Put videos of the same encoder one behind the other; no frame is encoded again.

    Args:
        parts: Files of :class:`nimbus.datagen.store.episode_file.h264.Encoder`, of the same settings.
        target: The file to write; frame ``k`` of all is at ``k / fps`` seconds exactly.
        fps: Frames a second.
        flags: How the file is laid out.

    Raises:
        InputError: A file cannot be read, or was encoded otherwise than those before it.
    """
    import av

    tick = Fraction(1, fps * TICKS)
    frame = 0
    with av.open(str(target), "w", format="mp4", options=container_options(fps, flags)) as container:
        stream: Any = None
        parameters = b""
        for path in parts:
            with av.open(str(path)) as part:
                source = part.streams.video[0]
                if stream is None:
                    stream = container.add_stream_from_template(source)
                    stream.time_base = tick
                    parameters = source.codec_context.extradata
                elif source.codec_context.extradata != parameters:
                    what = "was encoded otherwise than the others"
                    raise InputError(what, where=str(path), instead="see what 'nimbus verify' says")
                for packet in part.demux(source):
                    if not packet.size:
                        continue  # the demuxer's mark of the end
                    packet.stream, packet.time_base = stream, tick
                    packet.pts = packet.dts = frame * TICKS
                    packet.duration = TICKS
                    container.mux(packet)
                    frame += 1


def video_info(size: tuple[int, int], fps: int) -> dict[str, Any]:
    """What LeRobot's ``info.json`` says of a video."""
    return {
        "video.height": size[1],
        "video.width": size[0],
        "video.codec": CODEC,
        "video.pix_fmt": PIXELS,
        "video.is_depth_map": False,
        "video.fps": fps,
        "video.channels": 3,
        "video.g": GROUP,
        "video.crf": int(ENCODER["crf"]),
        "video.preset": ENCODER["preset"],
        "has_audio": False,
    }
