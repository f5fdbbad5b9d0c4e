"""Golden values of navigation: homes, goals, drives and views."""

from __future__ import annotations

from functools import cache

import numpy as np

from nimbus.datagen.execute.path_planner import plan_drive
from nimbus.datagen.load.navigation_loader import NavigationLoader, open_navigation
from nimbus.datagen.navigate.homes import home_scene
from nimbus.datagen.pipeline import RunContext
from nimbus.datagen.randomize.goals import GoalRandomizer, sampler_of
from nimbus.datagen.render.scene_views import SceneViewRenderer
from nimbus.datagen.rooms.home import HOME_VERSION
from nimbus.datagen.stages import Planned, Randomized, Request
from nimbus.datagen.tasks.navigation_assets import NavigationAssets
from nimbus.datagen.tasks.task import NavigationTask, parse_any_task
from tests.golden.values import GoldenFile, digest, sketch
from tests.golden.versions import version_of

TEXT = """
scene: {homes: 2, rooms: [4, 4]}
navigate: {to: object}
cameras: {front: {size: [64, 48]}}
"""
HOMES = {"HOME_VERSION": HOME_VERSION}
SCENES = version_of("load", "scenes") | HOMES
GOALS = version_of("randomize", "goals") | SCENES
PATH = version_of("plan", "path") | GOALS
VIEWS = version_of("render", "views") | PATH


@cache
def task() -> NavigationTask:
    """Parse the small task."""
    found = parse_any_task(TEXT, name="golden")
    assert isinstance(found, NavigationTask)
    return found


@cache
def planned() -> tuple[Randomized[NavigationAssets], Planned[NavigationAssets]]:
    """Draw and plan the first episode."""
    context = RunContext(seed=3, task=task())
    scene = next(NavigationLoader.create(context, None).process(Request(index=0)))  # pyright: ignore[reportArgumentType]
    drawn = next(GoalRandomizer(task(), 3).process(scene))
    trajectory = plan_drive(task(), scene.assets, drawn.layouts[0].physical)
    return drawn, Planned(scene=scene, layouts=drawn.layouts, trajectory=trajectory)


def test_homes_come_out_as_their_version_says(golden: GoldenFile) -> None:
    scene = home_scene(7, (4, 6))
    names = [thing.name for thing in scene.things]
    golden.check("home 7", [digest(names), *sketch(scene.corners)], HOMES, tolerance=1e-3)


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
