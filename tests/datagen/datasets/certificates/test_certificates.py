"""Certificates are valid for a real run, broken after a change, and copied with the data."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from nimbus.datagen.datasets.certificates.labels import LabelCheck, bent_points, check_labels
from nimbus.datagen.datasets.certificates.record import FILE_NAME, MEANING, attach_certificates, read_certificates
from nimbus.datagen.datasets.certificates.subject import render_certificates
from nimbus.datagen.datasets.convert.convert import convert
from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.quality.checks import check
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.checks.certify import _guarded, _rerender, account, certify
from nimbus.runner.checks.replay import replay
from nimbus.runner.cli import main
from tests.support.runs import run
from tests.support.synthetic import make_rendered, write_dataset


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a real, certified run of two episodes."""
    folder = tmp_path_factory.mktemp("data") / "data"
    assert run("--episodes", "2", out=folder) == 0
    before = dataset_hashes(folder)
    certify(folder, sample=None)
    assert dataset_hashes(folder) == before and verify(folder).problems == ()
    return folder


@pytest.fixture
def copy(data: Path, tmp_path: Path) -> Path:
    return shutil.copytree(data, tmp_path / "data")


def first(folder: Path) -> Path:
    return sorted((folder / "episodes").glob("*.hdf5"))[0]


def change(path: Path, name: str, edit: Any) -> None:
    with h5py.File(path, "r+") as file:
        values: Any = file[name]
        values[...] = edit(values[()])


def labels_of(path: Path) -> LabelCheck:
    with EpisodeFile(path) as episode:
        return check_labels(episode, np.array([0, episode.step_count // 2, episode.step_count - 1]))


def camera_of(folder: Path) -> str:
    return next(iter(json.loads((folder / "dataset.json").read_text())["cameras"]))


@pytest.mark.slow
def test_everything_holds_for_a_real_run(data: Path):
    found = read_certificates(data)
    assert found and {one.name: one.holds for one in found.certificates} == dict.fromkeys(MEANING, True)
    figures = {one.name: one.figures for one in found.certificates}
    assert figures["accounting"]["planned"] == figures["accounting"]["stored"] == 2
    assert figures["labels"]["things_seen"] > 20 and figures["rerender"]["least_dB"] >= 30
    assert figures["replay"]["same_outcome"] == 2 and figures["replay"]["joint_error"] < 1e-9


@pytest.mark.slow
def test_shifted_masks_break_the_rendering_and_the_labels(copy: Path):
    change(first(copy), f"observations/instance/{camera_of(copy)}", lambda masks: np.roll(masks, 5, axis=2))
    found = {one.name: one.holds for one in certify(copy, sample=1).certificates}
    # The size of the file differs from the ledger.
    assert found == {"accounting": False, "labels": False, "rerender": False, "replay": True}


def test_images_of_an_external_renderer_are_not_compared():
    made = _guarded("rerender", [], lambda: _rerender([], [], {"render external": "2"}))
    assert made.holds is None and made.note.startswith("an external renderer made the images")


@pytest.mark.slow
def test_another_camera_pose_breaks_the_labels(copy: Path):
    def moved(poses: Any) -> Any:
        poses[:, :3, 3] += (0.2, 0.0, 0.0)
        return poses

    assert labels_of(first(copy)).problems == ()
    change(first(copy), f"observations/world_T_camera/{camera_of(copy)}", moved)
    assert any("the pose" in problem for problem in labels_of(first(copy)).problems)


@pytest.mark.slow
def test_labels_of_flexible_objects_follow_their_points():
    """A cloth spans its vertices; a cable of two links of 0.1 m along y is as thick as its links, and ends with one."""
    square = np.array([[0.0, 0.0, 0.1], [0.2, 0.0, 0.1], [0.0, 0.2, 0.3]])
    assert bent_points(square, np.zeros((3, 4)), thickness=0.0) is square
    along_y = np.tile([2**-0.5, 0.0, 0.0, 2**-0.5], (2, 1))
    points = bent_points(np.array([[0.5, 0.0, 0.0], [0.5, 0.1, 0.0]]), along_y, thickness=0.02)
    assert np.allclose(points.min(axis=0), (0.49, -0.01, -0.01))
    assert np.allclose(points.max(axis=0), (0.51, 0.21, 0.01))


def test_other_actions_break_the_replay(copy: Path):
    change(first(copy), "executed_action", lambda actions: actions[:1].repeat(len(actions), 0))
    assert not replay(first(copy)).same_outcome


@pytest.mark.slow
def test_an_episode_that_is_neither_stored_nor_failed_breaks_the_accounting(copy: Path):
    ledger = Ledger(copy)
    ledger.record(replace(ledger.attempts()[0], idx=7, path="", success=False, final=False, episode_id="x"))
    found = account(copy, ledger.attempts(), ledger.episodes())
    ledger.close()
    assert found.holds is False and found.problems == ("episode 7: neither stored nor failed",)


@pytest.mark.slow
def test_the_command_says_it_and_exits_with_one(copy: Path, capsys: pytest.CaptureFixture[str]):
    first(copy).unlink()
    assert main(["certify", str(copy), "--sample", "1"]) == 1
    assert "accounting  broken" in capsys.readouterr().out


@pytest.mark.slow
def test_certificates_are_shown_carried_and_checked(copy: Path, tmp_path: Path):
    assert "holds" in render_certificates(copy)
    assert main(["report", str(copy)]) == 0
    assert "Certificates" in (copy / "report.html").read_text()
    export(copy, tmp_path / "v3")
    assert read_certificates(tmp_path / "v3") == read_certificates(copy)
    assert [finding for finding in check(open_view(tmp_path / "v3")) if finding.check == "certificates"] == []


@pytest.mark.slow
def test_certificates_are_escaped_on_pages(copy: Path):
    path, attack = copy / FILE_NAME, "<script>alert(1)</script>"
    stored = json.loads(path.read_text())
    stored["certificates"][0] |= {"name": attack, "figures": {attack: attack}, "problems": [attack]}
    path.write_text(json.dumps(stored))
    page = render_certificates(copy)
    assert "<script" not in page and page.count("&lt;script&gt;") == 4


@pytest.mark.slow
def test_certificates_of_other_episodes_are_told_and_left_behind(copy: Path):
    path = copy / FILE_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | {"subject": "0" * 64}))
    assert attach_certificates(copy, [("a", "b")]) == ""
    assert "certificates" in {finding.check for finding in check(open_view(copy))}
    path.write_text("{")
    with pytest.raises(InputError, match="run 'nimbus certify' again"):
        read_certificates(copy)
    assert render_certificates(copy) == ""


@pytest.mark.slow
def test_a_card_tells_of_certificates_only_where_they_are_of_its_episodes(copy: Path, tmp_path: Path):
    export(copy, tmp_path / "v21", to="lerobot-v2.1")
    convert(tmp_path / "v21", tmp_path / "v3")
    told = {}
    for folder in (copy, tmp_path / "v21", tmp_path / "v3"):
        assert main(["card", str(folder)]) == 0
        told[folder.name] = "| replay | holds |" in (folder / "README.md").read_text()
    assert told == {"data": True, "v21": True, "v3": False}


def test_a_folder_where_the_certificates_go_is_told_before_anything_is_done(tmp_path: Path):
    write_dataset(tmp_path, [make_rendered(0)])
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(
        InputError, match=r"certificates\.json: a folder has the name of the certificates' file; move it"
    ):
        certify(tmp_path)
