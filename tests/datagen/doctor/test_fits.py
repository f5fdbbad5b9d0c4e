from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.doctor.case import Case
from nimbus.datagen.doctor.diagnosis import Diagnosis
from nimbus.datagen.doctor.fits import check_carried, check_fit
from nimbus.datagen.doctor.forecast import Forecast, check_attempts
from nimbus.datagen.load.scene_loader import load_assets
from nimbus.datagen.tasks.plugins import discover_components
from nimbus.datagen.tasks.task import load_task
from nimbus.runner.commands.doctor import lines

discover_components()

MARKER = """\
robot: panda
scene: table
regions:
  left: {on: table, center: [0.45, 0.2], size: [0.06, 0.06]}
  right: {on: table, center: [0.5, -0.1], size: [0.15, 0.15]}
objects:
  holder: {library: containers, kinds: [red_pencil_cup], region: left}
  pen: {library: tools, kinds: [black_marker], region: right}
steps:
  - pick: pen
  - place: {object: pen, into: holder}
success:
  - inside: {object: pen, container: holder}
cameras: {}
instructions: ["Put {pen} into {holder}."]
"""


def case_of(text: str, folder: Path) -> Case:
    path = folder / "marker.yaml"
    path.write_text(text)
    task = load_task(path)
    return Case(task, load_assets(task))


def test_a_lying_marker_does_not_fit_a_cup(tmp_path: Path) -> None:
    """Both small sides fit, but the skill does not tilt the marker."""
    case = case_of(MARKER, tmp_path)
    assert list(check_fit(case)) == []
    (found,) = check_carried(case)
    assert (found.field, found.is_certain) == ("steps[1].place.into", False)
    assert "'black_marker' is 2 x 12 cm from above as it starts, but the opening is 7 x 7 cm" in found.what


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("red_pencil_cup", "red_bin"),
        ("{library: tools, kinds: [black_marker]", "{library: blocks, kinds: [red_cube]"),
    ],
)
def test_what_fits_is_not_reported(old: str, new: str, tmp_path: Path) -> None:
    assert list(check_carried(case_of(MARKER.replace(old, new), tmp_path))) == []


def test_failed_attempts_give_a_finding_and_no_percentage(tmp_path: Path) -> None:
    case = case_of(MARKER, tmp_path)
    failed = {"place pen_0 release: toppled": 2, "success inside: not_in_bin": 1}
    details = {"success inside: not_in_bin": "pen_0 is not in holder_0"}
    made = Forecast(probes=3, successes=0, reasons=failed, details=details, episode=None)
    (found,) = check_attempts(case, made)
    assert found.field == "steps[1].place" and not found.is_certain
    printed = "\n".join(lines(Diagnosis(task="marker", findings=(found,), forecast=made)))
    assert "none of 3 attempts succeeded: 2 x place pen_0 release: toppled; 1 x success" in printed
    assert "nothing to change" not in printed and "%" not in printed
    assert "yield      0 successes in 3 attempts: no forecast\n" in printed
    assert "failed: success inside: not_in_bin, 1 x, for example: pen_0 is not in holder_0" in printed


def test_a_condition_that_fails_most_is_named(tmp_path: Path) -> None:
    made = Forecast(probes=3, successes=0, reasons={"success inside: not_in_bin": 3}, episode=None)
    (found,) = check_attempts(case_of(MARKER, tmp_path), made)
    assert found.field.startswith("success")
