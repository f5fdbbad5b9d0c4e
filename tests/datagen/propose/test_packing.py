"""Positions of objects on a table: outlines are separated, and only placed objects have goals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nimbus.datagen.errors import InputError
from nimbus.datagen.propose.catalogue import Catalogue
from nimbus.datagen.propose.goal_graph import Goal, GoalGraph, Thing
from nimbus.datagen.propose.grammar import Vocabulary, draw_graph
from nimbus.datagen.propose.packing import PackedPlaces, pack
from nimbus.datagen.propose.proposals import ProposalRequest, Workshop
from nimbus.datagen.propose.work_area import WorkArea
from nimbus.datagen.random_streams import generator
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.tasks.plugins import discover
from nimbus.datagen.usd.stage import StageInfo, read_stage


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    discover()
    return Catalogue(load_robot("panda"), ["containers", "furniture", "blocks", "kitchen"])


@pytest.fixture(scope="module")
def stage() -> StageInfo:
    return read_stage("table", where="test")


@pytest.fixture(scope="module")
def area() -> WorkArea:
    """Return a ring in front of the robot, as for a Panda."""
    points = np.stack(np.meshgrid(np.arange(0.2, 0.7, 0.02), np.arange(-0.5, 0.51, 0.02), indexing="ij"), -1)
    points = points.reshape(-1, 2)
    distance = np.linalg.norm(points, axis=1)
    points = points[(distance > 0.4) & (distance < 0.7) & (points[:, 0] > 0.6 * distance)]
    return WorkArea("table", points, np.eye(2), np.zeros(2))


def put_into(kinds: list[str], container: str) -> GoalGraph:
    things = [Thing("box", container), *(Thing(f"thing_{place}", kind) for place, kind in enumerate(kinds))]
    goals = [Goal("in", one.name, "box") for one in things[1:]]
    return GoalGraph("panda", "table", tuple(things), tuple(goals))


def packed(graph: GoalGraph, catalogue: Catalogue, area: WorkArea, stage: StageInfo, seed: int = 0) -> PackedPlaces:
    return pack(graph, catalogue, area, stage, rng=generator(seed, "test"))


def test_things_keep_a_distance(catalogue: Catalogue, area: WorkArea, stage: StageInfo) -> None:
    kinds = ["blocks.red_cube", "blocks.red_plank", "kitchen.mug", "kitchen.lemon", "kitchen.orange"]
    for seed in range(10):
        graph = put_into(kinds, "containers.crate")
        places = packed(graph, catalogue, area, stage, seed)
        for one in graph.things:
            for other in graph.things:
                if one.name >= other.name or {one.name, other.name} & set(places.yaws):
                    continue
                ends = [np.array(places.regions[f"{name}_start"].center) for name in (one.name, other.name)]
                apart = float(np.linalg.norm(ends[0] - ends[1]))
                assert apart > catalogue[one.kind].span + catalogue[other.kind].span + 0.03


def test_large_things_lie_along_a_full_table(catalogue: Catalogue, area: WorkArea, stage: StageInfo) -> None:
    colors = ("red", "orange", "yellow", "green")
    graph = put_into([f"blocks.{color}_plank" for color in colors], "containers.blue_tray")
    graph = GoalGraph("panda", "table", (*graph.things, Thing("tray", "containers.white_tray")), graph.goals)
    places = packed(graph, catalogue, area, stage)
    assert {"box", "tray"} <= set(places.yaws) and len(places.regions) == len(graph.things)


def test_a_library_of_few_kinds_gives_no_fault() -> None:
    vocabulary = Vocabulary(Catalogue(load_robot("panda"), ["beads"]))
    drawn = [draw_graph(vocabulary, seed=0, index=index, robot="panda", scene="table") for index in range(40)]
    assert not any(thing.kind not in vocabulary.catalogue for graph in drawn for thing in graph.things)


def test_files_name_libraries_of_ones_own_by_path(
    catalogue: Catalogue, area: WorkArea, stage: StageInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(catalogue.opened, "kitchen", f"{tmp_path}/mine/")
    (tmp_path / "mine").mkdir()
    request = ProposalRequest(count=1, seed=0, uses_physics=False, folder=tmp_path / "tasks")
    workshop = Workshop(request, catalogue, stage, area)
    graph = put_into(["kitchen.lemon"], "containers.crate")
    trial = workshop.try_graph(graph, index=0, attempt=0)
    assert "thing_0: {library: ../mine/, kinds: [lemon]" in trial.text
    assert "box: {library: containers, kinds: [crate]" in trial.text


def test_a_full_table_is_one_line(catalogue: Catalogue, area: WorkArea, stage: StageInfo) -> None:
    colors = ("red", "blue", "white", "grey", "yellow")
    things = tuple(Thing(color, f"containers.{color}_tray") for color in colors)
    graph = GoalGraph("panda", "table", things, (Goal("held", "red"),))
    with pytest.raises(InputError, match="no free position within reach for '.*'; give fewer or smaller things"):
        packed(graph, catalogue, area, stage)


def test_drawn_goals_have_places(catalogue: Catalogue, area: WorkArea, stage: StageInfo) -> None:
    def has_room(graph: GoalGraph) -> bool:
        try:
            packed(graph, catalogue, area, stage)
        except InputError:
            return False
        return True

    vocabulary = Vocabulary(catalogue)
    full = 0
    for index in range(8):
        free = draw_graph(vocabulary, seed=5, index=index, robot="panda", scene="table")
        graph = draw_graph(vocabulary, seed=5, index=index, robot="panda", scene="table", has_room=has_room)
        full += not has_room(free)
        assert has_room(graph)
    assert full


def test_a_catalogue_knows_its_names(catalogue: Catalogue) -> None:
    assert "kitchen.mug" in catalogue and "kitchen.mugg" not in catalogue
    with pytest.raises(InputError, match=r"unknown kind 'kitchen.mugg'; did you mean 'kitchen.mug'\?"):
        catalogue["kitchen.mugg"]
