"""Import of real meshes by ``nimbus assets import``, and tasks with the imported objects.

    pip download --no-deps pybullet robosuite metaworld mani_skill
    python benchmarks/imported_assets.py import --wheels . --out work
    python benchmarks/imported_assets.py pick place moves masses faulty rests scans --out work

``import`` reads the rigid objects of four wheels; a second call continues. ``pick`` attempts to pick each object of
graspable size in up to ten layouts. ``place`` attempts one layout of ``pick_and_place`` for each. Nothing is rendered;
``--part 0/3`` measures a third of the objects. ``moves`` uses skills to open, close, turn and press parts of
articulated objects. ``masses`` weighs solids with the sizes and names of 15 YCB objects, ``faulty`` imports 42 broken
files. ``rests`` compares the rest poses of 20 objects with the results of 64 drops in random orientations, ``scans``
adds loose faces to the edges of nine surfaces of the library and closes the surfaces again. Each part adds its rows to
``figures.json``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "exts/nimbus.datagen"), str(ROOT)]
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
import trimesh  # noqa: E402
import yaml  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

from benchmarks.broken_meshes import FAULTS  # noqa: E402
from nimbus.datagen.assets.decisions import decide_category, decide_mass  # noqa: E402
from nimbus.datagen.assets.found import FoundAsset  # noqa: E402
from nimbus.datagen.assets.import_library import import_assets  # noqa: E402
from nimbus.datagen.errors import InputError  # noqa: E402
from nimbus.datagen.execute.planner import run_attempt  # noqa: E402
from nimbus.datagen.load.scene_loader import load_assets  # noqa: E402
from nimbus.datagen.objects.imported.mesh_repair import close_mesh  # noqa: E402
from nimbus.datagen.objects.libraries import open_library  # noqa: E402
from nimbus.datagen.objects.model import ObjectModel  # noqa: E402
from nimbus.datagen.objects.prepared.index import AssetEntry, index_text, read_index  # noqa: E402
from nimbus.datagen.objects.shapes.contact import piece_triangles  # noqa: E402
from nimbus.datagen.propose.catalogue import Catalogue  # noqa: E402
from nimbus.datagen.propose.goal_graph import Goal, GoalGraph, Thing  # noqa: E402
from nimbus.datagen.propose.proposals import ProposalRequest, Workshop  # noqa: E402
from nimbus.datagen.propose.traits import TRAITS  # noqa: E402
from nimbus.datagen.random_streams import generator  # noqa: E402
from nimbus.datagen.randomize.tabletop import draw_physical  # noqa: E402
from nimbus.datagen.robots.robot import load_robot  # noqa: E402
from nimbus.datagen.robots.robot_file import read_robot  # noqa: E402
from nimbus.datagen.simulate.newton import NewtonSimulation  # noqa: E402
from nimbus.datagen.tasks.plugins import discover, discover_components  # noqa: E402
from nimbus.datagen.tasks.task import load_task  # noqa: E402
from nimbus.runner.system.threads import prepare_libraries  # noqa: E402

WHEELS = {
    "pybullet": (
        *(
            "*random_urdfs/?[05]0/*.urdf",
            "*random_urdfs/?[27]5/*.urdf",
            "*random_urdfs/?10/*.urdf",
            "*random_urdfs/?35/*.urdf",
            "pybullet_data/[cdjlst][ueoro]*.urdf",
            "*_data/jenga/*.urdf",
        ),
        *("*_data/toys/*.obj", "*_data/torus/*.obj", "*_data/*_data/bunny.obj", "*_data/objects/*.urdf"),
    ),
    "robosuite": ("*assets/objects/*",),
    "metaworld": ("*assets/objects/*",),
    "mani_skill": ("*envs/tasks/[fh]*", "*deformable_manipulation/*", "*trifinger/objects/*", "*scene_builder/*"),
}
"""Rigid objects by wheel; the patterns leave out robots and 940 of pybullet's random objects."""
NO_THING = ("moving part", "robot", "joints; the limit is")
_RESTS, _SCANS = 20, 9
"""Number of objects whose rest poses are compared, and number of surfaces that are closed."""
_DROPS = 64
_TURNED = 10.0
"""Largest rotation after which an object counts as still in its rest pose [deg]."""
_SAME_HEIGHT = 0.002
"""Largest height difference between centers of mass of one rest pose [m]; facets of rolling objects differ by less."""
_MOVES = {"open": "has_handle", "closed": "has_lid", "turned": "turnable", "pressed": "pressable"}
"""Goals for articulated objects, and the traits that they need."""
_LONGEST = 0.3
"""Largest length of picked objects [m]; longer ones do not fit into the region."""
LAYOUTS, WANTED = 10, 6
"""Number of layouts of a pick, and number of those that must succeed."""
_PICK = """robot: panda
scene: table
regions:
  start: {{on: table, center: [0.5, 0.0], size: [0.3, 0.4]}}
objects:
  item: {{library: {library}/, kinds: [{kind}], count: 1, region: start, yaw: any}}
steps: [pick: item]
success: [held: item]
instructions: ["Pick up {{item}}."]
"""
_PLACE = """robot: panda
scene: table
regions:
  start: {{on: table, center: [0.5, 0.1], size: [0.3, 0.3]}}
  goal: {{on: table, center: [0.5, -0.25], size: [0.25, 0.2]}}
objects:
  item: {{library: {library}/, kinds: [{kind}], count: 1, region: start, yaw: any}}
steps: [pick: item, place: {{object: item, on: goal}}]
success: [on: {{object: item, support: goal}}, at_rest: item, gripper_clear]
instructions: ["Move {{item}}."]
"""
YCB = {
    "003_cracker_box": ((0.06, 0.16, 0.21), 411),
    "004_sugar_box": ((0.038, 0.089, 0.175), 514),
    "005_tomato_soup_can": ((0.066, 0.101), 349),
    "006_mustard_bottle": ((0.05, 0.085, 0.175), 603),
    "007_tuna_fish_can": ((0.085, 0.033), 171),
    "008_pudding_box": ((0.035, 0.11, 0.089), 187),
    "009_gelatin_box": ((0.028, 0.085, 0.073), 97),
    "010_potted_meat_can": ((0.05, 0.097, 0.082), 370),
    "011_banana": ((0.036, 0.19), 66),
    "017_orange": ((0.073,), 47),
    "021_bleach_cleanser": ((0.065, 0.098, 0.25), 1131),
    "024_bowl": ((0.159, 0.053), 147),
    "025_mug": ((0.08, 0.082), 118),
    "036_wood_block": ((0.085, 0.085, 0.2), 729),
    "056_tennis_ball": ((0.0647,), 58),
}
"""Published sizes [m] of box, cylinder or ball, and masses [g] (Calli et al. 2015). The fruits are made of plastic."""


def main() -> int:
    """Measure the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=("import", *ATTEMPTS, *PARTS))
    parser.add_argument("--wheels", type=Path, default=Path(), help="folder of the four wheels")
    parser.add_argument("--out", type=Path, required=True, help="folder for the library, tasks and figures")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="part I/N of the objects to attempt")
    args = parser.parse_args()
    prepare_libraries()
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "figures.json"
    figures: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for part in args.parts:
        if part == "import":
            import_wheels(args.wheels, args.out, figures)
        elif part in ATTEMPTS:
            share = tuple(map(int, args.part.split("/")))
            ATTEMPTS[part](part, args.out, figures.setdefault(part, {}), share, file, figures)
        else:
            figures[part] = PARTS[part](args.out)
        file.write_text(json.dumps(figures, indent=1))
        sys.stdout.write(f"{part}: {json.dumps(summary(part, figures, args.out))}\n")
    return 0


def import_wheels(wheels: Path, out: Path, figures: dict[str, Any]) -> None:
    """Import every set, and record the CPU time of each asset."""
    seconds: dict[str, float] = figures.setdefault("seconds", {})

    def report(entry: AssetEntry, took: float, number: int, count: int) -> None:
        seconds[entry.kind] = took
        (out / "figures.json").write_text(json.dumps(figures, indent=1))
        sys.stderr.write(f"{entry.kind}: {entry.refused or 'accepted'} ({took:.1f} s)\n")

    for name, patterns in WHEELS.items():
        for pattern in patterns:
            try:
                import_assets(sorted(wheels.glob(f"{name}-*.whl")), out / "library", only=[pattern], report=report)
            except InputError as error:
                sys.stderr.write(f"{name} {pattern}: {error}\n")


def rigid(out: Path) -> list[AssetEntry]:
    """Return the entries of the library without moving parts, except robots."""
    kinds = read_index(out / "library")[0].kinds
    return [entry for entry in kinds if not entry.joints and not any(word in entry.refused for word in NO_THING)]


def graspable(out: Path) -> list[str]:
    """List kinds of graspable size: the narrowest side fits between the fingers, or the import found a grasp."""
    most = read_robot("panda").gripper.shape.max_width
    kinds = (entry for entry in rigid(out) if not entry.refused and max(entry.size) <= _LONGEST)
    return [entry.kind for entry in kinds if entry.grasps or min(entry.size) <= most]


def attempt_things(
    part: str, out: Path, rows: dict[str, Any], share: tuple[int, ...], file: Path, figures: dict[str, Any]
) -> None:
    """Attempt to pick each object until the result is clear; place each object once."""
    text, most, wanted = (_PICK, LAYOUTS, WANTED) if part == "pick" else (_PLACE, 1, 1)
    for kind in graspable(out)[share[0] :: share[1]]:
        if kind in rows:
            continue
        path, begin = out / f"{part}_{kind}.yaml", time.process_time()
        path.write_text(text.format(library=(out / "library").resolve(), kind=kind))
        good, lines = 0, []
        try:
            task = load_task(path)
            assets = load_assets(task)
            simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
            for index in range(most):
                layout = draw_physical(task, assets, seed=0, index=index)
                streams = partial(generator, 0, index, "attempt", 0)
                outcome = run_attempt(task, simulation, layout, streams=streams, planner="ompl").outcome
                good += outcome.success
                lines += [] if outcome.success else [f"{outcome.phase} {outcome.reason}: {outcome.detail}"]
                if good >= wanted or len(lines) > most - wanted:
                    break
        except InputError as error:
            lines.append(str(error))
        path.unlink()
        rows[kind] = {"good": good, "bad": lines, "is_enough": good >= wanted, "seconds": time.process_time() - begin}
        file.write_text(json.dumps(figures, indent=1))
        sys.stderr.write(f"{part} {kind}: {good} good, {lines[:2]}\n")


def move_parts(
    part: str, out: Path, rows: dict[str, Any], share: tuple[int, ...], file: Path, figures: dict[str, Any]
) -> None:
    """Open, close, turn and press articulated objects, each in one layout of a proposed task with one goal."""
    index, folder = read_index(out / "library")[0], out / "articulated"
    kinds = tuple(entry for entry in index.kinds if entry.joints and not entry.refused)[share[0] :: share[1]]
    for entry in kinds:
        shutil.copytree(out / "library" / entry.kind, folder / entry.kind, dirs_exist_ok=True)
    (folder / "index.json").write_text(index_text(replace(index, kinds=kinds)))
    discover_components()
    discover()
    catalogue = Catalogue(load_robot("panda"), [f"{folder}/"])
    workshop = Workshop.open(ProposalRequest(count=1, seed=0, layouts=1, folder=out), catalogue, lambda graph: ())
    for name, (relation, trait) in itertools.product(catalogue, _MOVES.items()):
        if TRAITS[trait](catalogue[name]) or f"{name} {relation}" in rows:
            continue
        thing = Thing("item", name, state="open" if relation == "closed" else "")
        graph = GoalGraph("panda", "table", (thing,), (Goal(relation, "item"),))
        trial = workshop.try_graph(graph, index=0, attempt=0)
        good, seconds = trial.stage == "accepted", trial.seconds
        rows[f"{name} {relation}"] = {"is_enough": good, "bad": trial.messages(), "seconds": seconds}
        file.write_text(json.dumps(figures, indent=1))
        sys.stderr.write(f"{part} {name} {relation}: {trial.stage} {trial.messages()[:1]}\n")


def measure_masses(_: Path) -> dict[str, Any]:
    """Determine masses of solids with the sizes and names of YCB objects, and compare them with the published ones."""
    rows: dict[str, Any] = {}
    for name, (size, grams) in YCB.items():
        shape = len(size)
        volume = (
            np.prod(size)
            if shape == 3
            else np.pi * size[0] ** 2 / 4 * size[1]
            if shape == 2
            else np.pi * size[0] ** 3 / 6
        )
        asset = FoundAsset(name=name, path=f"{name}/google_16k/textured.obj", layout="ycb", words=(name[4:],))
        category = decide_category(asset, {})[1]
        mass = float(decide_mass(asset, category, volume=float(volume), longest=max(size), given={}).value)
        rows[name] = {"decided": 1000 * mass, "published": grams, "factor": 1000 * mass / grams}
    return rows


def import_faulty(out: Path) -> dict[str, Any]:
    """Import broken files one by one: each must be refused in one line or repaired; none may end the process."""
    folder = out / "faulty"
    things = folder / "things"
    things.mkdir(parents=True, exist_ok=True)
    for name, make in FAULTS.items():
        stem, suffix = name.split(".")
        make(things / f"{stem}_{suffix}.{suffix}")  # files with equal stems would be one asset
    lines: dict[str, Any] = {}
    import_assets(
        [things], folder / "library", report=lambda entry, took, *_: lines.update({entry.path: (entry.refused, took)})
    )
    return lines


def compare_rests(out: Path) -> dict[str, Any]:
    """Drop objects: the most frequent resulting pose must be a known rest pose, and each known rest pose must be
    stable.
    """
    library, rows = open_library(f"{out / 'library'}/"), dict[str, Any]()
    kinds = [entry.kind for entry in rigid(out) if not entry.refused]
    for kind in kinds[:: max(1, len(kinds) // _RESTS)][:_RESTS]:
        model = library.model(kind, 0)
        physics, center = _on_a_plane(model), model.center_of_mass
        downs = [_lies(physics, model, turn) for turn in Rotation.random(_DROPS, rng=generator(1, "drops"))]
        corners = piece_triangles(model.convex_pieces)[0] - center
        heights = np.array([(corners @ down).max() for down in downs])
        counts = [int((np.abs(heights - height) < _SAME_HEIGHT).sum()) for height in heights]
        usual, share = float(heights[int(np.argmax(counts))]), max(counts) / _DROPS
        known, moved = [], []
        for pose in model.rest_poses:
            x, y, z, w = (pose.wxyz[place] for place in (1, 2, 3, 0))
            turn = Rotation.from_quat((x, y, z, w))
            down = turn.inv().apply((0.0, 0.0, -1.0))
            known.append(float((corners @ down).max()))
            moved.append(float(np.degrees(np.arccos(np.clip(down @ _lies(physics, model, turn, drop=1e-4), -1, 1)))))
        rows[kind] = {
            "usual": usual,
            "share": share,
            "known": known,
            "moved": moved,
            "is_equal": bool(np.abs(np.array(known) - usual).min() < _SAME_HEIGHT and max(moved) < _TURNED),
        }
        sys.stderr.write(f"rests {kind}: {rows[kind]}\n")
    return rows


def _on_a_plane(model: ObjectModel) -> mujoco.MjModel:
    """Build an object with all its pieces above a plane, with its center of mass at the origin."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.integrator = 0.002, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], condim=6, friction=[1, 0.005, 1e-3])
    body = spec.worldbody.add_body()
    body.add_freejoint()
    for number, (points, _) in enumerate(model.convex_pieces):
        spec.add_mesh(name=f"piece_{number}", uservert=(points - model.center_of_mass).ravel().tolist())
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=f"piece_{number}", condim=6, friction=[1, 0.005, 1e-4])
    body.explicitinertial, body.mass, body.ipos = True, model.mass, [0, 0, 0]
    inertia = model.inertia
    body.fullinertia = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    spec.compiler.balanceinertia = True
    return spec.compile()


def _lies(physics: mujoco.MjModel, model: ObjectModel, turn: Rotation, *, drop: float = 0.02) -> np.ndarray:
    """Return the direction (3,) in an object's frame that points down, 4 s after the object was released."""
    data = mujoco.MjData(physics)
    corners = piece_triangles(model.convex_pieces)[0] - model.center_of_mass
    x, y, z, w = turn.as_quat()
    data.qpos[:] = (0, 0, drop - float(turn.apply(corners)[:, 2].min()), w, x, y, z)
    mujoco.mj_step(physics, data, nstep=2000)
    return -data.xmat[1].reshape(3, 3)[2]


def close_scans(out: Path) -> dict[str, Any]:
    """Add loose faces at the edges of closed surfaces, as in scans, and close the surfaces again."""
    library, rows = open_library(f"{out / 'library'}/"), dict[str, Any]()
    for entry in rigid(out):
        if entry.refused or len(rows) == _SCANS:
            continue
        model = library.model(entry.kind, 0)
        mesh = trimesh.Trimesh(model.vertices, model.faces, process=False)
        mesh.merge_vertices(merge_tex=True, merge_norm=True)
        if not mesh.is_watertight or len(mesh.faces) < 500:
            continue
        rng, faces = generator(0, entry.kind), [np.asarray(mesh.faces)]
        for face in rng.integers(len(mesh.faces), size=4):
            one, two = mesh.faces[face][:2]
            near = mesh.faces[(mesh.faces == two).any(axis=1)]
            third = next(int(point) for point in near.ravel() if point not in mesh.faces[face])
            faces.append(np.array([[one, two, third]]))
        try:
            closed = trimesh.Trimesh(*close_mesh(mesh.vertices, np.vstack(faces).astype(np.int32), out), process=False)
            change = closed.volume / mesh.volume - 1
            rows[entry.kind] = {"is_closed": bool(closed.is_watertight), "volume": float(change)}
        except InputError as error:
            rows[entry.kind] = {"is_closed": False, "line": str(error)}
    return rows


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "masses": measure_masses,
    "faulty": import_faulty,
    "rests": compare_rests,
    "scans": close_scans,
}
"""Parts of the benchmark that ``--part`` cannot divide, by name."""
ATTEMPTS = {"pick": attempt_things, "place": attempt_things, "moves": move_parts}
"""Parts of the benchmark that ``--part`` can divide: attempts in physics."""


def summary(part: str, figures: dict[str, Any], out: Path) -> dict[str, Any]:
    """Return the figures of a part in a few words."""
    rows = figures.get(part, {})
    if part == "import":
        entries = rigid(out)
        good = [entry for entry in entries if not entry.refused]
        cards = [yaml.safe_load((out / "library" / entry.kind / "asset.yaml").read_text()) for entry in good]
        errors = [float(card["found"]["looks"].split("off by ")[1].split()[0]) for card in cards]
        return {
            "read": f"{len(good)} of {len(entries)}",
            "refused": {entry.kind: entry.refused for entry in entries if entry.refused},
            "CPU [s], median": statistics.median(figures["seconds"][entry.kind] for entry in good),
            "image error [levels], median": statistics.median(errors),
            "not graspable": {entry.kind: entry.not_graspable for entry in good if entry.not_graspable},
        }
    if part == "masses":
        return {"within twice": sum(0.5 <= row["factor"] <= 2 for row in rows.values()), "of": len(rows)}
    if part == "faulty":
        crashed = [name for name, (line, _) in rows.items() if "process" in line or "signal" in line]
        taken = [name for name, (line, _) in rows.items() if not line]
        return {
            "files": len(FAULTS),
            "refused": len(rows) - len(taken),
            "accepted": taken,
            "ended": crashed,
            "slowest [s]": max(took for _, took in rows.values()),
        }
    if part == "rests":
        return {"equal": f"{sum(row['is_equal'] for row in rows.values())} of {len(rows)}"}
    if part == "scans":
        return {"closed": f"{sum(row['is_closed'] for row in rows.values())} of {len(rows)}"}
    enough = [kind for kind, row in rows.items() if row["is_enough"]]
    return {
        "things": len(rows),
        "enough": len(enough),
        "not": {kind: row["bad"][:1] for kind, row in rows.items() if kind not in enough},
    }


if __name__ == "__main__":
    sys.exit(main())
