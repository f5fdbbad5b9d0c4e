"""Results of an evaluation: rates, reasons, validity; the file; the comparison of two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.datagen.errors import InputError
from nimbus.runner.evaluation.compare import compare, pair
from nimbus.runner.evaluation.layouts import parse_layouts
from nimbus.runner.evaluation.measures import AnswerTimes, EpisodeMeasures
from nimbus.runner.evaluation.results import NAME, Evaluation, LayoutResult, read_evaluation, write_evaluation
from nimbus.runner.evaluation.show import lines_of

BASE = Evaluation(task="t", task_hash="1", policy="p", split="evaluation", seed=0, execute=8, limit=100)


def evaluation(outcomes: str) -> Evaluation:
    """Make an evaluation from marks: ``.`` success, ``x`` failure, ``w`` wild action, ``f`` lost to faults."""
    reasons = {".": "none", "x": "time_limit", "w": "wild_action", "f": "policy_error"}
    results = tuple(
        LayoutResult(index=index, success=letter == ".", reason=reasons[letter], phase="hold", kinds=("can",))
        for index, letter in enumerate(outcomes)
    )
    return replace(BASE, layouts=results)


def saved(folder: Path, outcomes: str, **changes: str) -> Path:
    folder.mkdir()
    write_evaluation(folder, replace(evaluation(outcomes), **changes))
    return folder


def test_faults_are_no_failures():
    found = evaluation("." * 60 + "x" * 40 + "f")
    assert (found.success_count, len(found.judged), found.fault_count) == (60, 100, 1)
    assert found.interval[0] < 0.6 < found.interval[1] and found.is_valid
    assert found.reasons() == {"time_limit (hold)": 40}
    assert found.reason_lines() == {"time limit (an object held)": 40}
    assert found.by_kind() == {"can": (60, 100)}


def test_too_many_faults_are_no_result():
    assert not evaluation("." * 50 + "f").is_valid
    assert not evaluation("f").is_valid
    assert "invalid" in "\n".join(lines_of(evaluation("f")))


def test_wild_actions_are_failures_unless_all_are():
    found = evaluation("w" * 9 + "x")
    assert (len(found.judged), found.fault_count, found.is_valid) == (10, 0, True)
    assert not evaluation("wwf").is_valid
    assert "every layout ended with a wild action" in "\n".join(lines_of(evaluation("ww")))


def test_commonest_wild_action_is_shown():
    details = ("gripper of 0.21 is far", "panda_joint1 of 9.00 is far", "panda_joint1 of -7.12 is far")
    results = [replace(one, detail=detail) for one, detail in zip(evaluation("www").layouts, details, strict=True)]
    found = replace(evaluation("x"), layouts=(*evaluation("x").layouts, *results))
    assert "wild actions: 2 such as: panda_joint1 of 9.00 is far" in lines_of(found)
    assert not any("wild" in line for line in lines_of(evaluation(".x")))


def test_result_without_any_motion_does_not_count():
    still = tuple(replace(one, phase="still") for one in evaluation(".x").layouts)
    assert not replace(BASE, layouts=still).is_valid
    assert "invalid: no action moved an arm" in "\n".join(lines_of(replace(BASE, layouts=still)))
    assert replace(BASE, layouts=(*still, *evaluation("x").layouts)).is_valid


def test_repeated_faults_lie_apart(tmp_path: Path):
    plain, spoiled = evaluation(".x"), evaluation(".x")
    spoiled = replace(spoiled, layouts=(replace(spoiled.layouts[0], faults=2), spoiled.layouts[1]))
    for name, found in (("plain", plain), ("spoiled", spoiled)):
        (tmp_path / name).mkdir()
        write_evaluation(tmp_path / name, found)
        assert read_evaluation(tmp_path / name) == found
    assert (tmp_path / "plain" / NAME).read_bytes() == (tmp_path / "spoiled" / NAME).read_bytes()


def test_results_are_read_as_written(tmp_path: Path):
    folder = saved(tmp_path / "one", ".x.")
    assert read_evaluation(folder) == evaluation(".x.")
    assert "times" not in (folder / "evaluation.json").read_text()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"evaluation": {"task": 3}}'])
def test_damaged_results_are_refused(text: str, tmp_path: Path):
    (tmp_path / "evaluation.json").write_text(text)
    with pytest.raises(InputError):
        read_evaluation(tmp_path)


@given(st.text(".x", min_size=1, max_size=30), st.randoms())
def test_comparison_of_a_result_with_itself_finds_nothing(outcomes: str, _: object):
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = saved(Path(name) / "a", outcomes)
        found = compare(folder, folder)
    assert (found.only_first, found.only_second, found.p_value) == ((), (), 1.0)


def test_comparison_is_paired_by_layout(tmp_path: Path):
    one, other = saved(tmp_path / "one", "xxxxxxxx.x"), saved(tmp_path / "other", "......f.xx")
    found = compare(one, other)
    assert (found.layouts, found.first, found.second) == (9, 1, 7)
    assert (found.only_first, found.only_second) == ((8,), (0, 1, 2, 3, 4, 5, 7))
    # Probability that of eight changed episodes, seven or more change in the same direction.
    assert found.p_value == pytest.approx(2 * 9 / 2**8)


def test_measures_are_the_largest_of_all_outcomes():
    one = EpisodeMeasures(lag=0.1, clipped=2, held_depth=0.0002)
    other = EpisodeMeasures(lag=0.3, clipped=1, fixed_depth=0.001)
    lost = EpisodeMeasures(lag=9.0, clipped=9)
    measured = zip(evaluation(".xf").layouts, (one, other, lost), strict=True)
    found = replace(BASE, layouts=tuple(replace(layout, measures=own, steps=40) for layout, own in measured))
    assert found.measures == EpisodeMeasures(lag=0.3, clipped=3, held_depth=0.0002, fixed_depth=0.001)
    shown = "\n".join(lines_of(found, AnswerTimes(1.5, 300)))
    assert "steps to success: 40 in the median" in shown and "clipped actions: 3 of 80" in shown
    assert "0.20 mm in the hand, 1.00 mm with fixed things" in shown
    assert "waited for answers: 1.5 s for 300 answers, 5.0 ms each" in shown and "waited" not in found.to_text()


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        (EpisodeMeasures(), "0 of 40"),
        (
            EpisodeMeasures(clipped=9, gripper_excess=0.0008),
            "9 of 40, none of an arm joint; grippers by at most 0.8 mm",
        ),
        (
            EpisodeMeasures(clipped=9, clipped_arm=2, arm_excess=0.31),
            "9 of 40, 2 of an arm joint, by at most 0.310 rad",
        ),
    ],
)
def test_clipped_actions_say_what_was_clipped(measures: EpisodeMeasures, said: str):
    results = tuple(replace(one, steps=40, measures=measures) for one in evaluation(".").layouts)
    (line,) = (one for one in lines_of(replace(BASE, layouts=results)) if one.startswith("clipped actions"))
    assert line.startswith(f"clipped actions: {said}")


def test_lengths_are_compared_where_both_succeed():
    def timed(outcomes: str, steps: tuple[int, ...]) -> Evaluation:
        layouts = zip(evaluation(outcomes).layouts, steps, strict=True)
        return replace(BASE, layouts=tuple(replace(layout, steps=count) for layout, count in layouts))

    found = pair(timed("..x.", (40, 50, 90, 60)), timed(".x..", (44, 90, 30, 70)))
    assert (found.both, found.median_steps) == (2, (50.0, 57.0))


def test_comparison_of_other_layouts_is_refused(tmp_path: Path):
    one, other = saved(tmp_path / "one", "."), saved(tmp_path / "other", ".", task_hash="2")
    with pytest.raises(InputError, match="task_hash is 1 in .*one and 2 in .*other"):
        compare(one, other)


def test_layouts_have_three_sources():
    held_out = parse_layouts("3")
    assert (held_out.split, held_out.seed, held_out.indices) == ("evaluation", 0, (0, 1, 2))
    of_run = parse_layouts("run:7:2")
    assert (of_run.split, of_run.seed, of_run.indices) == ("run", 7, (0, 1))


@pytest.mark.parametrize("text", ["0", "-1", "many", "run:x", "1000000000", "train:nowhere"])
def test_layouts_that_do_not_exist_are_refused(text: str):
    with pytest.raises(InputError):
        parse_layouts(text)
