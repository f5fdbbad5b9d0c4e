from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.analysis.significance import adjust_p_values, edges, find_low_yield, fisher_p_values, wilson
from nimbus.datagen.analysis.yields import cell_name, failed_step, find_yields, step_of
from nimbus.datagen.store.ledger.attempt import Attempt

KINDS = [f"kind_{index}" for index in range(10)]


def run(seed: int, *, episodes: int = 60, failing: float = 0.0, broken: str = "", attempts: int = 3) -> list[Attempt]:
    """Return a run's rows: 2 to 4 objects of ten kinds in three variants; attempts fail randomly or by a defect."""
    rng = np.random.default_rng(seed)
    rows: list[Attempt] = []
    for index in range(episodes):
        things = []
        for place in range(int(rng.integers(2, 5))):
            x, y = rng.uniform(0.3, 0.7), rng.uniform(-0.25, 0.25)
            things.append({"name": f"items_{place}", "kind": str(rng.choice(KINDS)), "variant": str(rng.integers(3))})
            things[-1] |= {"class": "metal", "rest_pose": str(rng.choice(["upright", "lying"]))}
            things[-1] |= {"x": f"{x:.3f}", "y": f"{y:.3f}"}
        drawn = {
            "mass": {item["name"]: {"factor": float(rng.uniform(0.8, 1.25))} for item in things},
            "friction": {item["name"]: {"factor": float(rng.uniform(0.8, 1.25))} for item in things},
            "start_posture": {f"joint{joint}": float(rng.normal()) for joint in range(7)},
        }
        is_broken = any(f"{item['kind']} {item['variant']}" == broken for item in things)
        for attempt in range(attempts):
            success = not is_broken and rng.uniform() >= failing
            final = bool(success or attempt == attempts - 1)
            rows.append(
                Attempt(
                    episode_id=f"e{index}",
                    task="t",
                    seed=0,
                    idx=index,
                    variant=0,
                    attempt=attempt,
                    final=final,
                    success=bool(success),
                    phase="" if success else "pick items_0 grasp",
                    steps=("pick items_0", "place items_0") if success else ("pick items_0",),
                    grasps=({"tilt": float(rng.uniform(0, 1)), "width": 0.03},),
                    objects=tuple(things),
                    drawn={"physical": drawn, "visual": {"light": {"intensity": float(rng.uniform())}}},
                )
            )
            if success:
                break
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_a_variant_that_is_never_kept_is_flagged_within_60_episodes_and_nothing_else(seed: int) -> None:
    rows = run(seed, broken="kind_3 1", failing=0.1)
    flags = find_yields(rows).flags
    assert [(flag.factor, flag.value, flag.flag) for flag in flags] == [("variant", "kind_3 1", "never kept")]


def test_clean_runs_show_no_flag_more_often_than_the_level_says() -> None:
    flagged = sum(bool(find_yields(run(1000 + seed, failing=0.25, attempts=1)).flags) for seed in range(60))
    assert flagged <= 3  # 1 % of 600 such runs had one; more than 3 of 60 would occur with p = 0.003


def test_what_shares_episodes_with_a_bad_value_is_not_blamed() -> None:
    rng = np.random.default_rng(0)
    bad = rng.uniform(size=200) < 0.3
    companion = bad & (rng.uniform(size=200) < 0.9)
    found, p_values, _ = find_low_yield(np.array([companion, bad]), bad, level=0.01)
    assert found == [1] and p_values[0] < 0.01


def test_of_equal_values_the_general_one_is_flagged() -> None:
    bad = np.arange(60) % 5 == 0
    assert find_low_yield(np.array([bad, bad]), bad, level=0.01)[0] == [0]


@given(st.integers(2, 60), st.data())
def test_the_p_value_is_that_of_fishers_exact_test(total: int, data: st.DataObject) -> None:
    lost, having = data.draw(st.integers(0, total)), data.draw(st.integers(0, total))
    both = data.draw(st.integers(max(0, having + lost - total), min(having, lost)))
    table = [[both, having - both], [lost - both, total - having - lost + both]]
    from scipy.stats import fisher_exact  # takes a second to import, in every process that collects tests

    expected = fisher_exact(table, alternative="greater")[1]
    assert fisher_p_values(total, lost, np.array([having]), np.array([both]))[0] == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=50)
def test_q_values_are_no_smaller_than_p_values_and_in_the_same_order(values: list[float]) -> None:
    p_values = np.array(values)
    q_values = adjust_p_values(p_values, np.zeros(len(values)), level=0.05)
    assert (q_values >= p_values - 1e-12).all() and (np.diff(q_values[np.argsort(p_values)]) >= -1e-12).all()


def test_q_values_are_those_of_benjamini_and_hochberg() -> None:
    """The expected values were computed by hand: p · n / rank, from the largest p-value down."""
    q_values = adjust_p_values(np.array([0.04, 0.01, 0.03, 0.9]), np.zeros(4), level=0.05)
    assert q_values == pytest.approx([0.16 / 3, 0.04, 0.16 / 3, 0.9])


def test_wilson_interval_has_the_published_bounds() -> None:
    z, share = 1.959964, 0.9
    middle, half = (share + z**2 / 20) / (1 + z**2 / 10), z / (1 + z**2 / 10) * np.sqrt(0.009 + z**2 / 400)
    assert wilson(9, 10) == pytest.approx((middle - half, middle + half), abs=1e-6)


def test_values_that_are_too_rare_to_be_found_cost_the_others_nothing() -> None:
    alone = adjust_p_values(np.array([0.004]), np.array([1e-5]), level=0.01)
    crowd = adjust_p_values(np.append(0.004, np.ones(50)), np.append(1e-5, np.full(50, 0.2)), level=0.01)
    assert crowd[0] == alone[0] == 0.004 and (crowd[1:] == 1).all()


def test_episodes_count_not_attempts_and_those_that_go_on_do_not() -> None:
    rows = run(3, episodes=12, failing=0.4)
    going_on = [row for row in rows if not (row.idx == rows[-1].idx and (row.final or row.success))]
    yields = find_yields(rows)
    assert yields.episodes == 12 and yields.kept == len({row.idx for row in rows if row.success})
    assert find_yields(going_on).episodes == 11
    objects = yields.of("objects")
    assert sum(row.episodes for row in objects) == 12 and sum(row.attempts for row in objects) == len(rows)


def test_numbers_are_shown_in_bins_of_equal_counts_and_looks_are_not_tested() -> None:
    yields = find_yields(run(5, broken="kind_3 1"))
    bins = yields.of("start_posture.joint0")
    assert len(bins) == 5 and sum(row.episodes for row in bins) == 60
    assert all(12 - 1 <= row.episodes <= 12 + 1 for row in bins)
    assert all(row.part == "visual" and row.p_value == 1.0 for row in yields.of("light.intensity"))


def test_steps_tell_how_many_came_to_them_and_past_them() -> None:
    rows = run(7, failing=0.5)
    pick, place = find_yields(rows).of("step")[:2]
    good = sum(row.success for row in rows)
    assert (pick.value, pick.episodes, pick.kept) == ("pick items", len(rows), good)
    assert (place.value, place.episodes, place.kept) == ("place items", good, good)


def test_a_ledger_of_an_earlier_version_has_yields_by_object() -> None:
    old = Attempt(episode_id="e", task="t", seed=0, idx=0, variant=0, attempt=0, final=True, success=True)
    assert find_yields([old]).kept == 1 and find_yields([]).rows == ()


def test_names_of_steps_cells_and_bins() -> None:
    assert step_of("pick items_12") == "pick items" and step_of("home") == "home"
    assert step_of("place cup") == "place cup"
    assert cell_name(0.35, -0.05) == "x 0.3 y -0.1" and cell_name(0.3, 0.0) == "x 0.3 y 0.0"
    failed = Attempt(episode_id="e", task="t", seed=0, idx=0, variant=0, attempt=0, final=True, success=False)
    assert failed_step(failed) == "start"
    assert edges([1.0] * 5) == [] and len(edges([float(n) for n in range(100)])) == 4
    low, high = wilson(9, 10)
    assert low < 0.9 < high and wilson(0, 0) == (0.0, 1.0)
