"""Jobs of a conversion to LeRobot v3.0; complete files are not written again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nimbus.datagen.datasets.convert.plan import ConversionPlan
from nimbus.datagen.datasets.convert.remux import remux
from nimbus.datagen.datasets.convert.rows import Rows, episode_stats, numbers_of, side_by_side
from nimbus.datagen.datasets.export.parquet import GROUP_ROWS
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import replacing, sync_file
from nimbus.datagen.store.publish import disk


@dataclass(frozen=True, kw_only=True)
class ConversionJob:
    """Part of a conversion: the rows of some episodes, or their images from one camera."""

    number: int
    """Number of the job among the jobs of its feature."""
    feature: str
    """Feature of the camera's images; empty for rows."""
    positions: range
    """New indices of the episodes."""


@dataclass(frozen=True, kw_only=True)
class JobOutput:
    """Files written by a job."""

    files: tuple[Path, ...]
    counts: tuple[int, ...]
    """Number of episodes in each file."""
    stats: NDArray[np.float64]
    """(E, S, D) statistics of each episode's rows; empty for images."""
    sizes: dict[str, int]
    """Number of columns of each feature in the statistics; their sum is D."""


class ConversionJobs:
    """Runs the jobs of a plan, and reads their output.

    Args:
        plan: Plan of the new dataset.
        folder: Destination of the files.
    """

    def __init__(self, plan: ConversionPlan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._features = ("", *plan.source.videos)

    def is_done(self, job: ConversionJob) -> bool:
        """Return True if the files of a job are complete."""
        return self._seal(job).exists()

    def do(self, job: ConversionJob) -> None:
        """Write the files of a job; the record that they are complete is written last.

        Raises:
            InputError: A file of the source cannot be read, or contradicts its tables.
            StorageError: The disk is full.
        """
        with disk(self._folder):
            if job.feature:
                paths: list[Path] = []
                cuts = self._plan.cuts(job.feature, job.positions)
                counts = remux(cuts, self._namer(job, paths), fps=self._plan.source.fps, indexed=True)
                stats, sizes = np.zeros(0), {}
            else:
                paths, counts = [self._path(job, 0, "parquet")], [len(job.positions)]
                stats, sizes = self._write_rows(job, paths[0])
            for path in paths:
                sync_file(path)
            with replacing(self._seal(job), durable=True, shared=False) as temporary, temporary.open("wb") as file:
                np.savez(file, stats=stats, counts=counts, names=[*sizes], sizes=[*sizes.values()])

    def read(self, job: ConversionJob) -> JobOutput:
        """Return the output of a completed job."""
        with np.load(self._seal(job)) as found:
            counts = tuple(found["counts"].tolist())
            sizes = dict(zip(found["names"].tolist(), found["sizes"].tolist(), strict=True))
            kind = "mp4" if job.feature else "parquet"
            files = tuple(self._path(job, number, kind) for number in range(len(counts)))
            return JobOutput(files=files, counts=counts, stats=found["stats"], sizes=sizes)

    def _write_rows(self, job: ConversionJob, path: Path) -> tuple[NDArray[np.float64], dict[str, int]]:
        rows, stats, sizes = Rows(self._plan), [], None
        writer: Any = None
        starts = self._plan.starts
        try:
            for positions in self._groups(job.positions):
                table = rows.read(positions)
                writer = writer or pq.ParquetWriter(path, table.schema, compression="snappy")
                writer.write_table(table, row_group_size=len(table))
                numbers = numbers_of(table)
                found = {name: values.shape[1] for name, values in numbers.items()}
                sizes = found if sizes is None else sizes
                if found != sizes:
                    raise self.uneven(positions, found.items() ^ sizes.items())
                every, first = side_by_side(numbers), starts[positions[0]]
                stats += [episode_stats(every[starts[one] - first : starts[one + 1] - first]) for one in positions]
        finally:
            if writer is not None:
                writer.close()
        return np.stack(stats), sizes or {}

    def _groups(self, positions: range) -> Iterator[range]:
        """Yield the episodes of each row group."""
        starts, first = self._plan.starts, positions.start
        for stop in range(positions.start + 1, positions.stop + 1):
            if starts[stop] - starts[first] >= GROUP_ROWS or stop == positions.stop:
                yield range(first, stop)
                first = stop

    def uneven(self, positions: range, odd: Iterable[tuple[str, int]]) -> InputError:
        """Return the error for episodes whose columns differ from those of the others.

        Args:
            positions: New indices of the episodes.
            odd: Names and sizes of the columns that differ.
        """
        name = min(odd)[0]
        what = f"column {name} has empty cells, or cells of another size, in episodes {positions[0]} to {positions[-1]}"
        where = str(self._plan.source.folder)
        return InputError(what, where=where, instead="fill it with values of one size in every row, or drop it")

    def _namer(self, job: ConversionJob, paths: list[Path]) -> Callable[[int], Path]:
        def name(number: int) -> Path:
            paths.append(self._path(job, number, "mp4"))
            return paths[-1]

        return name

    def _path(self, job: ConversionJob, number: int, kind: str) -> Path:
        return self._folder / f"{self._features.index(job.feature)}-{job.number:06d}-{number}.{kind}"

    def _seal(self, job: ConversionJob) -> Path:
        return self._folder / f"{self._features.index(job.feature)}-{job.number:06d}.npz"
