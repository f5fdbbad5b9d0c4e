"""K regions of one stage against K separate renders, for several tasks: ``python benchmarks/stacked_tasks.py``.

The stage is that for Isaac Sim; the default renderer renders it as one world. Each state has different postures of the
arm and positions of the objects. Options: ``--tasks a,b``, ``--sizes 2,8,32``, ``--json FILE``.
"""
# The compared code is in the folder of the renderer's tests.
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]

TASKS = ("sort_trash", "open_drawer", "stack_blocks", "so101_block", "handover_block")
SIZES = (2, 8, 32)
SIZE = 48, 36
"""[px]"""


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for task in args.tasks.split(","):
        for row in compare(task, [int(text) for text in args.sizes.split(",")]):
            rows.append(row)
            sys.stdout.write("  ".join(f"{name} {value}" for name, value in row.items()) + "\n")
            sys.stdout.flush()
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")
    if any(row["depth_error_m"] > 1e-4 or row["wrong_labels"] for row in rows):
        raise SystemExit("not equal")


def compare(task: str, sizes: list[int]) -> list[dict[str, Any]]:
    """Return a row for each K."""
    import numpy as np

    from nimbus.datagen.usd.robot import robot_usd
    from nimbus.datagen.usd.stack_layout import StackLayout, stack_layout
    from nimbus.datagen.usd.stacked_stage import region_poses, write_stacked_stage
    from nimbus.datagen.usd.visual_assets import seen_bounds, write_visual_assets
    from tests.support.one_world import render_as_one_world

    loaded = load(task)
    cameras = [replace(camera, width=SIZE[0], height=SIZE[1]) for camera in loaded.cameras]
    shapes = {camera.name: SIZE for camera in cameras}
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fixtures = {name: fixture.prim_path for name, fixture in loaded.stage.fixtures.items()}
        usd = robot_usd(loaded.robot)  # pyright: ignore[reportArgumentType] (a frozen model is hashable)
        assets = write_visual_assets(loaded.stage.path, usd, fixtures, loaded.objects, folder / "assets")
        names, positions, wxyz = loaded.states(max(sizes))
        alone: dict[int, Any] = {}

        def show(path: Path, layout: StackLayout, steps: list[int]) -> Any:
            poses = {"names": names, "positions": positions[steps], "wxyz": wxyz[steps]}
            regions = write_stacked_stage(path, assets, layout, cameras=cameras, **poses)
            return render_as_one_world(path, regions, assets, shapes)

        for count in sizes:
            begin = time.process_time()
            steps = list(range(count))
            _, _, eyes, _ = region_poses(cameras, names, positions[steps], wxyz[steps])
            bounds = seen_bounds(assets, names, positions[steps], wxyz[steps])
            layout = stack_layout(count, bounds=bounds, eyes=eyes.reshape(-1, 3), cameras=cameras)
            together, known = show(folder / f"together_{count}.usda", layout, steps)
            one = StackLayout(spacing=layout.spacing, far=layout.far, origins=np.zeros((1, 3)))
            worst, wrong, pixels, shown = 0.0, 0, 0, 0
            for number in steps:
                if number not in alone:
                    alone[number] = show(folder / f"alone_{number}.usda", one, [number])
                frames, names_alone = alone[number]
                assert known == names_alone
                for camera in cameras:
                    mine, his = together[f"{number}/{camera.name}"], frames[f"0/{camera.name}"]
                    kept, his_kept = mine.depth <= layout.far, his.depth <= layout.far
                    depth, his_depth = np.where(kept, mine.depth, 0), np.where(his_kept, his.depth, 0)
                    labels, his_labels = np.where(kept, mine.instance, 0), np.where(his_kept, his.instance, 0)
                    worst = max(worst, float(np.abs(depth - his_depth).max()))
                    wrong, pixels = wrong + int((labels != his_labels).sum()), pixels + labels.size
                    shown += int((labels > 0).sum())
            row = {"task": task, "K": count, "cameras": len(cameras), "spacing_m": layout.spacing}
            row |= {"far_m": round(layout.far, 3), "depth_error_m": worst, "wrong_labels": wrong, "pixels": pixels}
            row |= {"seen": round(shown / pixels, 3), "cpu_s": round(time.process_time() - begin, 1)}
            rows.append(row)
    return rows


class _Loaded:
    """A task's scene with the objects of its first layout."""

    def __init__(self, task: Any) -> None:
        from nimbus.datagen.load.scene_loader import _open_libraries
        from nimbus.datagen.randomize.tabletop import draw_physical
        from nimbus.datagen.robots.robot import load_robot
        from nimbus.datagen.tasks.scene_assets import SceneAssets
        from nimbus.datagen.usd.stage import read_stage

        self.task, self.stage, self.robot = task, read_stage(task.scene), load_robot(task.robot)
        assets = SceneAssets(
            task=task,
            stage=self.stage,
            robot=self.robot,
            libraries=_open_libraries(task),
            reach=dict.fromkeys(task.regions, lambda x, y: True),  # pyright: ignore[reportArgumentType]
        )
        self.physical = draw_physical(task, assets, seed=0, index=0)
        self.objects = self.physical.objects
        self.cameras = [self.robot.mounted(settings.camera(name)) for name, settings in task.cameras.items()]

    def states(self, count: int) -> tuple[tuple[str, ...], Any, Any]:
        """Return names, positions (K, B, 3) and orientations (K, B, 4) of all bodies in K different states."""
        import mujoco
        import numpy as np

        from nimbus.datagen.simulate.newton import NewtonSimulation

        simulation = NewtonSimulation(self.stage, self.robot, rate=self.task.rate)
        simulation.load(self.physical)
        home, rng = simulation.data.qpos.copy(), np.random.default_rng(0)
        positions, wxyz = [], []
        for _ in range(count):
            simulation.data.qpos[:] = home
            moved = simulation.qpos_index
            simulation.data.qpos[moved] += rng.uniform(-0.15, 0.15, len(moved))
            for joint in np.flatnonzero(simulation.model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
                place = simulation.model.jnt_qposadr[joint]
                simulation.data.qpos[place : place + 2] += rng.uniform(-0.04, 0.04, 2)
            mujoco.mj_forward(simulation.model, simulation.data)
            positions.append(simulation.body_positions())
            wxyz.append(simulation.body_wxyz())
        return simulation.body_names, np.array(positions), np.array(wxyz)


def load(name: str) -> _Loaded:
    """Load a task by name."""
    from nimbus.datagen.tasks.task import load_task
    from nimbus.runner.system.threads import prepare_libraries

    prepare_libraries()
    return _Loaded(load_task(name))


if __name__ == "__main__":
    main()
