"""Attempts are recorded and judged, and can be replayed from the record alone."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pytest

from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Outcome, Reason, Trajectory
from nimbus.datagen.execute.planner import SkillPlanner, run_attempt
from nimbus.datagen.execute.recorder import largest_creep
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import TabletopRandomizer, draw_physical
from nimbus.datagen.stages import Planned, Request, Scene
from nimbus.runner.checks.replay import replay_actions
from tests.support.one_can import TEXT, assets, simulation, task, workcell

SORT = """\
  - for item in items:
      - pick: item
      - place: {object: item, into: "bins[item.class]"}
"""
ONLY_HOME = TEXT.replace(SORT, "")
PHASES = ["reach", "grasp", "lift", "carry", "release", "retreat", "home"]


@lru_cache
def physical() -> PhysicalLayout:
    return draw_physical(task(), assets(), seed=0, index=0)


def attempt(*, text: str = TEXT, number: int = 0, at: PhysicalLayout | None = None) -> Trajectory:
    streams = partial(generator, 0, 0, "attempt", number)
    return run_attempt(task(text), simulation(), at or physical(), streams=streams, planner="ompl")


@pytest.fixture(scope="module")
def done() -> Trajectory:
    """Return an attempt that puts a can into its bin."""
    return attempt()


def bytes_of(trajectory: Trajectory) -> bytes:
    """Return all hashed content; plan statistics contain times."""
    arrays = (
        trajectory.joint_positions,
        trajectory.joint_velocities,
        trajectory.actions,
        np.zeros(0) if trajectory.executed_actions is None else trajectory.executed_actions,
        trajectory.body_positions,
        trajectory.body_wxyz,
        trajectory.start.joint_positions,
        *trajectory.contacts.values(),
    )
    return b"".join(array.tobytes() for array in arrays) + repr((trajectory.segments, trajectory.outcome)).encode()


def test_a_can_ends_in_its_bin(done: Trajectory):
    assert done.outcome == Outcome(success=True)
    bin_at = assets().stage.fixtures["recycling"].position
    assert np.abs(done.body_positions[-1, -1, :2] - bin_at[:2]).max() < 0.15
    assert np.linalg.norm(done.body_positions[0, -1] - physical().objects[0].position) < 0.005


def test_arrays_have_the_shapes_that_are_documented(done: Trajectory):
    count, joints, bodies = done.step_count, len(done.joint_names), len(done.body_names)
    assert (joints, done.action_names[-1], done.body_names[-1]) == (9, "gripper", "items_0")
    assert done.joint_positions.shape == done.joint_velocities.shape == (count, joints)
    assert done.actions.shape == (count, len(done.action_names))
    assert done.body_positions.shape == (count, bodies, 3)
    assert done.body_wxyz.shape == (count, bodies, 4)
    assert np.allclose(np.linalg.norm(done.body_wxyz, axis=-1), 1)
    assert np.allclose(done.time, np.arange(count) / 15)
    assert all(values.shape == (count,) for values in done.contacts.values())
    assert set(done.contacts) == {"held_penetration", "table_penetration", "held_slip", "grip_force"}
    plan_counts = {len(values) for values in done.plan_statistics.values()}
    assert len(plan_counts) == 1 and plan_counts.pop() >= 4


def test_every_plan_is_checked_once_more_and_touches_nothing(done: Trajectory):
    assert done.plan_statistics["recheck_depth"].tolist() == [0.0] * 5  # reach, lift, carry, retreat, home


def test_states_stay_close_to_what_was_executed(done: Trajectory):
    assert done.executed_actions is not None
    reference = (done.executed_actions[1:-1, :7] + done.executed_actions[:-2, :7]) / 2
    assert np.abs(done.joint_positions[2:, :7] - reference).max() < 0.03
    assert np.abs(np.diff(done.actions[:, :7], axis=0)).max() * 15 < 2.7


def test_segments_cover_all_steps_in_order(done: Trajectory):
    assert done.segments[0].start == 0 and done.segments[-1].stop == done.step_count
    for one, following in zip(done.segments, done.segments[1:], strict=False):
        assert one.start < one.stop == following.start
    phases = [segment.phase for segment in done.segments if segment.skill != "wait"]
    assert phases == PHASES
    assert {(segment.skill, segment.target) for segment in done.segments} >= {
        ("pick", "items_0"),
        ("place", "items_0"),
        ("home", ""),
    }


def test_episode_ends_at_rest(done: Trajectory):
    rest = done.segments[-1]
    assert (rest.skill, rest.phase, rest.stop - rest.start) == ("wait", "rest", 8)
    moving = np.abs(done.joint_velocities[rest.start :]).max(axis=1) > 0.02
    assert moving[0] and not moving[-5:].any()
    assert np.ptp(done.actions[rest.start :], axis=0).max() == 0.0


def test_contacts_are_believable(done: Trajectory):
    assert 0 < done.contacts["held_penetration"].max() < 0.002
    assert done.contacts["table_penetration"].max() < 0.001
    assert 0 < largest_creep(done.contacts["held_slip"], rate=done.rate) < 0.0005
    held = done.contacts["grip_force"] > 0
    lift, release = (next(s for s in done.segments if s.phase == phase) for phase in ("lift", "release"))
    assert np.all(held[lift.start : release.start]) and not held[: lift.start - 4].any() and not held[-1]


def test_the_recorded_actions_alone_give_the_same_states_and_outcome(done: Trajectory):
    again = replay_actions(task(), physical(), done)
    assert np.array_equal(again.joint_positions, done.joint_positions)
    assert np.array_equal(again.body_positions, done.body_positions)
    assert np.array_equal(again.body_wxyz, done.body_wxyz)
    assert again.outcome == done.outcome
    assert again.executed_actions is not None
    np.testing.assert_array_equal(again.executed_actions, done.executed_actions)


def test_execution_noise_ends_before_the_grasp(done: Trajectory):
    assert done.executed_actions is not None
    noise = done.executed_actions - done.actions
    reach, *others = done.segments
    noisy = np.flatnonzero(noise.any(axis=1))
    assert reach.phase == "reach" and not noise[:, 7].any()
    assert len(noisy) > 0.7 * (reach.stop - reach.start) and noisy.max() < reach.stop - 2
    assert 0.005 < noise[noisy, :7].std() < 0.025


def test_recorded_actions_alone_lead_to_success_too(done: Trajectory):
    clean = replay_actions(task(), physical(), done, actions="recorded")
    assert clean.outcome == done.outcome and clean.executed_actions is None
    apart = np.abs(clean.joint_positions - done.joint_positions).max()
    assert 0.01 < apart < 0.1


def test_no_execution_noise_stores_no_executed_actions():
    clean = attempt(text=TEXT.replace("steps:", "execution_noise: 0 rad\nsteps:"))
    assert clean.outcome.success and clean.executed_actions is None


def test_the_same_key_gives_the_same_bytes(done: Trajectory):
    assert bytes_of(attempt()) == bytes_of(done)


def test_attempts_and_their_plans_draw_from_streams_of_their_own():
    drawn = []
    for number in range(3):
        cell = workcell()
        cell.streams = partial(generator, 0, 0, "attempt", number)
        drawn += [cell.rng().random(), cell.rng().random()]
    assert len(set(drawn)) == len(drawn)


def test_a_skill_that_cannot_be_done_ends_the_attempt_with_phase_and_reason():
    failed = attempt(text=TEXT.replace("      - pick: item\n", "      - move: [2.0, 0.0, 0.3]\n      - pick: item\n"))
    assert not failed.outcome.success
    assert failed.outcome.reason == Reason.NO_IK and failed.outcome.phase == "move move"
    assert failed.step_count == 0 and failed.actions.shape == (0, 8) and failed.segments == ()


def test_a_condition_that_does_not_hold_ends_the_attempt_with_its_reason():
    failed = attempt(text=ONLY_HOME)
    assert failed.outcome.reason == Reason.NOT_IN_BIN
    assert failed.outcome.phase == "success inside items_0"


def test_an_arm_that_cannot_follow_its_commands_is_noticed_also_in_a_replay(done: Trajectory):
    actions = done.actions.copy()
    actions[5:, 1] += np.minimum(0.2 * np.arange(1, len(actions) - 4), 1.2)  # down into the table
    pushed = replay_actions(task(), physical(), replace(done, actions=actions, executed_actions=None))
    assert (pushed.outcome.success, pushed.outcome.reason) == (False, Reason.TRACKING_ERROR)
    assert 0 < pushed.step_count < done.step_count


def test_a_simulation_that_blows_up_is_called_unstable(done: Trajectory):
    actions = done.actions.copy()
    actions[3] = np.nan
    blown = replay_actions(task(), physical(), replace(done, actions=actions, executed_actions=None))
    assert blown.outcome.reason == Reason.UNSTABLE


def planned(text: str, *, attempts: int) -> list[Planned]:
    chosen = task(text)
    provenance = Provenance(task_text=text, task_hash=chosen.content_hash)
    scene = Scene(request=Request(index=0), assets=assets(), provenance=provenance)
    (randomized,) = TabletopRandomizer(chosen, 0).process(scene)
    return list(SkillPlanner(chosen, attempts=attempts).process(randomized))


def test_attempts_end_with_the_first_success(done: Trajectory):
    (only,) = planned(TEXT, attempts=3)
    assert only.final and only.attempt == 0 and only.trajectory.outcome.success
    assert only.times["plan"] > 0
    assert bytes_of(only.trajectory) == bytes_of(done)


def test_attempts_that_fail_are_all_told_and_the_last_is_final():
    results = planned(ONLY_HOME, attempts=2)
    assert [(result.attempt, result.final, result.trajectory.outcome.success) for result in results] == [
        (0, False, False),
        (1, True, False),
    ]


def test_held_objects_that_sink_in_too_far_are_no_success(monkeypatch: pytest.MonkeyPatch):
    from nimbus.datagen.execute import planner

    monkeypatch.setitem(planner._BELIEVABLE, "held_penetration", 1e-9)
    refused = attempt()
    assert refused.outcome.reason == Reason.UNBELIEVABLE_CONTACT
    assert refused.outcome.phase == "success contacts" and "held penetration of 0.0" in refused.outcome.detail
