"""Golden values of navigation: homes, goals, drives and views."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from nimbus.datagen.execute.path_planner import plan_drive
from nimbus.datagen.execute.splat_path import SplatPathPlanner
from nimbus.datagen.load.navigation_loader import NavigationLoader, open_navigation
from nimbus.datagen.navigate.homes import home_scene
from nimbus.datagen.navigate.sources.splats import PROXY_VERSION
from nimbus.datagen.pipeline import RunContext
from nimbus.datagen.randomize.goals import GoalRandomizer, sampler_of
from nimbus.datagen.render.scene_views import SceneViewRenderer
from nimbus.datagen.render.splat_views import SplatViewRenderer
from nimbus.datagen.rooms.home import HOME_VERSION
from nimbus.datagen.splats.sample import VERSION
from nimbus.datagen.splats.training_ply import write_training_ply
from nimbus.datagen.stages import Planned, Randomized, Request
from nimbus.datagen.tasks.navigation_assets import NavigationAssets
from nimbus.datagen.tasks.task import NavigationTask, parse_any_task
from tests.golden.values import GoldenFile, digest, sketch
from tests.golden.versions import version_of
from tests.support.splat_room import room_cloud

TEXT = """
scene: {homes: 2, rooms: [4, 4]}
navigate: {to: object}
cameras: {front: {size: [64, 48]}}
"""
SPLAT_TEXT = """
scene: {splats: [{splat: room.ply, up: z}]}
navigate: {to: point, length: [1 m, 6 m]}
cameras: {front: {position: [0, 0, 1.2], size: [64, 48]}}
pipeline: nav_splat
"""
HOMES = {"HOME_VERSION": HOME_VERSION}
SCENES = version_of("load", "scenes") | HOMES
GOALS = version_of("randomize", "goals") | SCENES
PATH = version_of("plan", "path") | GOALS
VIEWS = version_of("render", "views") | PATH
CAPTURE = {"PROXY_VERSION": PROXY_VERSION, "VERSION of splat samples": VERSION}
SPLAT_PATH = version_of("plan", "splat_path") | version_of("plan", "path") | version_of("randomize", "goals") | CAPTURE
SPLATS = version_of("render", "splats") | version_of("render", "views") | SPLAT_PATH
Drawn: TypeAlias = tuple[Randomized[NavigationAssets], Planned[NavigationAssets]]


def parsed(text: str, folder: Path = Path()) -> NavigationTask:
    """Parse a small task."""
    found = parse_any_task(text, name="golden", folder=folder)
    assert isinstance(found, NavigationTask)
    return found


@cache
def task() -> NavigationTask:
    """Parse the task of homes."""
    return parsed(TEXT)


def planned_first(task: NavigationTask) -> Drawn:
    """Draw and plan the first episode of a task."""
    context = RunContext(seed=3, task=task)
    scene = next(NavigationLoader.create(context, None).process(Request(index=0)))  # pyright: ignore[reportArgumentType]
    drawn = next(GoalRandomizer(task, 3).process(scene))
    trajectory = plan_drive(task, scene.assets, drawn.layouts[0].physical)
    return drawn, Planned(scene=scene, layouts=drawn.layouts, trajectory=trajectory)


@cache
def planned() -> Drawn:
    """Draw and plan the first episode in homes."""
    return planned_first(task())


@pytest.fixture(scope="module")
def through_splats(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Draw and plan the first episode in a captured room."""
    folder = tmp_path_factory.mktemp("captured")
    write_training_ply(room_cloud(20_000), folder / "room.ply")
    return planned_first(parsed(SPLAT_TEXT, folder))


def test_homes_come_out_as_their_version_says(golden: GoldenFile) -> None:
    scene = home_scene(7, (4, 6))
    names = [thing.name for thing in scene.things]
    golden.check("home 7", [digest(names), *sketch(scene.corners)], HOMES, tolerance=1e-3)


def test_pictures_on_homes_look_as_their_version_says(golden: GoldenFile) -> None:
    means = [float(part.image.mean()) for part in home_scene(7, (4, 6)).parts if part.image is not None]
    golden.check("home 7 pictures", sketch(means), HOMES, tolerance=0.1)


def test_scenes_are_mapped_as_their_version_says(golden: GoldenFile) -> None:
    space = open_navigation(task(), 1).place.space
    golden.check("load scenes", [len(space.nodes), *sketch(space.node_clearance)], SCENES, tolerance=0.01)


def test_goals_are_drawn_as_their_version_says(golden: GoldenFile) -> None:
    goal = sampler_of(task(), open_navigation(task(), 0), seed=3).goal(2)
    golden.check("randomize goals", [goal.name, *sketch(np.array([*goal.start, *goal.goal]))], GOALS, tolerance=0.01)


def test_drives_come_out_as_their_version_says(golden: GoldenFile) -> None:
    _, item = planned()
    golden.check("plan path", sketch(item.trajectory.joint_positions), PATH, tolerance=0.01)


def test_views_look_as_their_version_says(golden: GoldenFile) -> None:
    _, item = planned()
    renderer = SceneViewRenderer(baked=False)
    shown = next(next(renderer.process(item)).observations).cameras["front"]
    assert np.unique(shown.rgb.reshape(-1, 3), axis=0).shape[0] > 100
    assert set(np.unique(shown.instance)) > {1}
    golden.check("render views", [*sketch(shown.rgb.astype(float)), *sketch(shown.depth)], VIEWS, tolerance=0.5)


def test_drives_through_splats_come_out_as_their_version_says(golden: GoldenFile, through_splats: Drawn) -> None:
    drawn, item = through_splats
    seen = next(SplatPathPlanner(item.scene.assets.task).process(drawn)).trajectory
    path = sketch(seen.joint_positions)
    golden.check("plan splat_path", [seen.outcome.success, *path], SPLAT_PATH, tolerance=0.01)


def test_views_of_splats_look_as_their_version_says(golden: GoldenFile, through_splats: Drawn) -> None:
    _, item = through_splats
    shown = next(next(SplatViewRenderer(baked=False).process(item)).observations).cameras["front"]
    assert np.unique(shown.rgb.reshape(-1, 3), axis=0).shape[0] > 100
    golden.check("render splats", [*sketch(shown.rgb.astype(float)), *sketch(shown.depth)], SPLATS, tolerance=0.5)
