"""Yields of earlier attempts change the draws, and order tasks by difficulty."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.propose.catalogue import Catalogue
from nimbus.datagen.propose.difficulty import SkillRecord, curriculum, task_acts
from nimbus.datagen.propose.drawing_weights import DrawingWeights, learn, read_weights
from nimbus.datagen.propose.goal_graph import Goal, GoalGraph, Thing
from nimbus.datagen.propose.grammar import FAMILIES, RELATIONS, Vocabulary, draw_graph
from nimbus.datagen.propose.planner import plan_task
from nimbus.datagen.propose.proposals import AttemptResult, Proposal, Trial
from nimbus.datagen.propose.traits import TRAITS
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.tasks.plugins import discover
from tests.support.synthetic import write_dataset

GRAPH = GoalGraph(
    "panda",
    "table",
    (
        Thing("apple", "kitchen.apple"),
        Thing("box", "containers.box"),
        Thing("cube", "blocks.red_cube"),
        Thing("plate", "kitchen.plate"),
    ),
    (Goal("in", "apple", "box"), Goal("on", "cube", "plate")),
)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    discover()
    return Catalogue(load_robot("panda", where=""), ["kitchen", "containers", "blocks"])


def trial(catalogue: Catalogue, *attempts: AttemptResult, graph: GoalGraph = GRAPH) -> Trial:
    plan = plan_task(graph, catalogue)
    return Trial(graph, "accepted", attempts=attempts, steps=len(plan.steps), plan=plan.steps)


def test_things_of_a_failed_goal_weigh_less():
    weights = DrawingWeights()
    for _ in range(6):
        learn(weights, GRAPH, 4, success=True, phase="")
        learn(weights, GRAPH, 4, success=False, phase="place apple_0 carry")
    assert weights.of_kind("kitchen.apple") == weights.of_kind("containers.box") < 0.85
    assert weights.of_kind("blocks.red_cube") > 1.1 < weights.of("relation", "on")
    assert weights.of_kind("kitchen.cup") == 1.0
    assert weights.of("relation", "in") < 1.0 == weights.of("length", "4-5")


def test_weights_are_bounded():
    weights = DrawingWeights()
    weights.add("object", "cup", tried=1000, first=0)
    weights.add("object", "apple", tried=1000, first=1000)
    assert (weights.of("object", "cup"), weights.of("object", "apple")) == (0.2, 1.5)


def test_draws_follow_the_weights(catalogue: Catalogue):
    weights, vocabulary = DrawingWeights(), Vocabulary(catalogue)
    for name in RELATIONS["pack"]:
        weights.add("relation", name, tried=100, first=0)
    weights.add("relation", "on", tried=100, first=100)

    def packed(weights: DrawingWeights | None) -> int:
        drawn = [
            draw_graph(vocabulary, seed=1, index=index, robot="panda", scene="table", weights=weights)
            for index in range(60)
        ]
        return sum("in" in graph.skeleton for graph in drawn)

    assert packed(weights) < 0.6 * packed(None)
    assert packed(DrawingWeights()) == packed(None)
    assert set(RELATIONS) == set(FAMILIES)


def test_log_of_earlier_proposals_gives_weights(tmp_path: Path):
    line: dict[str, Any] = {"stage": "physics", "steps": 4, "graph": GRAPH.to_plain()}
    line["attempts"] = [{"success": False, "phase": "pick apple_0", "reason": "no_ik", "detail": ""}]
    other = line | {"attempts": [{"success": True, "phase": "", "reason": "none", "detail": ""}]}
    text = "".join(f"{json.dumps(entry)}\n" for entry in (line, line, other, {"stage": "duplicate"}))
    (tmp_path / "proposals.jsonl").write_text(text)
    assert read_weights([tmp_path]).of_kind("kitchen.apple") < 1.0


def test_ledger_of_a_dataset_gives_weights(tmp_path: Path):
    write_dataset(tmp_path / "data")
    weights = read_weights([tmp_path / "data"])
    assert weights.of("object", "can") != weights.of("object", "bottle")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "no dataset"),
        ("{", "line 1"),
        ('{"attempts": [1]}', "line 1"),
        ("[" * 100_000, "line 1"),
        ("\udcff", "line 1"),
        (
            '{"attempts": [{}], "steps": Infinity, "graph": {"robot": "", "scene": "", "things": [], "goals": []}}',
            "line",
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_folder_without_yields_is_one_line(text: str | None, what: str, tmp_path: Path):
    if text is not None:
        (tmp_path / "proposals.jsonl").write_text(text, errors="surrogateescape")
    with pytest.raises(InputError, match=what):
        read_weights([tmp_path])


def test_failure_counts_for_the_act_of_its_phase(catalogue: Catalogue):
    record = SkillRecord()
    failed = trial(catalogue, AttemptResult(False, "place apple_0 carry", "no_ik"))
    record.learn(failed, catalogue)
    done = {act: (count.passed, count.tried) for act, count in record.counts.items()}
    assert done == {("pick", "apple"): (1, 1), ("place", "apple"): (0, 1)}
    assert [act for act, _ in task_acts(failed, catalogue)][2:] == [("pick", "red cube"), ("place", "red cube")]


def test_failure_of_success_counts_for_the_last_act(catalogue: Catalogue):
    record = SkillRecord()
    record.learn(trial(catalogue, AttemptResult(False, "success on cube_0", "not_on")), catalogue)
    assert {act for act, count in record.counts.items() if count.passed < count.tried} == {("place", "red cube")}


def test_steps_without_a_thing_are_acts_too(catalogue: Catalogue):
    pressing = replace(trial(catalogue), plan=({"press": "cube"}, "home"))
    record = SkillRecord()
    record.learn(replace(pressing, attempts=(AttemptResult(True),)), catalogue)
    assert set(record.counts) == {("press", "red cube"), ("home", "")}
    assert curriculum([Proposal(0, [pressing], "task_0000")], catalogue)[0]["task"] == "task_0000"


def test_curriculum_begins_with_what_succeeds(catalogue: Catalogue):
    short = GoalGraph("panda", "table", GRAPH.things[2:], (Goal("on", "cube", "plate"),))
    good, bad = AttemptResult(True), AttemptResult(False, "place apple_0", "no_ik")
    easy = Proposal(0, [trial(catalogue, good, good, graph=short)], "task_0001")
    hard = Proposal(1, [trial(catalogue, bad, good, good)], "task_0000")
    found = curriculum([hard, easy], catalogue)
    assert [entry["task"] for entry in found] == ["task_0001", "task_0000"]
    assert found[1]["hardest"] == {"skill": "place", "category": "apple", "passed": 2, "of": 3}
    assert np.all(np.diff([entry["difficulty"] for entry in found]) > 0)


@pytest.mark.parametrize(
    ("kind", "container", "why"),
    [
        ("blocks.red_cube", "containers.red_bucket", "handle"),
        ("kitchen.glass", "containers.red_tray", "above the rim"),
        ("kitchen.apple", "containers.red_tray", "above the rim"),
        ("blocks.red_cube", "containers.box", ""),
        ("kitchen.spoon", "containers.red_tray", ""),
    ],
)
def test_things_fit_below_a_rim_without_handle(kind: str, container: str, why: str, catalogue: Catalogue):
    assert why in (reason := TRAITS["fits"](catalogue[kind], catalogue[container])) and bool(reason) == bool(why)
