"""Composite steps, executed in physics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pytest
from pydantic import Field

from nimbus.datagen import registry
from nimbus.datagen.episode.layout import EpisodeKey, PhysicalLayout, PlacedObject
from nimbus.datagen.episode.trajectory import Outcome, Reason, Trajectory
from nimbus.datagen.execute.interpreter import TaskPerformer, performer
from nimbus.datagen.execute.planner import make_motion_planner, run_attempt, settle
from nimbus.datagen.execute.workcell import SimulatedWorkcell
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.registry import register
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.tasks.statements import Skill, SkillFailure
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.tasks.workcell_interface import Workcell
from nimbus.datagen.usd.stage import read_stage
from tests.support.one_can import TEXT, assets, layout, put, simulation, task, thing
from tests.support.refusals import refusal

HEAD, TAIL = TEXT.split("steps:\n")[0], "cameras:" + TEXT.split("cameras:")[1]
CANS = (thing("items_0", x=0.45, y=-0.1), thing("items_1", x=0.5, y=0.15))

discover()


class Stumble(Skill):
    """Fail with a reason."""

    main = "reason"
    fails_with = ("tripped",)
    reason: str = Field(description="Why.")

    def run(self, arm: Workcell) -> None:
        raise SkillFailure(self.reason, "stumbled")


@pytest.fixture(scope="module", autouse=True)
def stumbling() -> Iterator[None]:
    """Register the skill for these tests only, because other tests list all skills."""
    register("skill", "stumble")(Stumble)
    yield
    registry._components.pop(("skill", "stumble"))


def said(steps: str) -> str:
    body = "".join(f"  {line}\n" for line in steps.splitlines())
    return f"steps:\n{body}success:\n  - at_rest\n{TAIL}"


@lru_cache
def task_of(steps: str, *, success: str = "- at_rest", count: str = "count: 1") -> Task:
    body = "".join(f"  {line}\n" for line in steps.splitlines())
    said = "".join(f"  {line}\n" for line in success.splitlines())
    return task(HEAD.replace("count: 1", count) + "steps:\n" + body + "success:\n" + said + TAIL)


def attempt(steps: str, *things: PlacedObject, success: str = "- at_rest", drawn: dict | None = None) -> Trajectory:
    placed = things or (thing(),)
    chosen = task_of(steps, success=success, count=f"count: {len(placed)}")
    at = PhysicalLayout(objects=placed, drawn={"choices": drawn or {}})
    return run_attempt(chosen, simulation(*placed), at, streams=partial(generator, 0), planner="ompl")


def skills(done: Trajectory) -> list[str]:
    """Return the executed steps in order, without the final waits."""
    return [f"{part.skill} {part.target}".strip() for part in done.segments if part.phase not in ("settle", "rest")]


def test_a_reason_of_its_own_is_declared():
    done = attempt("- stumble: tripped")
    assert (done.outcome.reason, done.outcome.reason.value) == ("tripped", "tripped")
    assert attempt("- try: {stumble: tripped}\n  recover: [{on: tripped, do: [home]}]").outcome.success
    told = refusal(attempt, "- stumble: too_grumpy")
    assert (
        told.startswith(f"{Path(__file__).relative_to(Path.cwd())}:") and "'stumble' fails with the undeclared" in told
    )
    assert 'write fails_with = ("too_grumpy",) in class Stumble' in told


def test_a_choice_takes_the_branch_that_the_layout_says():
    text = "- choose: [{wait: 0.2}, {gripper: closed}]"
    address = "steps[0].choose"
    assert skills(attempt(text, drawn={address: 0})) == ["wait"]
    assert skills(attempt(text, drawn={address: 1})) == ["gripper closed"]


def test_one_object_is_chosen_for_steps_and_conditions_alike():
    steps = "- choose one in items:\n    - move: above(one, 20 cm)"
    success = "- choose one in items:\n    - at_pose: {at: 'above(one, 20 cm)', within: 1 cm}"
    ends = [attempt(steps, *CANS, success=success, drawn={"one in items": index}) for index in (0, 1)]
    assert [end.outcome.success for end in ends] == [True, True]
    assert np.abs(ends[0].joint_positions[-1] - ends[1].joint_positions[-1]).max() > 0.1


def test_choices_are_drawn_for_the_episode_with_their_weights_and_no_others():
    chosen = task_of(
        "- for item in items:\n    - choose: [25 %: home, 75 %: {wait: 1}]\n- choose one in items: [pick: one]",
        count="count: [2, 3]",
    )
    drawn = [draw_physical(chosen, assets(), seed=1, index=index) for index in range(30)]
    names = {item.name for item in drawn[0].objects}
    addresses = {f"steps[0].'for item in items'[0].choose {name}" for name in names} | {"one in items"}
    assert drawn[0].drawn["choices"].keys() == addresses
    taken = [value for each in drawn for key, value in each.drawn["choices"].items() if "choose" in key]
    assert 0.55 < np.mean(taken) < 0.95
    assert {each.drawn["choices"]["one in items"] for each in drawn} >= {0, 1}
    again = draw_physical(chosen, assets(), seed=1, index=7)
    assert again == drawn[7]


def test_the_wording_names_what_was_chosen():
    head = HEAD.replace("kinds: [can], count: 1", "kinds: [can, pear], count: 2, distinct: true")
    text = head + said("- choose one in items: [pick: one]")
    chosen = task(text.replace('["Sort the trash."]', '["Take {one}."]'))
    seen = set()
    for index in range(8):
        physical = draw_physical(chosen, assets(), seed=3, index=index)
        key = EpisodeKey(task=chosen.name, task_hash=chosen.content_hash, seed=3, index=index)
        wording = draw_visual(chosen, assets().stage, assets().robot, physical, key=key).instruction
        assert wording == f"Take the {physical.objects[physical.drawn['choices']['one in items']].kind}."
        seen.add(wording)
    assert seen == {"Take the can.", "Take the pear."}


def test_tasks_without_choices_have_layouts_as_before():
    assert "choices" not in draw_physical(task(), assets(), seed=0, index=0).drawn


@pytest.mark.parametrize(
    ("condition", "done"),
    [
        ("{upright: items}", "wait"),
        ("{not: {upright: items}}", "gripper closed"),
        ("[{upright: items}, {near: {object: items, to: recycling, within: 1 cm}}]", "gripper closed"),
        ("{any: [{near: {object: items, to: recycling, within: 1 cm}}, {upright: items}]}", "wait"),
    ],
)
def test_physics_decides_a_condition(condition: str, done: str):
    text = f"- if: {condition}\n  then: {{wait: 0.2}}\n  else: {{gripper: closed}}"
    assert skills(attempt(text)) == [done]


def test_steps_are_repeated_until_physics_says_enough():
    lower = "- repeat: [move: 'tool + [0, 0, -5 cm]']\n  until: {at_pose: {at: [0, 0, 0.4], axes: z, within: 3 cm}}"
    assert attempt(lower).outcome.success
    in_vain = attempt("- repeat: [wait: 0.1]\n  until: {not: {upright: items}}\n  at_most: 3")
    assert in_vain.outcome.reason == Reason.UNWANTED and in_vain.outcome.detail.startswith("after 3 times: ")
    assert in_vain.step_count == 6
    times = attempt("- {repeat: {wait: 0.1}, times: 4}")
    assert times.outcome.success and skills(times) == ["wait"] and times.segments[0].stop == 8


FAR = "stumble: no_ik"


def test_a_recovery_follows_a_failure_and_may_try_again():
    done = attempt(f"- try: [wait: 0.1, {FAR}]\n  recover: [gripper: closed, gripper: open]")
    assert done.outcome.success and skills(done) == ["wait", "gripper closed", "gripper open"]
    again = attempt(f"- try: [wait: 0.1, {FAR}]\n  recover: [gripper: closed, gripper: open, retry]\n  at_most: 2")
    assert again.outcome.reason == Reason.NO_IK
    assert skills(again) == ["wait", *["gripper closed", "gripper open", "wait"] * 2]


def test_the_reason_selects_the_recovery_and_none_fits_is_the_failure():
    text = "- try: {stumble: no_ik}\n  recover: [{on: missed_grasp, do: home}, {on: [no_path, no_ik], do: {wait: 0.1}}]"
    assert skills(attempt(text)) == ["wait"]
    none = attempt(f"- try: {{{FAR}}}\n  recover: [{{on: missed_grasp, do: home}}]")
    assert (none.outcome.reason, none.outcome.phase) == (Reason.NO_IK, "stumble no_ik")


def test_recoveries_take_turns():
    text = f"- try: {{{FAR}}}\n  recover: [[wait: 0.1, retry], [gripper: closed, gripper: open, retry]]\n  at_most: 3"
    assert skills(attempt(text)) == ["wait", "gripper closed", "gripper open", "wait"]


def test_giving_up_ends_the_attempt_with_the_failure_that_led_there_also_inside_another_try():
    inner = f"try: {{{FAR}}}, recover: give_up"
    done = attempt(f"- {{try: {{{inner}}}, recover: home}}\n- home")
    assert done.outcome.reason == Reason.NO_IK and done.step_count == 0
    alone = attempt("- give_up")
    assert (alone.outcome.reason, alone.outcome.detail) == (Reason.GIVEN_UP, "as the steps say")


def test_an_arm_that_was_stopped_in_the_middle_goes_on_from_where_it_is():
    chosen = task_of("- home")
    cell, doing = working(chosen)
    cell.simulation.data.qvel[cell.simulation.dof_index[:7]] = 0.5
    cell._command[0] += 0.2
    cell.regain()
    assert np.allclose(cell.arm_command, cell.simulation.joint_positions()[:7])
    doing.do(chosen.steps, doing.scope)
    assert np.abs(cell.simulation.joint_positions()[:7] - cell.robot.arm.home).max() < 0.02


def test_two_arms_do_their_steps_at_the_same_time_and_the_longer_one_ends_it():
    text = "- parallel: {left: {gripper: closed}, right: {try: {stumble: no_ik}, recover: {wait: 0.6}}}\n- wait: 0.2"
    chosen = task(
        HEAD.replace("robot: panda", "robot: dual_panda").replace("scene: tabletop", "scene: table") + said(text)
    )
    made = NewtonSimulation(read_stage("table"), load_robot("dual_panda"), rate=15.0)
    done = run_attempt(chosen, made, layout(thing()), streams=partial(generator, 0), planner="ompl")
    assert done.outcome.success
    labels = [(part.skill, part.stop - part.start) for part in done.segments if part.phase != "rest"]
    assert [skill for skill, _ in labels] == ["gripper+wait", "wait"] and sum(count for _, count in labels) == 12
    opening = {name: done.actions[8, index] for index, name in enumerate(done.action_names) if "gripper" in name}
    assert sorted(opening.values()) == pytest.approx([0.0, made.robot.arms[0].gripper.open], abs=1e-4)


def test_what_was_lost_on_the_way_is_fetched_again():
    text = """\
- pick: items
- try: {wait: 0.5}
  recover: [gripper: open, pick: items]"""
    chosen = task_of(text)
    cell, doing = working(chosen)
    doing.do(chosen.steps[:1], doing.scope)
    put(cell.simulation, "items_0", cell.start_poses["items_0"][:3, 3] + (0.05, 0, 0))
    doing.do(chosen.steps[1:], doing.scope)
    assert cell.held == "items_0" and skills(cell.finish(Outcome(success=True)))[-1] == "pick items_0"


def working(chosen: Task, *things: PlacedObject) -> tuple[SimulatedWorkcell, TaskPerformer]:
    placed = things or (thing(),)
    made = simulation(*placed)
    settle(made)
    planner = make_motion_planner("ompl", made.robot, rate=made.rate)
    cell = SimulatedWorkcell(made, planner, layout(*placed), streams=partial(generator, 0), regions=chosen.regions)
    return cell, performer(chosen, cell, layout(*placed))
