"""Views of datasets: contact sheets, cards, and Rerun if it is installed."""

from __future__ import annotations

import importlib.util
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nimbus.datagen.datasets.export.export import export
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.datasets.quality.checks import examine
from nimbus.datagen.datasets.quality.view import open_view
from nimbus.runner.cli import main
from nimbus.runner.media import rerun_window
from nimbus.runner.media.rerun_window import finish_window, start_window
from nimbus.runner.report.card import render_card
from tests.support import ROOT
from tests.support.foreign import write_v21
from tests.support.refusals import refusal
from tests.support.synthetic import failure, make_labels, make_observations, make_rendered, write_dataset


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("data")
    write_dataset(folder / "nimbus", [make_rendered(0), make_rendered(1)])
    export(folder / "nimbus", folder / "lerobot")
    write_v21(folder / "foreign", (12, 9))
    return {name: folder / name for name in ("nimbus", "lerobot", "foreign")}


@pytest.mark.parametrize("kind", ["nimbus", "lerobot", "foreign"])
def test_a_contact_sheet_shows_every_camera_of_every_episode(folders: dict[str, Path], tmp_path: Path, kind: str):
    assert main(["view", str(folders[kind]), "--sheet", str(tmp_path / "sheet.png")]) == 0
    with Image.open(tmp_path / "sheet.png") as sheet:
        pixels = np.asarray(sheet)
    assert pixels.shape[0] > 4 * 120 and pixels.shape[1] > 6 * 150
    assert pixels.std() > 20


@pytest.mark.parametrize("after", [[], ["--episode", "1"]])
def test_a_sheet_without_name_is_called_after_its_dataset(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: list[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["view", str(folders["nimbus"]), "--sheet", *after]) == 0
    with Image.open(tmp_path / "nimbus.png") as sheet:
        assert sheet.width > 6 * 150


def test_a_card_of_a_lerobot_dataset_has_what_the_hub_reads(
    folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
):
    assert main(["card", str(folders["lerobot"]), "--license", "cc-by-4.0"]) == 0
    text = (folders["lerobot"] / "README.md").read_text()
    assert text.startswith('---\nlicense: "cc-by-4.0"\ntask_categories:\n- robotics\ntags:\n- LeRobot\n')
    assert "| episodes | 2 |" in text and "found nothing" in text and '"codebase_version": "v3.0"' in text
    assert (folders["lerobot"] / "card.png").exists()
    assert main(["qa", str(folders["lerobot"])]) == 0


def test_a_card_that_was_made_does_not_hinder_the_next_export(folders: dict[str, Path], tmp_path: Path):
    export(folders["nimbus"], tmp_path / "out")
    assert main(["card", str(tmp_path / "out")]) == 0
    assert export(folders["nimbus"], tmp_path / "out", options=Options(episode_size=1)).is_new


def test_a_card_that_somebody_wrote_is_not_replaced(folders: dict[str, Path], tmp_path: Path):
    assert main(["card", str(folders["foreign"])]) == 2
    assert (folders["foreign"] / "README.md").read_text() == "# mine\n"
    assert main(["card", str(folders["foreign"]), "--out", str(tmp_path / "card.md")]) == 0
    assert "open the drawer" in (tmp_path / "card.md").read_text()


def test_a_card_of_a_dataset_of_nimbus_says_how_to_read_it(folders: dict[str, Path], tmp_path: Path):
    assert main(["card", str(folders["nimbus"]), "--out", str(tmp_path / "card.md")]) == 0
    text = (tmp_path / "card.md").read_text()
    assert "EpisodeFile" in text and "nimbus export" in text and not text.startswith("---")


def test_text_from_files_cannot_break_a_card(folders: dict[str, Path]):
    view = open_view(folders["nimbus"])
    found = replace(examine(view), tasks={"<script>alert(1)</script> | two": 2})
    text = render_card(folders["nimbus"], view, found, license="MIT", has_picture=False)
    assert "| &lt;script>alert(1)&lt;/script> &#124; two | 2 |" in text and "<script" not in text


def test_without_rerun_one_line_says_how_to_get_it(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "rerun", None)
    assert main(["view", str(folders["nimbus"])]) == 2
    told = capsys.readouterr().err
    assert "Rerun is not installed; give --sheet FILE.png, or type: " in told and told.count("\n") == 1
    assert f"pip install -e '{ROOT}[view]' -c " in told


@pytest.mark.skipif(importlib.util.find_spec("rerun") is None, reason="rerun-sdk is not installed")
@pytest.mark.parametrize("kind", ["nimbus", "foreign"])
def test_episodes_become_a_recording(folders: dict[str, Path], tmp_path: Path, kind: str):
    words = ["view", str(folders[kind]), "--save", str(tmp_path / "x.rrd"), "--episode", "0", "--episode", "1"]
    assert main(words) == 0
    assert (tmp_path / "x.rrd").read_bytes()[:3] == b"RRF"


WINDOW = """
import pathlib, sys
pathlib.Path({file!r}).write_text(" ".join(sys.argv[1:]) + " " + sys.stdin.read())
sys.exit({code})
"""


@pytest.mark.parametrize("code", [0, 3])
def test_a_window_gets_its_recording_through_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int):
    """Rerun's server would give it to every client, also of other users, and so would one that has taken its port."""
    (tmp_path / "rerun.py").write_text(WINDOW.format(file=str(tmp_path / "seen"), code=code))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    window = start_window()
    assert window.stdin
    with open(f"/dev/fd/{window.stdin.fileno()}", "wb") as file:  # as rerun.save does
        file.write(b"recording")

    def end() -> None:
        assert window.stdin
        window.stdin.close()
        window.wait(60)

    if code:
        assert "nimbus view: Rerun ended with exit code 3; give --save" in refusal(finish_window, window, end)
    else:
        finish_window(window, end)
    assert (tmp_path / "seen").read_text().split() == [
        *("-", "--bind", "127.0.0.1", "--new", "--hide-welcome-screen", "--expect-data-soon", "recording")
    ]


SERVER = """
import pathlib, socket, sys
with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
    server.setblocking(False)
    try:
        server.accept()
        answer = "connected"
    except BlockingIOError:
        answer = "no client"
pathlib.Path({file!r}).write_text(answer + " " + sys.argv[1])
"""


def test_the_server_of_a_window_takes_no_connection(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It asks for no token: every user could see the recording, and open, write and delete files."""
    (tmp_path / "rerun.py").write_text(SERVER.format(file=str(tmp_path / "seen")))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    recording = tmp_path / "demo.rrd"
    recording.write_bytes(b"RRF")
    assert start_window(recording).wait(60) == 0
    assert (tmp_path / "seen").read_text() == f"no client {recording}"
    (tmp_path / "seen").unlink()
    assert main(["view", str(recording)]) == 0
    assert main(["view", str(recording), "--sheet", "x.png"]) == 2
    while not (tmp_path / "seen").exists():
        time.sleep(0.01)
    monkeypatch.setattr(rerun_window, "has_filters", lambda: False)
    assert "give --sheet FILE.png, or --save FILE.rrd" in refusal(start_window)


def test_a_window_that_is_closed_early_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "rerun.py").write_text("raise SystemExit(1)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    window = start_window()
    window.wait(60)
    assert window.stdin
    assert "Rerun ended with exit code 1" in refusal(
        finish_window, window, lambda: (window.stdin or sys.stdout.buffer).write(b"x" * 10**6)
    )


def failed_run(folder: Path, *, keep_failures: bool) -> Path:
    """Write a dataset without success."""
    items = [
        make_rendered(row, outcome=failure(), labels=make_labels(), observations=make_observations(20))
        for row in range(2)
    ]
    write_dataset(folder, items, keep_failures=keep_failures)
    return folder


def test_kept_failures_have_a_sheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = failed_run(tmp_path / "data", keep_failures=True)
    assert main(["view", str(folder), "--sheet"]) == 2
    text = capsys.readouterr().err
    assert text.endswith("the dataset has no successful episode, but 2 kept failures; add --failures to show them\n")
    assert main(["view", str(folder), "--failures", "--sheet", str(tmp_path / "sheet.png")]) == 0
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert np.asarray(sheet).std() > 20


@pytest.mark.parametrize(("words", "what"), [([], "no successful episode;"), (["--failures"], "no kept failures;")])
def test_without_kept_failures_the_flag_of_the_run_is_named(
    words: list[str], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = failed_run(tmp_path / "data", keep_failures=False)
    assert main(["view", str(folder), *words, "--sheet"]) == 2
    text = capsys.readouterr().err
    assert what in text and "nimbus run --keep-failures" in text and text.count("\n") == 1


def test_failures_of_an_export_follow_its_episodes(folders: dict[str, Path], capsys: pytest.CaptureFixture[str]):
    assert main(["view", str(folders["lerobot"]), "--failures", "--sheet"]) == 2
    assert "--failures is for datasets of Nimbus; omit --failures" in capsys.readouterr().err
