"""Certificates hold for a real run, break where something was changed, and travel with the data."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from runs import run

from nimbus.datagen.certificates.page import render_certificates
from nimbus.datagen.certificates.record import FILE_NAME, carried, read_certificates
from nimbus.datagen.errors import InputError
from nimbus.datagen.qa.checks import check
from nimbus.datagen.qa.view import open_view
from nimbus.datagen.store.export.export import export
from nimbus.datagen.store.ledger import Ledger
from nimbus.datagen.store.verify import dataset_hashes, verify
from nimbus.runner.certify import certify
from nimbus.runner.cli import main


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "data"
    assert run("--episodes", "2", out=folder) == 0
    return folder


def verdicts(folder: Path) -> dict[str, bool | None]:
    return {one.name: one.holds for one in certify(folder, sample=1).certificates}


def change(folder: Path, path: str, edit: Any) -> Path:
    with h5py.File(sorted((folder / "episodes").glob("*.hdf5"))[0], "r+") as file:
        values: Any = file[path]
        values[...] = edit(values[()])
    return folder


def test_everything_holds_for_a_real_run_and_its_content_stays_as_it_is(data: Path):
    before = dataset_hashes(data)
    found = certify(data, sample=None)
    assert {one.name: one.holds for one in found.certificates} == dict.fromkeys(
        ("accounting", "labels", "rerender", "replay"), True
    )
    figures = {one.name: one.figures for one in found.certificates}
    assert figures["accounting"]["planned"] == figures["accounting"]["stored"] == 2
    assert figures["labels"]["things_seen"] > 20 and figures["rerender"]["least_dB"] >= 30
    assert figures["replay"]["same_outcome"] == 2 and figures["replay"]["joint_error"] < 1e-9
    assert read_certificates(data) == found
    assert dataset_hashes(data) == before and verify(data).problems == ()


def test_other_pictures_break_the_rendering(data: Path, tmp_path: Path):
    folder = shutil.copytree(data, tmp_path / "data")
    camera = next(iter(json.loads((data / "dataset.json").read_text())["cameras"]))
    with h5py.File(sorted((folder / "episodes").glob("*.hdf5"))[0], "r+") as file:
        masks: Any = file[f"observations/instance/{camera}"]
        masks[...] = np.roll(masks[()], 5, axis=2)
    found = verdicts(folder)
    assert found["rerender"] is False and found["labels"] is False and found["replay"] is True


def test_another_camera_pose_breaks_the_labels(data: Path, tmp_path: Path):
    def turned(poses: Any) -> Any:
        poses[:, :3, 3] += (0.2, 0.0, 0.0)
        return poses

    camera = next(iter(json.loads((data / "dataset.json").read_text())["cameras"]))
    folder = change(shutil.copytree(data, tmp_path / "data"), f"observations/world_T_camera/{camera}", turned)
    assert verdicts(folder)["labels"] is False


def test_other_actions_break_the_replay(data: Path, tmp_path: Path):
    folder = change(
        shutil.copytree(data, tmp_path / "data"), "action", lambda actions: actions[:1].repeat(len(actions), 0)
    )
    assert verdicts(folder)["replay"] is False


def test_an_episode_that_is_neither_stored_nor_failed_breaks_the_accounting(data: Path, tmp_path: Path):
    folder = shutil.copytree(data, tmp_path / "data")
    ledger = Ledger(folder)
    ledger.record(replace(ledger.attempts()[0], idx=7, path="", success=False, final=False, episode_id="x"))
    ledger.close()
    found = next(one for one in certify(folder, sample=1).certificates if one.name == "accounting")
    assert found.problems == ("episode 7: neither stored nor failed",)
    assert main(["certify", str(folder), "--sample", "1"]) == 1


def test_certificates_are_shown_carried_and_checked(data: Path, tmp_path: Path):
    folder = shutil.copytree(data, tmp_path / "data")
    certify(folder, sample=1)
    assert "holds" in render_certificates(folder)
    assert main(["report", str(folder)]) == 0
    assert "Certificates" in (folder / "report.html").read_text()
    export(folder, tmp_path / "v3")
    assert read_certificates(tmp_path / "v3") == read_certificates(folder)
    assert [finding for finding in check(open_view(tmp_path / "v3")) if finding.check == "certificates"] == []


def test_certificates_of_other_episodes_are_told_and_left_behind(data: Path, tmp_path: Path):
    folder = shutil.copytree(data, tmp_path / "data")
    certify(folder, sample=1)
    path = folder / FILE_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | {"subject": "0" * 64}))
    assert carried(folder, [("a", "b")]) == ""
    assert "certificates" in {finding.check for finding in check(open_view(folder))}
    path.write_text("{")
    with pytest.raises(InputError, match="give 'nimbus certify' again"):
        read_certificates(folder)
