from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.datasets.certificates.record import read_certificates
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.ledger.ledger import Attempt, Ledger
from nimbus.runner.cli import main
from nimbus.runner.monitor.status import STAGES
from nimbus.runner.system.processes import Interruption
from tests.support.runs import run, run_and, sound

ASKED = ("--episodes", "2", "--variants", "2")


def episodes(folder: Path) -> list[Path]:
    return sorted((folder / "episodes").glob("*.hdf5"))


def test_a_run_stores_what_was_asked_and_tells_what_it_made(tiny: Path):
    assert len(episodes(tiny)) == 4
    assert {path.name for path in (tiny / "preview").iterdir()} >= {"contact_sheet.png"}
    assert (tiny / "report.html").is_file()
    assert not list((tiny / "stage").iterdir())


@pytest.mark.slow
@pytest.mark.long  # tests/runner/cell/test_run_equal.py has it with light work
def test_the_same_seed_gives_the_same_dataset_at_once_or_in_three_runs(tiny: Path, tmp_path: Path):
    """The second run shows the plan that the first one stored; the third makes a further episode."""
    data = tmp_path / "data"
    assert run("--episodes", "1", out=data) == 0
    assert run("--episodes", "1", "--variants", "2", out=data) == 0
    first, second = rows(data)
    assert second.times["plan"] < 0.05 * first.times["plan"]
    assert (first.attempt, first.objects) == (second.attempt, second.objects)
    assert [first.sha256, second.sha256] == [row.sha256 for row in rows(tiny)[:2]]
    assert run(*ASKED, out=data) == 0
    assert sound(data) == sound(tiny)


def test_another_seed_gives_another_dataset(tiny: Path, tmp_path: Path):
    assert run("--episodes", "1", "--seed", "1", out=tmp_path / "data") == 0
    there = episodes(tmp_path / "data")[0]
    with EpisodeFile(there) as other, EpisodeFile(episodes(tiny)[0]) as one:
        assert other.layout().physical != one.layout().physical


def test_a_finished_run_has_nothing_left_to_do(copy: Path, capsys):
    before = sound(copy), [path.stat().st_mtime_ns for path in episodes(copy)]
    assert run(*ASKED, out=copy) == 0
    assert ": stored, " not in capsys.readouterr().out
    assert (sound(copy), [path.stat().st_mtime_ns for path in episodes(copy)]) == before


def test_a_run_proves_what_it_stored_where_that_is_asked_for(copy: Path, capsys):
    assert run(*ASKED, "--certify", "1", out=copy) == 0
    assert "replay      holds" in capsys.readouterr().out
    found = read_certificates(copy)
    assert found and {one.name for one in found.certificates} >= {"replay", "rerender", "labels"}
    (replayed,) = (one for one in found.certificates if one.name == "replay")
    assert replayed.figures["same_outcome"] == 1 and replayed.figures["body_error_m"] < 1e-6
    assert "Certificates" in (copy / "report.html").read_text()


def test_variants_show_one_plan_in_different_looks(tiny: Path):
    first, second = episodes(tiny)[:2]
    with EpisodeFile(first) as one, EpisodeFile(second) as other:
        assert one.file.attrs["plan_id"] == other.file.attrs["plan_id"] == first.stem
        assert one.layout().physical == other.layout().physical
        assert one.layout().visual != other.layout().visual
        pixels = "observations/images/front"
        shared = [path for path in one.paths() if path.split("/")[0] in ("action", "contacts", "skills", "start")]
        assert len(shared) > 10
        for path in (*shared, "observations/qpos", "observations/body_positions"):
            np.testing.assert_array_equal(one.array(path), other.array(path))
        assert (one.array(pixels) != other.array(pixels)).mean() > 0.2


def test_a_dataset_made_with_another_robot_or_mujoco_is_not_continued(copy: Path, capsys):
    before = sound(copy)
    path = copy / "dataset.json"
    described = json.loads(path.read_text())
    assert described["inputs"].keys() >= {"robot panda", "library trash", "skill pick", "mujoco", "planner", "sim"}
    for name in ("robot panda", "mujoco", "pipeline manipulation", "predicate inside"):
        path.write_text(json.dumps(described | {"inputs": described["inputs"] | {name: "other"}}))
        assert run("--episodes", "3", out=copy) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"{copy}: holds a dataset made with another {name} (other, now ")
        assert line.count("\n") == 1
        assert "choose another --out" in line
    path.write_text(json.dumps(described))
    assert sound(copy) == before


def test_every_stages_time_is_told(tiny: Path):
    totals = {name: sum(row.times.get(name, 0.0) for row in rows(tiny)) for name in STAGES}
    assert all(seconds > 0 for seconds in totals.values()), totals
    assert totals["load"] > 0.1 and max(row.times.get("load", 0.0) for row in rows(tiny)) > 0.9 * totals["load"]


def rows(folder: Path) -> list[Attempt]:
    """Return the stored attempts."""
    with closing(Ledger(folder, read_only=True)) as ledger:
        return ledger.stored()


@pytest.mark.slow
def test_ctrl_c_finishes_what_is_under_way_and_the_next_run_continues(tiny: Path, tmp_path: Path, capsys):
    try:
        code = run_and(lambda: signal.raise_signal(signal.SIGINT), "--episodes", "50", out=tmp_path / "data")
    except KeyboardInterrupt:
        pytest.fail("the run was not asked to stop, but stopped at once")
    assert code == 130
    error = capsys.readouterr().err
    assert error == "stopping after this attempt; Ctrl-C again stops at once\ninterrupted\n"
    sound(tmp_path / "data")
    assert 1 <= len(episodes(tmp_path / "data")) < 50
    assert run("--episodes", "2", out=tmp_path / "data") == 0
    ids = {path.stem: path for path in episodes(tmp_path / "data")}
    for path in episodes(tiny)[::2]:  # the first variant of each episode
        assert digest(tmp_path / "data", ids[path.stem]) == digest(tiny, path)


def digest(folder: Path, path: Path) -> str:
    return next(attempt.sha256 for attempt in rows(folder) if Path(attempt.path).name == path.name)


def test_previews_and_a_page_that_cannot_be_written_are_one_line_each_and_lose_nothing(copy: Path, capsys):
    (copy / "report.html").unlink()
    (copy / "report.html").mkdir()
    (copy / "preview").rename(copy / "mine")
    (copy / "preview").write_text("mine")
    assert run(*ASKED, out=copy) == 0
    out, error = capsys.readouterr()
    assert "episodes stored of" in out
    preview, page = error.splitlines()
    assert preview.endswith("preview: this is a file, where a dataset has a folder; move it elsewhere")
    assert "report.html: cannot write: Is a directory" in page
    assert (copy / "preview").read_text() == "mine"
    assert not list(copy.glob("*.tmp"))


def test_a_hangup_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    try:
        with Interruption() as interruption:
            signal.raise_signal(signal.SIGHUP)
            assert not interruption.requested
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_second_signal_does_not_wait(number: signal.Signals):
    known = signal.signal(number, before := signal.default_int_handler)  # under nohup, SIGHUP is ignored
    try:
        with pytest.raises(KeyboardInterrupt), Interruption() as interruption:
            os.kill(os.getpid(), number)
            assert interruption.requested and not interruption.at_once
            os.kill(os.getpid(), number)
        assert interruption.at_once
        assert signal.getsignal(number) is before
    finally:
        signal.signal(number, known)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--gpus all", "--gpus: no part of this run uses a GPU; add --device cuda"),
        ("--device cuda --gpus 0", "--gpus: no NVIDIA GPU was found"),
        ("--device cuda --gpus 0 --driver", "--gpus: unknown GPU '0'; known: "),
        ("--device cuda --gpus=0,3 --driver", "--gpus: unknown GPU '0'; known: "),
        ("--device cuda --gpus --driver", "--gpus: expected one argument"),
        ("--device cuda --gpus= --driver", "--gpus: unknown GPU ''; known: "),
        ("--device cuda --hidden --driver", "--device cuda: CUDA_VISIBLE_DEVICES hides every GPU; unset it"),
    ],
)
def test_gpus_that_are_not_there_are_one_line(words: str, expected: str, tmp_path: Path, monkeypatch, capsys):
    if "--driver" in words:
        program = tmp_path / "nvidia-smi"
        program.write_text('#!/bin/sh\n[ "$1" = -L ] || echo "3, GPU-77aa, NVIDIA L40S, 8.9, 45000, 580.65.06"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if "--driver" in words else str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if "--hidden" in words:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    out = ["--task", "sort_trash", "--out", str(tmp_path / "data")]
    flags = [word for word in words.split() if word not in ("--driver", "--hidden")]
    assert main(["run", *out, *flags]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
