"""``--keep-failures``: failed attempts in exports, labeled, after the episodes, and never counted among them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

from nimbus.datagen.datasets.certificates.record import (
    ACCOUNTING,
    FILE_NAME,
    Certificate,
    subject_of,
    write_certificates,
)
from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.quality.checks import check
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.datagen.datasets.training.reader import Reader
from nimbus.datagen.datasets.training.sharded import ShardFrames, ShardManifest, check_shards
from nimbus.datagen.episode.trajectory import Reason
from nimbus.datagen.errors import InputError, Severity
from nimbus.runner.cli import main
from tests.support.export_formats import MANIPULATION_FORMATS
from tests.support.reading import decode, psnr, tree
from tests.support.synthetic import failure, make_labels, make_observations, make_rendered, write_dataset

STORED, FAILED = 2, 2
IDS = ["-000000-v0", "-000001-v0", "-000000-v0.a0", "-000002-v0.a1"]


@pytest.fixture(scope="module", params=["lossless", "video"])
def data(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return a dataset with episode 0 after a failed attempt, episode 1, and a failed attempt at episode 2."""
    folder = tmp_path_factory.mktemp("data") / "data"
    items = [
        failed(0, attempt=0, final=False),
        make_rendered(0, attempt=1),
        make_rendered(1),
        failed(2, attempt=1),
    ]
    write_dataset(folder, items, keep_failures=True, images=request.param)
    return folder


def failed(index: int, **options: Any) -> Any:
    made = make_rendered(
        index,
        outcome=failure(Reason.NO_IK),
        labels=make_labels(),
        observations=make_observations(20, seed=50 + index),
        **options,
    )
    trajectory = made.trajectory
    return replace(made, trajectory=replace(trajectory, actions=trajectory.actions[::-1].copy()))


def named(ids: list[str]) -> list[str]:
    """Return the index, variant and attempt in an id, without the hash between them."""
    return [re.sub(r"^.*?(-0.*-v0)-[0-9a-f]{8}", r"\1", one) for one in ids]


@pytest.mark.parametrize("to", MANIPULATION_FORMATS)
def test_without_the_flag_nothing_of_them_is_exported(data: Path, tmp_path: Path, to: str):
    made = export(data, tmp_path / "out", to=to)
    assert (made.episode_count, made.failure_count) == (STORED, 0)
    assert len(json.loads((tmp_path / "out/nimbus.json").read_text())["episodes"]) == STORED


def test_lerobot_has_them_behind_the_episodes_with_success_reason_and_phase(data: Path, tmp_path: Path):
    made = export(data, tmp_path / "out", keep_failures=True)
    assert (made.episode_count, made.failure_count) == (STORED, FAILED)
    rows = pq.read_table(tmp_path / "out/meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert named([row["episode_id"] for row in rows]) == IDS
    assert [row["success"] for row in rows] == [True, True, False, False]
    assert [row["reason"] for row in rows] == ["none", "none", "no_ik", "no_ik"]
    assert [row["attempt"] for row in rows] == [1, 0, 0, 1]
    assert not any(row["phase"] for row in rows[:2]) and all(row["phase"] for row in rows[2:])
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert info["splits"] == {"train": "0:2", "failures": "2:4"} and info["total_episodes"] == 4
    table = pq.read_table(tmp_path / "out/data/chunk-000/file-000.parquet")
    video = tmp_path / "out/videos/observation.images.front/chunk-000/file-000.mp4"
    for row, path in zip(rows[2:], sorted((data / "failures").iterdir()), strict=True):
        with h5py.File(path) as file:
            actions = np.array(table.slice(row["dataset_from_index"], row["length"])["action"].to_pylist(), np.float32)
            assert np.array_equal(actions, np.asarray(file["action"]).astype(np.float32))
            begin, end = (row[f"videos/observation.images.front/{name}_timestamp"] for name in ("from", "to"))
            seen = decode(video, begin, end)[0]
            assert psnr(seen, np.asarray(file["observations/images/front"])) > 27
    assert [finding for finding in check(open_view(tmp_path / "out")) if finding.severity is Severity.FAIL] == []


def test_v21_labels_them_and_qa_finds_nothing(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", to="lerobot-v2.1", keep_failures=True)
    rows = [json.loads(line) for line in (tmp_path / "out/meta/episodes.jsonl").read_text().splitlines()]
    assert [row["success"] for row in rows] == [True, True, False, False]
    assert named([row["episode_id"] for row in rows]) == IDS
    assert [finding for finding in check(open_view(tmp_path / "out")) if finding.severity is Severity.FAIL] == []


def test_robomimic_has_them_under_a_mask_of_their_own(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", to="robomimic", keep_failures=True)
    with h5py.File(tmp_path / "out/dataset.hdf5") as opened:
        file: Any = opened
        masks = {name: {one.decode() for one in file[f"mask/{name}"][:]} for name in file["mask"]}
        assert masks["failure"] == {"demo_2", "demo_3"} and masks["success"] == {"demo_0", "demo_1"}
        assert masks["train"] | masks["valid"] == masks["success"]
        assert file["data/demo_2/rewards"][:].sum() == 0 and not file["data/demo_2"].attrs["success"]
        assert np.abs(file["data/demo_3/actions"][:]).max() <= 1


def test_aloha_has_them_in_a_folder_of_their_own(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", to="aloha", keep_failures=True)
    files = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.hdf5"))
    assert files == ["episode_0.hdf5", "episode_1.hdf5", "failures/episode_0.hdf5", "failures/episode_1.hdf5"]
    with h5py.File(tmp_path / "out/failures/episode_1.hdf5") as file:
        assert not file.attrs["success"] and file.attrs["reason"] == "no_ik" and file.attrs["phase"]


def test_shards_hold_them_and_a_reader_leaves_them_out_by_a_filter(data: Path, tmp_path: Path):
    export(data, tmp_path / "out", to="shards", keep_failures=True)
    assert list(check_shards(ShardManifest(tmp_path / "out"))) == []
    with Reader(ShardFrames(tmp_path / "out")) as reader:
        assert [len(reader.frames.lengths), *reader.frames.facts()["success"]] == [4, True, True, False, False]
        assert reader.sample(3, 5)["observation.images.front"].shape == (48, 64, 3)
    with Reader(ShardFrames(tmp_path / "out", where=[("success", "=", True)])) as reader:
        assert len(reader.frames.lengths) == STORED


def test_certificates_are_those_of_the_episodes(tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0), failed(1)], keep_failures=True)
    made = export(tmp_path / "data", tmp_path / "plain")
    episodes = json.loads((made.out / "nimbus.json").read_text())["episodes"]
    proof = Certificate(name=ACCOUNTING, holds=True, checked=1, of=1)
    write_certificates(tmp_path / "data", subject_of((one[0], one[1]) for one in episodes), [proof])
    export(tmp_path / "data", tmp_path / "out", keep_failures=True)
    assert (tmp_path / "out" / FILE_NAME).exists()
    assert not [finding for finding in check(open_view(tmp_path / "out")) if finding.check == "certificates"]


def test_by_the_command_the_same_bytes_again_and_another_export_without_them(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["export", str(data), "--out", str(tmp_path / "out"), "--keep-failures"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "episodes  2" in told and "failures  2, labeled, after the episodes" in told
    before = tree(tmp_path / "out")
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["is_new"], found["episode_count"], found["failure_count"]) == (False, STORED, FAILED)
    assert main(words[:-1]) == 0
    assert export(data, tmp_path / "out", keep_failures=True).is_new
    assert tree(tmp_path / "out") == before


def test_a_failure_that_is_gone_is_one_line(tmp_path: Path):
    write_dataset(tmp_path / "data", [make_rendered(0), failed(1)], keep_failures=True)
    next((tmp_path / "data/failures").iterdir()).unlink()
    with pytest.raises(InputError, match=r"a0.hdf5: the file is missing.*export without --keep-failures"):
        export(tmp_path / "data", tmp_path / "out", keep_failures=True)
    assert export(tmp_path / "data", tmp_path / "out").episode_count == 1
