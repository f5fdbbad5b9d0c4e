"""A small run of ``close-the-loop``: demonstrations, a trained policy, its evaluation and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from nimbus.datagen.files.bounded import read_typed
from nimbus.runner.cli import main
from nimbus.runner.evaluation.results import read_evaluation
from nimbus.runner.evaluation.training_log import TrainingLog
from tests.support import ROOT

TASK = ROOT / "docs/examples/cube_to_goal.yaml"


@pytest.mark.slow
def test_demonstrations_are_learned_and_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["close-the-loop", str(TASK), "--episodes", "4", "--steps", "200", "--layouts", "2", "--videos", "1"]
    assert main([*words, "--serial", "--out", str(tmp_path / "loop")]) == 0
    printed = capsys.readouterr()
    stages = [line for line in printed.err.splitlines() if line.startswith("stage ")]
    assert [stage[:12] for stage in stages] == [f"stage {number} of 5" for number in range(1, 6)]
    assert "step 20 of 200, loss " in printed.err and "Warp" not in printed.out and "Module" not in printed.out
    assert len(read_evaluation(tmp_path / "loop/evaluation").judged) == 2
    assert read_evaluation(tmp_path / "loop/demonstrator").success_count >= 1
    losses = read_typed(TrainingLog, tmp_path / "loop/policy/training.json").losses
    assert losses[0][1] > 5 * losses[-1][1]
    weights = (tmp_path / "loop/policy/weights.npz").stat().st_mtime_ns
    page = (tmp_path / "loop/evaluation/evaluation.html").read_text()
    assert "4 episodes" in page and "polyline" in page and "the demonstrator" in page
    assert "Where objects started" in page and page.count("<circle") + page.count('"bad"') == 2
    assert main([*words, "--serial", "--out", str(tmp_path / "loop")]) == 0  # everything exists
    assert (tmp_path / "loop/policy/weights.npz").stat().st_mtime_ns == weights
    known = ["evaluate", str(TASK), "--layouts", f"train:{tmp_path}/loop/demonstrations", "--serial", "--videos", "0"]
    assert main([*known, "--policy", f"{tmp_path}/loop/policy", "--out", str(tmp_path / "known")]) == 0
    found = read_evaluation(tmp_path / "known")
    assert (found.split, len(found.judged), found.trained_layouts) == ("run", 4, 4)
    capsys.readouterr()
    assert main([*known[:1], "pick_and_place", *known[2:], "--policy", "demonstrator"]) == 2
    assert "its task differs from the evaluated pick_and_place" in capsys.readouterr().err


def test_a_folder_with_links_is_not_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop/policy").symlink_to(tmp_path)
    assert main(["close-the-loop", str(TASK), "--out", str(tmp_path / "loop")]) == 2
    assert "the folder contains links" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--episodes", "0"], ["--layouts", "0"], ["--steps", "-1"], ["--execute", "17"]], ids=" ".join
)
def test_mistakes_of_the_loop_are_one_line(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["close-the-loop", str(TASK), *words]) == 2
    error = capsys.readouterr().err
    assert words[0] in error and error.count("\n") == 1
