"""Load stage: opens a task's assets, checks their compatibility, and computes the reach map."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Self

import numpy as np

from nimbus.datagen.episode.layout import PhysicalLayout
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.execute.planning_scenes import planning_scene
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.objects.model import FLEXIBLE_NOUNS
from nimbus.datagen.pipeline import NoSettings, RunContext, register_component
from nimbus.datagen.plan.ik import solve_ik
from nimbus.datagen.random_streams import generator
from nimbus.datagen.robots.robot import Robot, load_robot
from nimbus.datagen.simulate.flexible import FLEXIBLE_STEP_RATE
from nimbus.datagen.simulate.newton import STEP_RATE, NewtonSimulation
from nimbus.datagen.stages import Request, Scene, SceneLoader
from nimbus.datagen.tasks.checks.names import check_task
from nimbus.datagen.tasks.own_tasks import record_run
from nimbus.datagen.tasks.scene_assets import REACH_CELL, ReachMap, SceneAssets
from nimbus.datagen.tasks.stored_files import asset_fingerprints
from nimbus.datagen.tasks.stored_pictures import hash_pictures
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.tasks.task_file import Region
from nimbus.datagen.usd.stage import StageInfo, read_stage

_HEIGHT = 0.04
"""Height of the tool above the surface at which reach is checked [m]."""
_YAWS = np.radians([0, 90, 45, -45])
_DOWN = make_transform((0, 0, 0), (0.0, 1.0, 0.0, 0.0))


class UsdSceneLoader(SceneLoader[SceneAssets]):
    """Loader that opens the task's scene once; all requests share it.

    Args:
        task: Task to load.
        assets: Result of an earlier call of :func:`load_assets` for the task.
        run_settings: Choices of the command line, for the provenance.
        ancestors: Ancestors of the episodes, for the provenance.
    """

    @classmethod
    def create(cls, context: RunContext, settings: NoSettings) -> Self:
        """Create the loader of a run."""
        return cls(context.need_task(), assets_of(context), context.choices, context.ancestors)

    @classmethod
    def open_shared(cls, task: object) -> SceneAssets | None:
        """Open all assets of a task with steps; return None for other tasks."""
        return load_assets(task) if isinstance(task, Task) else None

    @classmethod
    def hashes_of(cls, task: object, assets: object | None) -> dict[str, str]:
        """Return the content hashes of stage, robot and libraries."""
        if not isinstance(assets, SceneAssets):
            return {}
        return asset_fingerprints(assets.stage, assets.robot, assets.libraries.values())

    def __init__(
        self,
        task: Task,
        assets: SceneAssets | None = None,
        run_settings: Mapping[str, str] | None = None,
        ancestors: Mapping[str, str] | None = None,
    ) -> None:
        self._task, self._given, self._run_settings = task, assets, dict(run_settings or {})
        self._ancestors = dict(ancestors or {})

    def process(self, item: Request) -> Iterator[Scene[SceneAssets]]:
        """Yield the scene of a request."""
        task = self._task
        provenance = Provenance(
            task_text=task.text,
            task_hash=task.content_hash,
            assets=self._hashes,
            settings=self._run_settings,
            ancestors=self._ancestors,
        )
        yield Scene(request=item, assets=self._assets, provenance=provenance)

    @cached_property
    def _assets(self) -> SceneAssets:
        return load_assets(self._task) if self._given is None else self._given

    @cached_property
    def _hashes(self) -> dict[str, str]:
        """Content hashes of all files, for the provenance; a user's robot may have large meshes."""
        hashes = self.hashes_of(self._task, self._assets) | hash_pictures(self._task)
        record_run(self._task, hashes)
        return hashes


register_component("load", "usd", UsdSceneLoader, NoSettings)


def assets_of(context: RunContext) -> SceneAssets | None:
    """Return the assets that a run has already loaded with :func:`load_assets`, or None."""
    return context.assets if isinstance(context.assets, SceneAssets) else None


def load_assets(task: Task) -> SceneAssets:
    """Open all assets that a task names.

    Raises:
        InputError: An asset is missing, assets do not fit together, or a region is out of reach.
    """
    stage = read_stage(task.scene, where=task.where("scene"))
    robot = load_robot(task.robot, where=task.where("robot"))
    libraries = _open_libraries(task)
    check_task(task, stage, robot.camera_links, libraries, arms=robot.arm_names, has_base=robot.has_base)
    if STEP_RATE % task.rate:
        near = min((rate for rate in range(1, 121) if STEP_RATE % rate == 0), key=lambda rate: abs(rate - task.rate))
        what = f"{task.rate:g} Hz does not divide the {STEP_RATE:g} Hz of physics"
        raise task.error(("rate",), what, instead=f"write {near}")
    _check_flexible(task, libraries)
    return SceneAssets(task=task, stage=stage, robot=robot, libraries=libraries, reach=_reach_maps(task, stage, robot))


def _check_flexible(task: Task, libraries: Mapping[str, ObjectLibrary]) -> None:
    """Refuse what a task with flexible objects cannot have: rates that do not divide its physics, rigid labels."""
    found = {name: _find_flexible(libraries[group.library], group.kinds) for name, group in task.objects.items()}
    name, noun = next(((name, FLEXIBLE_NOUNS[bends]) for name, bends in found.items() if bends), ("", ""))
    if not name:
        return
    if FLEXIBLE_STEP_RATE % task.rate:
        what = f"{task.rate:g} Hz does not divide the {FLEXIBLE_STEP_RATE:g} Hz of physics with {noun}"
        raise task.error(("rate",), what, instead="write 15")
    for camera, settings in task.cameras.items():
        if rigid := {"flow", "keypoints"} & {*(settings.modalities or ())}:
            what = f"camera '{camera}' stores {min(rigid)}, which is computed for rigid bodies, and '{name}' is {noun}"
            raise task.error(("objects", name), what, instead=f"leave out {min(rigid)}")


def _find_flexible(library: ObjectLibrary, kinds: Collection[str] | str) -> str:
    """Return what the first flexible kind bends as, such as ``cloth``; empty if all are rigid."""
    names = library.kinds if isinstance(kinds, str) else kinds
    return next((bends for name in names if (bends := library.kind(name).bends_as)), "")


def _open_libraries(task: Task) -> dict[str, ObjectLibrary]:
    libraries: dict[str, ObjectLibrary] = {}
    named = [(("objects", name, "library"), group.library) for name, group in task.objects.items()]
    for name, settings in task.randomize.items():
        named += [(("randomize", name, "library"), library) for library in getattr(settings, "libraries", ())]
    for keys, name in named:
        library = libraries[name] = open_library(name, where=task.where(*keys))
        if any(other.name == library.name and other is not library for other in libraries.values()):
            what = f"two object libraries have the name '{library.name}'"
            raise task.error(keys, what, instead="rename one of the files")
    return libraries


def _reach_maps(task: Task, stage: StageInfo, robot: Robot) -> dict[str, ReachMap]:
    maps = find_reach(stage, robot, task.regions, rate=task.rate)
    for name, found in maps.items():
        if not found.cells.any():
            raise task.error(
                ("regions", name),
                f"robot '{robot.name}' cannot reach the region",
                instead="move its center closer to the robot at x, y = {:g}, {:g}".format(*stage.robot_position),
            )
    return maps


def find_reach(stage: StageInfo, robot: Robot, regions: Mapping[str, Region], *, rate: float) -> dict[str, ReachMap]:
    """Find the cells of regions above which the robot can point its tool down.

    Args:
        stage: Scene with the regions.
        robot: Robot of the scene.
        regions: Regions by name; the name is also part of the address of the solver's random stream.
        rate: Rate of recording [Hz].
    """
    simulation = NewtonSimulation(stage, robot, rate=rate)
    simulation.load(PhysicalLayout(objects=()))
    arms = [(planning_scene(simulation, one.name), np.array(one.arm.home)) for one in robot.arms]
    for scene, _ in arms:
        scene.set_world(simulation.data.qpos)

    def reaches(x: float, y: float, z: float, rng: np.random.Generator) -> bool:
        goals = [make_transform((x, y, z), quat_from_axis_angle((0, 0, 1), float(yaw))) @ _DOWN for yaw in _YAWS]
        return any(solve_ik(scene, goal, seed_q=home, rng=rng, solutions=1) for scene, home in arms for goal in goals)

    maps: dict[str, ReachMap] = {}
    for name, region in regions.items():
        height = stage.surfaces[region.on].upper[2] + _HEIGHT
        low = np.subtract(region.center, np.divide(region.size, 2))
        shape = np.maximum(1, np.ceil(np.divide(region.size, REACH_CELL) - 1e-9).astype(int))
        cells = np.zeros(shape, dtype=bool)
        for i, j in np.ndindex(*shape):
            x, y = low + (np.array([i, j]) + 0.5) * REACH_CELL
            cells[i, j] = reaches(float(x), float(y), height, generator(0, "reach", name, int(i), int(j)))
        maps[name] = ReachMap((float(low[0]), float(low[1])), cells)
    return maps
