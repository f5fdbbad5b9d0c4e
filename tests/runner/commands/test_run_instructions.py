"""A run with navigation instructions: they are proved, verified, replayed and reworded by a model, and are equal for
every way to run it."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nimbus.datagen.datasets.instructions import check_instruction, read_record
from nimbus.datagen.navigate.instruct.proof import find_false_claims
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.verify import dataset_hashes
from nimbus.runner.cli import main
from tests.support.runs import run, sound, start
from tests.support.scripted_server import say, send, serving
from tests.support.shared import make_once

TASK = """\
family: navigation
scene: {homes: 2, rooms: [4, 4]}
navigate: {to: instruction, length: [2 m, 12 m]}
cameras: {front: {position: [0.1, 0, 1.2], tilt: 10 deg, hfov: 90 deg, size: [64, 48]}}
pipeline: plain.yaml
"""
PIPELINE = "load: scenes\nrandomize: goals\nplan: path\nrender: {views: {baked: false}}\nstore: hdf5\n"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of three episodes, with the task file and its pipeline beside it."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "plain.yaml").write_text(PIPELINE)
        (folder / "by_words.yaml").write_text(TASK)
        assert run("--episodes", "3", out=folder / "data", task=folder / "by_words.yaml") == 0

    return make_once(tmp_path_factory, "instructed", make) / "data"


def episodes(folder: Path) -> list[Path]:
    return sorted((folder / "episodes").glob("*.hdf5"))


def test_every_claim_of_a_run_is_proved(data: Path):
    sound(data)
    for path in episodes(data):
        with EpisodeFile(path) as episode:
            assert check_instruction(episode).problems == ()
            assert check_instruction(episode).claims >= 2
            record = read_record(episode)
        assert record is not None
        mirrored = record.instruction.replace("left", "LEFT").replace("right", "left").replace("LEFT", "right")
        lie = replace(record, instruction=mirrored)
        assert (mirrored == record.instruction) or find_false_claims(lie)


def test_layouts_and_plans_come_out_again(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """The pipeline of the task is a file, which 'verify' only reads from a path that the user gives."""
    monkeypatch.chdir(data.parent)
    text = (data.parent / "by_words.yaml").read_text()
    pipeline = next(line.split(": ")[1] for line in text.splitlines() if line.startswith("pipeline: "))
    assert main(["verify", str(data), "--recompute", "3", "--pipeline", pipeline, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recomputed"]["equal"][2:]


def test_cell_and_killed_run_store_the_same_bytes(data: Path, tmp_path: Path):
    """A cell that is killed after its first episode and continued gives the hashes of the serial run."""
    task, out = data.parent / "by_words.yaml", tmp_path / "killed"
    words = ("run", "--task", str(task), "--episodes", "3", "--workers", "1x1", "--out", str(out))
    first = start(*words)
    deadline = time.monotonic() + 300
    while not episodes(out) and time.monotonic() < deadline and first.poll() is None:
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    assert run("--episodes", "3", out=out, task=task) == 0
    assert dataset_hashes(out) == dataset_hashes(data)


def answers(folder: Path) -> dict[int, list[str]]:
    """Return sentences of a model that describe the steps of each episode, by number of steps."""
    found = {}
    for path in episodes(folder):
        with EpisodeFile(path) as episode:
            record = read_record(episode)
        assert record is not None
        sentences = []
        for step in record.stored.steps:
            claim, noun = step.claim, step.claim.noun
            words = {"turn": f"Veer {claim.side}.", "enter": f"Head into the {noun}."}
            words |= {"pass": f"Keep the {noun} {claim.side}.", "stop": f"Halt by the {noun}."}
            sentences.append(words[claim.kind])
        found[path.name] = sentences
    return found


def test_models_words_are_taken_where_they_are_proved(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """One answer is right, one is nonsense, one names another room, the others have status 503: nothing is lost."""
    sentences = list(answers(data).values())
    wrong = [*sentences[2][:-1], "Go up to the helicopter."]
    steps = [say(json.dumps({"sentences": sentences[0]})), say("blah"), say("blah"), say("blah")]
    with serving([*steps, say(json.dumps({"sentences": wrong}))]) as server:
        line = ["reword", str(data), *[path.stem for path in episodes(data)[:3]], "--model", server.url]
        assert main([*line, "--out", str(tmp_path / "out")]) == 0
        out = capsys.readouterr().out
        assert "reworded   1 of 3; 2 keep their words" in out
    replayed = [*line[:5], "--replay", str(tmp_path / "out"), "--out", str(tmp_path / "again")]
    assert main(replayed) == 0
    assert dataset_hashes(tmp_path / "again") == dataset_hashes(tmp_path / "out")
    sound(tmp_path / "out")
    sources = []
    for path in episodes(tmp_path / "out"):
        with EpisodeFile(path) as episode:
            assert check_instruction(episode).problems == ()
            record = read_record(episode)
        assert record is not None
        sources.append(record.stored.source)
    assert sources == ["tiny", "template", "template"]


def test_a_server_that_fails_leaves_the_words(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("nimbus.datagen.language_model.client.time.sleep", lambda seconds: None)
    first = episodes(data)[0]
    with serving([send("busy", 503)]) as server:
        line = ["reword", str(data), first.stem, "--model", server.url, "--out", str(tmp_path / "out")]
        assert main(line) == 0
    with EpisodeFile(first) as one, EpisodeFile(episodes(tmp_path / "out")[0]) as other:
        assert one.instruction == other.instruction


def test_rewording_needs_a_model(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["reword", str(data), "--out", str(tmp_path)]) == 2
    assert "no model is given" in capsys.readouterr().err


def test_missing_servers_leave_no_folder(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A folder that a failed start leaves would refuse the next try with another model."""
    assert main(["reword", str(data), "--model", "http://127.0.0.1:9/v1", "--out", str(tmp_path / "out")]) == 2
    assert "no reply" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
