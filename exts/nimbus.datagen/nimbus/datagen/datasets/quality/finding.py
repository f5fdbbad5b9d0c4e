"""Names and findings of the quality checks."""

from __future__ import annotations

from nimbus.datagen.errors import Diagnostic, Severity

CHECKS = {
    "checksums": "the files of an export by Nimbus have not changed",
    "files": "tables and videos exist, are complete, and have the columns that readers need",
    "counts": "the numbers of episodes, frames and tasks match the description",
    "offsets": "episodes begin at their declared offsets",
    "episode_index": "row i of the table of episodes is episode i",
    "row_index": "rows are numbered consecutively",
    "tasks": "the task of every row is in the table of tasks, as a text",
    "timestamps": "row k is at k / fps",
    "finite": "every number is finite",
    "stats": "the stored statistics match the data",
    "jumps": "no joint jumps for a single row",
    "limits": "joints stay within their limits",
    "constant": "every column changes",
    "still": "the robot moves",
    "action_lag": "the delay between actions and states is the same in every episode",
    "video_frames": "there are as many images as rows",
    "black": "no image is black",
    "frozen": "images change while joints move",
    "repeated": "successive rows have different images",
    "picture_order": "images are in the right order",
    "cameras": "no episode has swapped cameras",
    "colors": "red and blue are not swapped",
    "flow": "optical flow maps each image onto the next one",
    "keypoints": "keypoints project onto their objects",
    "same_pictures": "no two episodes show the same images with different motions",
    "duplicates": "no two episodes are the same",
    "leakage": "no motion is in two splits",
    "balance": "tasks have similar numbers of episodes",
    "lengths": "episodes have similar lengths",
    "coverage": "drawn values vary between episodes",
    "certificates": "the stored certificates are valid and cover these episodes",
}
"""Property that each check verifies."""
OF_PICTURES = (
    "video_frames",
    "black",
    "frozen",
    "repeated",
    "picture_order",
    "cameras",
    "colors",
    "same_pictures",
)
"""Checks that need images."""


class Unreadable(Exception):
    """Raised for a file that is missing, damaged or incomplete.

    Args:
        where: Location of the problem.
        what: Problem; only its first line is kept.
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what = where, what.split("\n")[0]


def fail(check: str, where: str, what: str) -> Diagnostic:
    """Return a finding with the severity FAIL."""
    return _make(check, Severity.FAIL, where, what)


def warn(check: str, where: str, what: str) -> Diagnostic:
    """Return a finding with the severity WARN."""
    return _make(check, Severity.WARN, where, what)


def _make(check: str, severity: Severity, where: str, what: str) -> Diagnostic:
    assert check in CHECKS, check
    return Diagnostic(check=check, severity=severity, where=where, what=what)
