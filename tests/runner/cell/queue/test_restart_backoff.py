from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nimbus.runner.cell.queue.restart_backoff import Backoff, Circuit, delay


@pytest.mark.parametrize(("failures", "longest"), [(0, 0), (1, 0), (2, 0.5), (3, 1), (4, 2), (9, 60), (100_000, 60)])
def test_delays_double_from_half_a_second_to_a_minute(failures: int, longest: float):
    assert 0.75 * longest <= delay(failures) <= longest


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_delays_never_shrink_by_more_than_the_jitter(worker: int, failures: int):
    assert delay(failures + 1, worker=worker) >= 0.75 * delay(failures, worker=worker)
    assert delay(failures, worker=worker) == delay(failures, worker=worker)


def test_workers_that_ended_together_do_not_start_together():
    assert len({round(delay(5, worker=worker), 3) for worker in range(16)}) == 16


def test_a_result_makes_the_next_death_a_first_one():
    backoff = Backoff(3)
    assert backoff.record_end() == 0.0
    assert backoff.record_end() > 0.0
    backoff.result()
    assert backoff.record_end() == 0.0


def test_five_start_ups_in_a_row_without_a_result_open_the_circuit():
    circuit = Circuit()
    for _ in range(4):
        circuit.ended("killed by SIGSEGV in load", at_work=False)
    circuit.result()
    for _ in range(4):
        circuit.ended("killed by SIGSEGV in load", at_work=False)
    assert not circuit.is_open
    circuit.ended("killed by SIGSEGV in load", at_work=False)
    assert circuit.is_open
    assert circuit.reason == (
        "5 workers in a row ended before they took any work, the last one killed by SIGSEGV in load"
    )
    circuit.result()
    assert circuit.is_open


def test_ends_at_work_need_more_and_suspects_count_nothing():
    circuit = Circuit()
    for number in range(19):
        circuit.ended(f"exit code {number} in plan", at_work=True)
        circuit.ended("exit code 3 in plan", at_work=True, explained=True)
    assert not circuit.is_open
    circuit.ended("exit code 3 in plan", at_work=True)
    assert circuit.is_open


def test_ends_that_are_all_the_same_need_fewer():
    circuit = Circuit()
    for how in ("KeyError: 'a' in plan", "KeyError: 'b' in plan"):
        for _ in range(5):
            circuit.ended(how, at_work=True)
    circuit.result()
    for _ in range(5):
        circuit.ended("KeyError: 'b' in plan", at_work=True)
    assert not circuit.is_open
    circuit.ended("KeyError: 'b' in plan", at_work=True)
    assert circuit.is_open


def test_three_episodes_in_a_row_given_up_for_one_exception_open_the_circuit():
    circuit = Circuit()
    for same, last in (("a", False), ("b", False), ("b", False)):
        circuit.given_up(same, "hover.py:29: KeyError: 'b'", last=last)
    assert not circuit.is_open
    circuit.result()
    for _ in range(2):
        circuit.given_up("b", "hover.py:29: KeyError: 'b'", last=False)
    assert not circuit.is_open
    circuit.given_up("b", "hover.py:29: KeyError: 'c'", last=False)
    assert circuit.reason == "hover.py:29: KeyError: 'c': every try of 3 episodes ended with it, and none is stored"


def test_the_only_episode_given_up_opens_the_circuit():
    circuit = Circuit()
    circuit.given_up("a", "hover.py:29: KeyError: 'b'", last=True)
    assert circuit.reason == "hover.py:29: KeyError: 'b': every try of 1 episode ended with it, and none is stored"
