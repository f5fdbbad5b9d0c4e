"""One stage of each kind that Nimbus opens in Isaac Sim: an imported object, a room, a home, a scene of triangles."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.episode.layout import EpisodeKey, Layout
from nimbus.runner.isaac.compare import Check
from nimbus.runner.isaac.instance import ROOT_WORD, environment, instance_paths, link_package

if TYPE_CHECKING:
    from nimbus.runner.cell.transport.spec import Instances

_TASK = """\
robot: panda
scene: {scene}
regions:
  start: {{on: table, center: [0.5, 0.0], size: [0.2, 0.2]}}
objects:
  item: {{library: {library}, kinds: all, count: 1, region: start}}
steps:
  - pick: item
success:
  - at_rest: item
cameras:
  front: {{position: [1.5, 0.0, 0.9], look_at: [0.45, 0.0, 0.05], vertical_fov: 42 deg, size: [64, 48]}}
instructions: ["Lift it."]
"""
_LONGEST = 1800.0
"""Time limit for a cold start of Isaac Sim and the four stages [s]."""
_LIBRARY = "trash"
"""Library of the object in the room."""


@dataclass(frozen=True, kw_only=True)
class TrialStage:
    """A stage and the numbers of its prims."""

    name: str
    path: str
    meshes: int
    """Number of visible meshes."""
    painted: int
    """Number of visible meshes with a material."""
    colliders: int
    bodies: int
    """Number of rigid bodies; physics is only stepped if there are any."""


def write_trial_stages(folder: Path) -> list[TrialStage]:
    """Write the stages into a new folder, without any download.

    Args:
        folder: The folder.
    """
    from nimbus.datagen.assets.import_library import import_assets
    from nimbus.datagen.navigate.homes import home_scene
    from nimbus.datagen.navigate.read.open_scene import open_scene
    from nimbus.datagen.usd.scene_stage import write_scene_stage

    folder.mkdir(parents=True, exist_ok=True)
    (source := folder / "source").mkdir()
    _write_block(source / "wedge.obj")
    import_assets([source], folder / "library", license="CC0-1.0")
    paths = {name: folder / f"{name.replace(' ', '_')}.usda" for name in ("object", "room", "home", "triangles")}
    _write_layout(paths["object"], _TASK.format(scene="tabletop", library="library/"))
    _write_layout(paths["room"], _TASK.format(scene="kitchen", library=_LIBRARY))
    write_scene_stage(paths["home"], home_scene(0, (3, 3)))
    _write_booth(folder / "booth.glb")
    write_scene_stage(paths["triangles"], open_scene(folder / "booth.glb", "auto"))
    titles = ("imported object", "room", "home", "scene of triangles")
    return [_count(title, path) for title, path in zip(titles, paths.values(), strict=True)]


def try_stages(folder: Path, instances: Instances) -> list[Check]:
    """Open one stage of each kind in Isaac Sim, and compare its prims with those in the file.

    Args:
        folder: A new folder for the stages.
        instances: The installation; its first GPU is used.
    """
    folder = folder.absolute()
    stages = write_trial_stages(folder)
    place = instance_paths(instances, 0)
    place.root.mkdir(parents=True, exist_ok=True)
    link_package(place)
    answer = folder / "opened.jsonl"
    words = [json.dumps([asdict(stage) for stage in stages]), str(answer), str(place.gpu_number)]
    libraries = json.dumps(list(instances.libraries))
    command = [instances.executable, "-P", "-m", "nimbus.runner.isaac.open_stages", *words, libraries]
    begin = time.monotonic()
    with (folder / "opened.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, ROOT_WORD, str(place.root)],
            env=environment(instances, place, os.environ),
            cwd=place.root,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            process.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lines = answer.read_text().splitlines() if answer.exists() else []
    rows = {row["name"]: row for row in map(json.loads, lines)}
    missing = f"not opened: see {folder / 'opened.log'}"
    checks = [check_stage(stage, rows.get(stage.name), missing) for stage in stages]
    return [Check(**asdict(checks[0]) | {"seconds": time.monotonic() - begin}), *checks[1:]]


def check_stage(stage: TrialStage, row: dict[str, Any] | None, missing: str) -> Check:
    """Compare the prims of a stage in Isaac Sim with those in the file.

    Args:
        stage: The stage as it was written.
        row: Numbers of the prims in Isaac Sim; None if the stage was not opened.
        missing: Text of the check if the stage was not opened.
    """
    name = f"opens: {stage.name}"
    if row is None:
        return Check(name=name, passed=False, found=missing)
    counts = ("meshes", "painted", "colliders", "bodies")
    is_equal = all(row[key] == getattr(stage, key) for key in counts)
    found = ", ".join(f"{row[key]} of {getattr(stage, key)} {key}" for key in counts)
    return Check(name=name, passed=is_equal and row["steady"], found=found + ("" if row["steady"] else ", unsteady"))


def _count(name: str, path: Path) -> TrialStage:
    from pxr import Usd

    from nimbus.runner.isaac.open_stages import count_prims

    stage: Any = Usd.Stage.Open(str(path))
    return TrialStage(name=name, path=str(path), **count_prims(stage))


def _write_layout(path: Path, text: str) -> None:
    """Write the first layout of a task."""
    from nimbus.datagen.load.scene_loader import load_assets
    from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
    from nimbus.datagen.tasks.task import load_task
    from nimbus.datagen.usd.layout_export import write_layout_stage

    file = path.with_suffix(".yaml")
    file.write_text(text)
    task = load_task(str(file))
    assets = load_assets(task)
    physical = draw_physical(task, assets, seed=0, index=0)
    key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=0, index=0)
    visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
    write_layout_stage(path, assets.stage, assets.robot, Layout(key=key, physical=physical, visual=visual))


def _write_block(path: Path) -> None:
    """Write a wedge of 6 by 4 by 5 cm as a mesh to be imported."""
    import trimesh

    corners = [(0, 0, 0), (6, 0, 0), (6, 4, 0), (0, 4, 0), (0, 0, 5), (0, 4, 5)]
    trimesh.Trimesh([[0.01 * value for value in corner] for corner in corners]).convex_hull.export(path)


def _write_booth(path: Path) -> None:
    """Write a booth with a floor, two walls and a box as a scene to be imported."""
    import trimesh

    scene = trimesh.Scene()
    boxes = {
        "floor": ((4.0, 3.0, 0.1), (0.0, 0.0, -0.05)),
        "wall_left": ((4.0, 0.1, 2.5), (0.0, 1.5, 1.25)),
        "wall_back": ((0.1, 3.0, 2.5), (2.0, 0.0, 1.25)),
        "table": ((0.8, 0.6, 0.7), (0.8, 0.4, 0.35)),
    }
    for number, (name, (extents, middle)) in enumerate(boxes.items()):
        box = trimesh.creation.box(extents=extents)
        box.apply_translation(middle)
        box.visual.face_colors = [60 * number + 40, 120, 200 - 40 * number, 255]
        scene.add_geometry(box, geom_name=name, node_name=name)
    scene.apply_transform(trimesh.transformations.rotation_matrix(-1.5707963267948966, (1, 0, 0)))
    scene.export(path)
