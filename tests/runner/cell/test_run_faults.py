"""Hangs, exceptions, poison and leaks: healthy episodes are stored and faults are reported, in bounded time."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from nimbus.datagen.store.ledger.ledger import Ledger
from nimbus.datagen.store.ledger.records import EpisodeStatus, Fault
from tests.support.cells import Run, count, finish, finish_here, make_spec, sound

LIMITS = {phase: (1.0, 3.0) for phase in ("load", "randomize", "plan", "render")}


def incident(run: Run, fault: Fault) -> dict[str, str]:
    """Return the files of an incident by name."""
    folder = run.folder / fault.incident
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_hangs_are_ended_at_their_deadline_and_leave_their_stacks(tmp_path: Path):
    hangs = {
        **{"plan 1": "lock in C x1", "plan 2": "lock x1", "plan 3": "stop x1"},
        **{"view 4 0": "lock in C x1", "view 5 0": "lock x1", "view 6 0": "stop x1"},
        "plan 7": "livelock x1",
    }
    spec = make_spec(tmp_path / "data", mishaps=hangs, deadlines=LIMITS, episodes=8)
    run = Run(spec)
    run.end(0)
    sound(spec)
    assert {fault.idx: (fault.kind, fault.phase) for fault in run.faults()} == {
        index: ("hang", "render" if index in (4, 5, 6) else "plan") for index in range(1, 8)
    }
    assert {text: times for text, times in count(spec, "plan").items() if times > 1} == {
        f"plan {index}": 2 for index in (1, 2, 3, 7)
    }
    for fault in run.faults():
        files = incident(run, fault)
        facts = json.loads(files["incident.json"])
        assert (facts["kind"], facts["index"], facts["lease"] > 0) == ("hang", fault.idx, True)
        if fault.idx == 7:  # which sends heartbeats, but makes no progress
            assert re.search(r"in this phase for [\d.]+ s, at most 3 s", fault.detail)
        else:
            assert re.search(r"no progress for [\d.]+ s, at most 1 s", fault.detail)
        if fault.idx not in (3, 6):  # a stopped process writes nothing
            assert "driving.py" in files["stack.txt"], "the stacks are written when half of a limit is over"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "how"),
    [
        pytest.param("plan 2", "segv", marks=pytest.mark.long),  # the short chaos test has an episode that always kills
        ("view 2 0", "raise"),
    ],
)
def test_an_episode_that_kills_every_worker_is_given_up_and_the_others_are_stored(how: str, what: str, tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={what: how}, episodes=16)
    run = Run(spec)
    done = run.end(1)
    assert "15 of 16 episodes stored" in done.err
    tries = sum(count(spec, what).values())
    assert 3 <= tries <= 8 and len(run.faults()) == tries
    with closing(Ledger(run.folder, read_only=True)) as ledger:
        (given_up,) = ledger.episodes(EpisodeStatus.QUARANTINED)
    assert given_up.idx == 2 and "deaths in a row" in given_up.detail
    if how == "raise":
        stack = incident(run, run.faults()[0])["stack.txt"]
        assert "Traceback" in stack and "a wheel came off" in stack
    assert set(count(spec, "plan").values()) == ({1} if what != "plan 2" else {1, tries})
    again = Run(spec)
    assert again.end().code == 1
    assert sum(count(spec, what).values()) == tries, "a poisonous episode is not tried again by the next run"


@pytest.mark.slow
@pytest.mark.parametrize("what", [pytest.param("plan", marks=pytest.mark.long), "view"])
def test_a_component_that_always_raises_ends_the_run_in_bounded_tries(what: str, tmp_path: Path):
    mishaps = {f"plan {index}" if what == "plan" else f"view {index} 0": "raise" for index in range(200)}
    spec = make_spec(tmp_path / "data", mishaps=mishaps, episodes=200)
    done = Run(spec).end(1)
    assert "a wheel came off" in done.err
    # Six ends of one kind open the circuit; episodes that other workers begin meanwhile are added.
    assert sum(count(spec, what).values()) <= 16
    assert "incidents" in done.err


def test_the_only_episode_of_a_component_that_always_raises_takes_three_tries_and_says_where(tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={"plan 0": "raise"}, episodes=1)
    run = Run(spec)
    done = run.end(1)
    assert count(spec, "plan") == {"plan 0": 3}
    (line,) = (line for line in done.err.splitlines() if line)
    said, _, where = line.partition("; the last fault is in ")
    expected = r".*\.py:\d+: RuntimeError: a wheel came off: every try of 1 episode ended with it, and none is stored"
    assert re.fullmatch(expected, said), line
    assert "Traceback" in Path(where, "stack.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "kind"), [("nothing", "no_result"), ("twice", "exception")])
def test_an_episode_of_which_nothing_comes_or_two_plans_is_given_up(setting: str, kind: str, tmp_path: Path):
    spec = make_spec(tmp_path / "data", pipeline=odd_pipeline(tmp_path, setting), episodes=8)
    run = Run(spec)
    done = run.end(1)
    assert "7 of 8 episodes stored" in done.err
    assert {fault.kind for fault in run.faults()} == {kind}
    assert kind != "exception" or "gave a second plan for episode 3" in run.faults()[0].detail


def odd_pipeline(folder: Path, setting: str) -> str:
    """Return a pipeline whose planner gives no plan, or two plans, for episode 3."""
    path = folder / "odd.yaml"
    path.write_text(f"load: yard\nrandomize: yard\nplan: {{yard: {{{setting}: 3}}}}\nrender: yard\nstore: hdf5\n")
    return str(path)


@pytest.mark.parametrize("what", ["plan 1", "render 1"])
def test_bad_input_that_a_component_meets_is_one_line(what: str, tmp_path: Path):
    spec = make_spec(tmp_path / "data", mishaps={what: "input"})
    done = Run(spec).end(2)
    lines = [line for line in done.err.splitlines() if line]
    assert len(lines) == 1 and lines[0].startswith("yard.txt:1: the map is upside down; turn it round")


@pytest.mark.slow
def test_bad_input_found_while_loading_makes_no_folder(tmp_path: Path):
    spec = make_spec(tmp_path / "data", pipeline=str(tmp_path / "odd.yaml"))
    Path(spec.pipeline).write_text("load: yard\nrandomize: yard\nplan: yrad\nrender: yard\nstore: hdf5\n")
    done = Run(spec).end()
    assert done.code == 2 and len(done.err.splitlines()) == 1 and "did you mean 'yard'" in done.err
    assert not Path(spec.folder).exists()


def test_every_attempt_that_fails_ends_with_the_reasons(tmp_path: Path):
    spec = make_spec(tmp_path / "data", episodes=6)
    Path(spec.settings["map_file"]).write_text(".#.#.\n#####\n.#.#.\n")
    done = Run(spec).end(1)
    assert "0 of 6 episodes stored" in done.err
    assert done.out.count("failed: no path") == 6


@pytest.mark.slow
def test_a_worker_that_grows_is_renewed_between_episodes_and_nobody_is_to_blame(tmp_path: Path):
    mishaps = {f"plan {index}": "leak" for index in range(1, 8)} | {f"view {index} 0": "nap" for index in range(6)}
    spec = make_spec(tmp_path / "data", mishaps=mishaps, episodes=12, memory_limit=250 << 20)
    run = Run(spec)
    run.end(0)
    assert run.faults() == []
    status = run.status()
    assert status and status.recycled >= 1


@pytest.mark.slow
def test_plans_that_do_not_fit_go_through_files(tmp_path: Path):
    big = tmp_path / "big.yaml"
    big.write_text("load: yard\nrandomize: yard\nplan: {yard: {size: 1000}}\nrender: yard\nstore: hdf5\n")
    small = make_spec(tmp_path / "data", pipeline=str(big), slot_bytes=4096, slots=2)
    assert finish(small) == finish_here(make_spec(tmp_path / "whole" / "data", pipeline=str(big)))
    assert set(count(small, "plan").values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("spill", [0, 64])
def test_planners_wait_or_write_files_when_every_slot_is_full(spill: int, tmp_path: Path):
    mishaps = {f"view {index} 0": "nap" for index in range(3)}
    spec = make_spec(tmp_path / "data", mishaps=mishaps, slots=2, spill=spill, fixed_roles=True)
    run = Run(spec, until="view 1 0")
    planned = len(count(spec, "plan"))
    assert planned <= 2 + 2 + spill
    assert planned > 4 or spill < 64
    run.end(0)
    assert set(count(spec, "plan").values()) == {1}
