"""Division of an export into files: limits of their sizes, and the paths of files in LeRobot datasets and shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

FILES_IN_CHUNK = 1000
"""Number of files in a folder."""
DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
EPISODES = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
DATA_V21 = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
VIDEO_V21 = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
MANIFEST, SHARD = "manifest.parquet", "shards/{number:06d}.tar"
FORMAT = "nimbus-shards-1"
"""Version of the format of a shard manifest."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Limits of the size of files."""

    episode_size: int = 1000
    """Largest number of episodes in a file; in LeRobot v2.1, in a folder."""
    shard_bytes: int = 10**9
    """Largest size of a file [bytes]; a larger episode is stored alone in a file."""


def pack(sizes: Sequence[int], limit: int, most: int) -> list[int]:
    """Assign successive episodes to files.

    Args:
        sizes: Size of each episode [bytes].
        limit: Largest size of a file [bytes]; exceeded only by a single larger episode.
        most: Largest number of episodes in a file.

    Returns:
        Number of the file of each episode, ascending from 0.
    """
    numbers: list[int] = []
    number, filled, count = 0, 0, 0
    for size in sizes:
        if count and (filled + size > limit or count == most):
            number, filled, count = number + 1, 0, 0
        numbers.append(number)
        filled, count = filled + size, count + 1
    return numbers


def groups(numbers: Sequence[int]) -> Iterator[tuple[int, range]]:
    """Yield each file's number and its episodes, given the number of each episode's file."""
    start = 0
    for stop in range(1, len(numbers) + 1):
        if stop == len(numbers) or numbers[stop] != numbers[start]:
            yield numbers[start], range(start, stop)
            start = stop


def place(number: int) -> dict[str, int]:
    """Return the number of a file's folder, and the file's number in that folder."""
    return {"chunk_index": number // FILES_IN_CHUNK, "file_index": number % FILES_IN_CHUNK}
