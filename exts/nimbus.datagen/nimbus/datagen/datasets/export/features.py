"""Features and statistics of LeRobot datasets of both versions, and concatenation of their videos without encoding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.datasets.export.parquet import BOOL, FLOAT, INT, vector
from nimbus.datagen.datasets.export.parts import EpisodePart, EpisodeParts
from nimbus.datagen.datasets.export.source import Source
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.h264 import CODEC, ENCODER, GROUP, INDEXED, PIXELS, TICKS, container_options
from nimbus.datagen.store.episode_file.open_video import open_mp4
from nimbus.datagen.store.episode_file.statistics import VectorTotal, image_stats, vector_stats

_COUNTERS = ("frame_index", "episode_index", "index", "task_index")


def join(parts: Iterable[Path], target: Path, *, fps: int, flags: str = INDEXED) -> None:
    """Concatenate videos of Nimbus's encoder without encoding them again.

    Args:
        parts: Files of :class:`nimbus.datagen.store.episode_file.h264.Encoder`, written with equal settings.
        target: File to write; frame ``k`` is at exactly ``k / fps`` [s].
        fps: Frames per second [Hz].
        flags: Options of the container.

    Raises:
        InputError: A file cannot be read, or its encoder settings differ from those of the first file.
    """
    from nimbus.datagen.files.av_library import av

    tick = Fraction(1, fps * TICKS)
    frame = 0
    with av.open(str(target), "w", format="mp4", options=container_options(fps, flags)) as container:
        stream: Any = None
        parameters = b""
        for path in parts:
            with _opened(path) as part:
                source = part.streams.video[0]
                if stream is None:
                    stream = container.add_stream_from_template(source)
                    stream.time_base = tick
                    parameters = source.codec_context.extradata
                elif source.codec_context.extradata != parameters:
                    what = "the video is encoded differently from those of other episodes"
                    raise InputError(what, where=str(path), instead="run 'nimbus verify' for details")
                for packet in part.demux(source):
                    if not packet.size:
                        continue  # the demuxer marks the end with an empty packet
                    packet.stream, packet.time_base = stream, tick
                    packet.pts = packet.dts = frame * TICKS
                    packet.duration = TICKS
                    container.mux(packet)
                    frame += 1


def _opened(path: Path) -> Any:
    """Open a video of an episode."""
    try:
        return open_mp4(path, quick=False)
    except ValueError as error:
        what = f"not a readable video: {str(error).splitlines()[0]}"
        raise InputError(what, where=str(path), instead="run 'nimbus verify' for details") from None


def video_info(size: tuple[int, int], fps: int) -> dict[str, Any]:
    """Return the entry for a video in LeRobot's ``info.json``.

    Args:
        size: Width and height [px].
        fps: Frames per second [Hz].
    """
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


class Tasks:
    """Numbered instructions, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, wording: str) -> int:
        """Return the number of an instruction; a new one gets the next number."""
        return self._numbers.setdefault(wording, len(self._numbers))

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def features_of(source: Source) -> dict[str, Any]:
    """Return the field ``features`` of ``info.json``."""
    vectors = {
        "observation.state": source.state_names,
        "observation.velocity": source.joint_names,
        "action": source.control_names,
        **{name: names for name, names in source.extra_names.items() if names},
    }
    told = source.views.described() if source.views else {}
    flags = [name for name, names in source.extra_names.items() if not names]
    return {
        **{
            key: {"dtype": "float32", "shape": [len(names)], "names": list(names)}
            | ({"info": told[key]} if key in told else {})
            for key, names in vectors.items()
        },
        **{name: {"dtype": "bool", "shape": [1], "names": None} for name in flags},
        **{f"observation.images.{camera}": _video(size, source.fps) for camera, size in source.cameras.items()},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        **{name: {"dtype": "int64", "shape": [1], "names": None} for name in _COUNTERS},
    }


def _video(size: tuple[int, int], fps: int) -> dict[str, Any]:
    shape, names = [size[1], size[0], 3], ["height", "width", "channels"]
    return {"dtype": "video", "shape": shape, "names": names, "info": video_info(size, fps)}


def columns_of(part: EpisodePart, source: Source, tasks: Tasks, *, start: int) -> dict[str, tuple[Any, Any]]:
    """Return the rows of an episode: values and type by column.

    Args:
        part: Prepared episode.
        source: Dataset to export.
        tasks: Numbers of instructions, extended in place.
        start: Number of frames before the episode.
    """
    count, signals = part.item.step_count, part.signals
    frames, extra = np.arange(count), signals.extra.items()
    return {
        "observation.state": (signals.state, vector(signals.state.shape[1])),
        "observation.velocity": (signals.velocity, vector(signals.velocity.shape[1])),
        "action": (signals.action, vector(signals.action.shape[1])),
        **{name: (values, BOOL if values.ndim == 1 else vector(values.shape[1])) for name, values in extra},
        "timestamp": ((frames / source.fps).astype(np.float32), FLOAT),
        "frame_index": (frames, INT),
        "episode_index": (np.full(count, part.item.position), INT),
        "index": (frames + start, INT),
        "task_index": (np.full(count, tasks.number(signals.instruction)), INT),
    }


def episode_stats(part: EpisodePart, source: Source, tasks: Tasks, *, start: int) -> dict[str, dict[str, Any]]:
    """Return the statistics of one episode by feature; the arguments are those of :func:`columns_of`."""
    columns = columns_of(part, source, tasks, start=start)
    count = part.item.step_count
    return {
        **{name: vector_stats(values) for name, (values, _) in columns.items()},
        **{f"observation.images.{name}": image_stats(found, count) for name, found in part.histograms.items()},
    }


def dataset_stats(source: Source, parts: EpisodeParts, tasks: Tasks) -> dict[str, dict[str, Any]]:
    """Return the statistics of all episodes, by feature."""
    totals: dict[str, VectorTotal] = {}
    counts: dict[str, Any] = {}
    start = 0
    for part in parts:
        for name, (values, _) in columns_of(part, source, tasks, start=start).items():
            totals.setdefault(name, VectorTotal(source.frame_count)).add(values)
        for camera, found in part.histograms.items():
            counts[camera] = counts.get(camera, 0) + found
        start += part.item.step_count
    images = {f"observation.images.{name}": image_stats(found, source.frame_count) for name, found in counts.items()}
    return {name: total.stats() for name, total in totals.items()} | images
