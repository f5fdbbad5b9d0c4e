"""The adapter in this process, with a stand-in for cuRobo: this verifies the calls, not the behavior of cuRobo."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nimbus.datagen.plan.curobo.robot import ATTACHED, TOOL, RobotModel, describe_robot
from tests.support.panda_table import ACCELERATION, HOME, VELOCITY, make_scene, table_model
from tools.contract.curobo_python import standin

SCENE = make_scene(table_model())
AWAY = HOME + [0.6, 0.2, 0.0, 0.3, 0.0, 0.2, 0.0]


@cache
def robot() -> RobotModel:
    """Return the robot of the scene, with its links as spheres."""
    return describe_robot(SCENE.parts(), home=SCENE.home, velocity=VELOCITY, acceleration=ACCELERATION)


@pytest.fixture
def built() -> list[str]:
    return []


@pytest.fixture
def adapter(tmp_path: Path, built: list[str]) -> Iterator[Any]:
    with standin().installed():
        from nimbus.datagen.plan.curobo.adapter import CuroboAdapter

        yield CuroboAdapter(tmp_path, built.append)


def query(count: int = 1, *, boxes: int = 1, size: float = 0.1, spheres: int = 2, **changed: Any) -> tuple[Any, Any]:
    """Return a query from home to another posture, near some boxes and one mesh."""
    header: dict[str, Any] = {
        "robot": {"urdf": robot().urdf, "config": robot().config, "joints": list(robot().joints)},
        "tool": TOOL,
        "attached": ATTACHED,
        "worlds": [{"key": f"{boxes} {size}", "mesh_names": ["tetrahedron-0"]}],
        "world_of": [0] * count,
        "batch": 1 if count == 1 else 4,
        "goal_slots": 1,
    }
    arrays = {
        "starts": np.tile(HOME, (count, 1)),
        "goal_joints": np.tile(AWAY, (count, 1)),
        **{f"attached{row}": np.full((spheres, 4), 0.01) for row in range(count)},
        "box_poses0": np.tile([1.0, 0, 0, 1, 0, 0, 0], (boxes, 1)),
        "box_sizes0": np.full((boxes, 3), size),
        "mesh_poses0": np.array([[0, 1.0, 0, 1, 0, 0, 0]]),
        "vertices0_0": size * np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        "faces0_0": np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]),
    }
    return header | changed, arrays


def test_a_motion_comes_back_in_our_order_and_without_the_rest_of_its_buffer(adapter: Any) -> None:
    answer, found = adapter.plan(*query())
    assert [told["status"] for told in answer["queries"]] == ["success"] and answer["step"] == 0.02
    np.testing.assert_allclose(found["positions0"][[0, -1]], [HOME, AWAY], atol=1e-6)
    assert found["positions0"].shape == (60, 7)


def test_planners_are_kept_until_the_world_outgrows_them_or_the_robot_changes(adapter: Any, built: list[str]) -> None:
    for boxes in (1, 3, 16):
        adapter.plan(*query(boxes=boxes))
    assert len(built) == 1
    adapter.plan(*query(boxes=17))
    assert len(built) == 2
    adapter.plan(*query(boxes=2))
    adapter.plan(*query(count=3))
    assert len(built) == 3
    header, arrays = query()
    header["robot"] = header["robot"] | {"urdf": robot().urdf + "\n"}
    adapter.plan(header, arrays)
    assert len(built) == 4
    adapter.close()


def test_a_batch_is_filled_up_and_only_what_was_asked_comes_back(adapter: Any) -> None:
    answer, found = adapter.plan(*query(count=3))
    assert len(answer["queries"]) == len(found) == 3


def test_a_batch_plans_to_sets_of_goals(adapter: Any) -> None:
    """A batch planner must not plan to single goals first, because cuRobo cannot enlarge goal sets later."""
    header, arrays = query(count=3, goal_slots=4)
    down = [0.4, 0.1, 0.4, 0.0, 1.0, 0.0, 0.0]
    arrays["goal_poses"] = np.tile(down, (len(arrays.pop("goal_joints")), 4, 1))
    assert [told["status"] for told in adapter.plan(header, arrays)[0]["queries"]] == ["success"] * 3


def test_each_query_has_its_own_world_and_spheres(adapter: Any) -> None:
    """Two queries in worlds of one and three boxes, the second with an empty hand, fill a batch of four."""
    header, arrays = query(count=2)
    _, other = query(boxes=3, size=0.2)
    header["worlds"].append({"key": "other", "mesh_names": ["tetrahedron-1"]})
    header["world_of"] = [0, 1]
    arrays |= {name.replace("0", "1", 1): value for name, value in other.items() if name[:4] in ("box_", "mesh")}
    arrays |= {"vertices1_0": other["vertices0_0"], "faces1_0": other["faces0_0"], "attached1": np.zeros((0, 4))}
    answer, _ = adapter.plan(header, arrays)
    planner = adapter._batches[4, 1]
    worlds = planner.scene_collision_checker.played_worlds
    assert [len(worlds[row].cuboid) for row in range(4)] == [1, 3, 3, 3]
    spheres = planner.kinematics.config.kinematics_config.played_spheres
    assert [int((spheres[row][:, 3] > 0).sum()) for row in range(4)] == [2, 0, 0, 0]
    assert [told["status"] for told in answer["queries"]] == ["success"] * 2
    assert not planner.config.ik_solver_config.exit_early, "a result would depend on when the others are solved"
