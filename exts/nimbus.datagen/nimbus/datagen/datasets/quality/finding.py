"""Findings of quality checks."""

from __future__ import annotations

from nimbus.datagen.errors import Diagnostic, Severity

CHECKS = {
    "checksums": "files of an export of Nimbus are those that were written",
    "files": "tables and videos are there, whole, with the columns that readers ask for",
    "counts": "numbers of episodes, frames and tasks match the description",
    "offsets": "episodes begin at their declared offsets",
    "episode_index": "row i is episode i",
    "row_index": "rows are numbered",
    "tasks": "every row's task is in the table, as a text",
    "timestamps": "row k is at k / fps",
    "finite": "every number is finite",
    "stats": "stored statistics are those of the data",
    "jumps": "no joint is elsewhere for a single row",
    "limits": "joints stay in their limits",
    "constant": "every column changes",
    "still": "the robot moves",
    "action_lag": "actions lead to the states after them, in every episode alike",
    "video_frames": "as many pictures as rows",
    "black": "no picture is black",
    "frozen": "pictures change while joints move",
    "repeated": "every row has a picture of its own",
    "picture_order": "pictures are in their order",
    "cameras": "no episode has its cameras exchanged",
    "colors": "red and blue are not exchanged",
    "flow": "optical flow leads each image onto the next",
    "keypoints": "keypoints project onto their objects",
    "same_pictures": "no two episodes show the same pictures with different motions",
    "duplicates": "no two episodes are the same",
    "leakage": "no motion is in two splits",
    "balance": "tasks have about as many episodes",
    "lengths": "episodes are about as long",
    "coverage": "drawn values vary from episode to episode",
    "certificates": "stored certificates are of these episodes, and hold",
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
"""Checks of images."""


class Unreadable(Exception):
    """Raised for a file that is missing, damaged or incomplete."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what = where, what.split("\n")[0]


def fail(check: str, where: str, what: str) -> Diagnostic:
    """Return a finding that fails the dataset."""
    return _make(check, Severity.FAIL, where, what)


def warn(check: str, where: str, what: str) -> Diagnostic:
    """Return a finding that deserves a look."""
    return _make(check, Severity.WARN, where, what)


def _make(check: str, severity: Severity, where: str, what: str) -> Diagnostic:
    assert check in CHECKS, check
    return Diagnostic(check=check, severity=severity, where=where, what=what)
