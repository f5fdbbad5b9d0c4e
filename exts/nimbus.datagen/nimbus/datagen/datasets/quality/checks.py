"""All quality checks of a dataset, in a single pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.appearance import check_looks
from nimbus.datagen.datasets.quality.cross_episode import CrossEpisodeChecks, spread_of
from nimbus.datagen.datasets.quality.finding import OF_PICTURES, Unreadable, fail
from nimbus.datagen.datasets.quality.pictures import CameraStatistics, PictureChecks
from nimbus.datagen.datasets.quality.signals import JointLimits, SignalChecks, find_joint_limits
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.datasets.quality.view import EpisodeView, View
from nimbus.datagen.errors import Diagnostic, Severity
from nimbus.datagen.files.scene_files import is_path

_STRIPS = 6
"""Number of episodes whose images are kept for a page."""


def check_rows(clip: EpisodeView, view: View, thresholds: Thresholds) -> Iterator[Diagnostic]:
    """Check the numbers, times and tasks in the rows of one episode."""
    columns = clip.columns
    count = len(columns["timestamp"]) if "timestamp" in columns else clip.length
    if count != clip.length:
        yield fail("counts", clip.name, f"there are {count} rows, expected {clip.length}")
    expected = {"frame_index": np.arange(count), "index": np.arange(count) + clip.start}
    for name, values in expected.items():
        if name in columns and not np.array_equal(columns[name], values):
            row = int(np.argmax(columns[name] != values))
            yield fail("row_index", clip.name, f"{name} of row {row} is {columns[name][row]}, expected {values[row]}")
    if "timestamp" in columns and count:
        late = np.abs(columns["timestamp"] - np.arange(count) / view.fps)
        if not late.max() <= thresholds.grid:  # the negation also finds NaN
            row = int(np.argmax(~(late <= thresholds.grid)))
            yield fail("timestamps", clip.name, f"the time of row {row} is {late[row]:.4f} s off, at {view.fps:g} Hz")
    if view.wordings and "task_index" in columns:
        for number in sorted({*columns["task_index"].tolist()} - {*view.wordings}):
            yield fail("tasks", clip.name, f"task {number} is not in the table of tasks")


@dataclass(frozen=True, kw_only=True)
class Examination:
    """Result of the quality checks of a dataset."""

    findings: tuple[Diagnostic, ...]
    episode_count: int
    frame_count: int
    picture_count: int
    """Number of images of all cameras."""
    pictures_looked_at: int
    """Number of decoded images."""
    lengths: Mapping[int, int] = field(default_factory=dict)
    """Number of rows by episode."""
    tasks: Mapping[str, int] = field(default_factory=dict)
    """Number of episodes by instruction."""
    ranges: Mapping[str, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = field(default_factory=dict)
    """Smallest, mean and largest value of each column, by feature."""
    drawn: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Drawn values, one per plan, by name."""
    looks: tuple[CameraStatistics, ...] = ()
    """Image statistics of the first episodes, with images for a page."""
    unchecked: Mapping[str, str] = field(default_factory=dict)
    """Reason why a check was not run, by name of the check."""

    @property
    def is_fit(self) -> bool:
        """True if no check failed; warnings are allowed."""
        return not any(finding.severity is Severity.FAIL for finding in self.findings)


def check(view: View, thresholds: Thresholds | None = None) -> list[Diagnostic]:
    """Run all checks of a dataset, and return the findings."""
    return list(examine(view, thresholds).findings)


def examine(
    view: View,
    thresholds: Thresholds | None = None,
    *,
    robot: str = "",
    strips: bool = False,
    tell: Callable[[int], None] = lambda left: None,
) -> Examination:
    """Read a dataset once and run all checks.

    Args:
        view: Dataset to check.
        thresholds: Limits of the checks.
        robot: Name or file of the robot, whose joint limits are checked; by default the robot of the dataset.
        strips: Keep images of the first episodes for a page.
        tell: Called with the number of remaining episodes.
    """
    thresholds = thresholds or Thresholds()
    found = list(view.structure())
    stated = "" if is_path(view.robot) else view.robot  # a dataset of others could name a private file
    limits = find_joint_limits(robot or stated, view.joint_names)
    signals = SignalChecks(view.stats, thresholds, limits=limits, frame_count=view.frame_count, fps=view.fps)
    pictures, together = PictureChecks(view, thresholds), CrossEpisodeChecks()
    camera_count = 0
    for done, clip in enumerate(view.clips(), start=1):
        tell(view.episode_count - done)
        if isinstance(clip, Diagnostic):
            found.append(clip)
            continue
        camera_count = max(camera_count, len(clip.images))
        found += clip.findings
        found += check_rows(clip, view, thresholds)
        found += signals.add(clip)
        together.add(clip)
        try:
            found += pictures.add(clip, strips=strips and clip.number < _STRIPS)
        except Unreadable as error:
            found.append(fail("files", error.where, error.what))
    found += signals.end()
    found += check_looks(pictures.looks, stats=view.stats, motions=together.motions, thresholds=thresholds)
    found += together.end(view, thresholds)
    return Examination(
        findings=tuple(found),
        episode_count=len(together.lengths),
        frame_count=sum(together.lengths.values()),
        picture_count=sum(together.lengths.values()) * camera_count,
        pictures_looked_at=pictures.looked_at,
        lengths=together.lengths,
        tasks={str(view.wordings.get(number, number)): count for number, count in together.tasks.most_common()},
        ranges={
            name: (known["low"], known["sum"] / known["count"], known["high"]) for name, known in signals.totals.items()
        },
        drawn=spread_of(together.drawn),
        looks=tuple(look for look in pictures.looks if look.strip),
        unchecked=dict(_unchecked(view, together, limits=limits, cameras=camera_count, least=thresholds.few)),
    )


def _unchecked(
    view: View, together: CrossEpisodeChecks, *, limits: JointLimits | None, cameras: int, least: int
) -> Iterator[tuple[str, str]]:
    """Yield the checks that were not run, with the reason."""
    if limits is None:
        yield "limits", "the joint limits are not known; give --robot NAME"
    if not cameras:
        yield from ((name, "there are no images") for name in OF_PICTURES)
    if not view.wordings:
        yield "tasks", "there is no table of tasks"
    if not view.splits:
        yield "leakage", "there are no splits"
    if not view.stats:
        yield "stats", "there are no stored statistics"
    if len(together.lengths) < least:
        yield from ((name, f"there are fewer than {least} episodes") for name in ("balance", "coverage"))
    elif not together.drawn:
        yield "coverage", "drawn values are not stored"
    yield from ((name, "not stored") for name in ("checksums", "certificates") if name not in view.proofs)
