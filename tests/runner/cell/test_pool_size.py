"""Size of a worker pool, with workers simulated by the test."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from nimbus.datagen.files.codec import to_json
from nimbus.datagen.machine import usable_cores
from nimbus.runner.cell.pool_size import PoolSizer
from nimbus.runner.cell.transport.channel import pair
from nimbus.runner.cell.transport.spec import Instances, Resources
from nimbus.runner.monitor.scale import FILE_NAME, Scale
from tests.support.played_cell import Cell, open_cell

FIXED = Resources(fixed_roles=True)
ISAAC = Instances(executable="/isaac-sim/python", gpus=("a", "b", "c"), gpu_numbers=(0, 1, 2), gpu_free_bytes=(1,) * 3)


def make_sizer(cell: Cell, planners: int, renderers: int) -> PoolSizer:
    return PoolSizer(cell.dispatcher.spec, cell.pool, cell.dispatcher, split=(planners, renderers))


def roles(cell: Cell) -> Counter[str]:
    """Return the remaining workers, by role."""
    return Counter(handle.role for handle in cell.pool if not handle.retiring)


def spawn(cell: Cell, sizer: PoolSizer) -> None:
    fork_server, _theirs = pair()
    sizer.spawn(fork_server, 0.0)


def test_workers_of_fixed_roles_are_counted_by_role(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=9, slots=2, resources=FIXED) as cell:
        sizer = make_sizer(cell, 1, 1)
        for _ in range(2):
            cell.employ("planner")
        spawn(cell, sizer)
        assert roles(cell) == {"planner": 2, "renderer": 1}


def test_isolated_plans_leave_a_fixed_renderer_alone(tmp_path: Path) -> None:
    """For each episode that must be planned alone, one planner is replaced, one at a time."""
    with open_cell(tmp_path, episodes=2, variants=1, slots=2, resources=FIXED) as cell:
        sizer, lost = make_sizer(cell, 1, 1), [cell.employ("planner") for _ in range(2)]
        renderer = cell.employ("renderer")
        renderer.orders = renderer.done = 1
        for index, planner in enumerate(lost):
            cell.lose(planner)
            cell.dispatcher.work.isolate(index)
        for _ in range(2):
            spawn(cell, sizer)
            planner = next(handle for handle in cell.pool if handle.role == "planner")
            assert roles(cell) == {"planner": 1, "renderer": 1}
            assert cell.start(planner) == 1, "it is fresh"
            cell.finish(planner)
            sizer.make_room_for_isolated()
            if cell.dispatcher.work.isolated_roles:
                assert planner.retiring and not renderer.retiring
                cell.dispatcher.stop_worker(planner)
                cell.lose(planner)
        assert cell.orders_for(renderer) == 1 and renderer.role == "renderer"


@pytest.mark.parametrize(("instances", "roles_then"), [(None, [2, 1]), (ISAAC, [1, 1])], ids=["cpu", "isaacsim"])
def test_an_instance_never_becomes_a_planner(
    instances: Instances | None, roles_then: list[int], tmp_path: Path
) -> None:
    with open_cell(tmp_path, episodes=9, slots=2, resources=FIXED, instances=instances) as cell:
        sizer = make_sizer(cell, 1, 2)
        before = {cell.employ(role).number: role for role in ("planner", "renderer", "renderer")}
        sizer.rescale((2, 1), why="as asked")
        assert [roles(cell)["planner"], roles(cell)["renderer"]] == roles_then
        if instances:
            assert {handle.number: handle.role for handle in cell.pool} == before
        spawn(cell, sizer)
        assert roles(cell) == {"planner": 2, "renderer": 1}


def test_auto_has_one_instance_for_each_gpu(tmp_path: Path) -> None:
    with open_cell(tmp_path, episodes=9, slots=2, resources=FIXED, instances=ISAAC) as cell:
        sizer = make_sizer(cell, 1, 1)
        (cell.dataset.folder / FILE_NAME).write_text(to_json(Scale(launcher=os.getppid(), number=1)))
        sizer.look(0.0)
        assert sizer.split == (max(1, usable_cores() - 3), 3)
