"""A synthetic navigation dataset: paths of a base around a corner, with a camera that sees a wall ahead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, EpisodeKey, Layout, Light, PhysicalLayout, VisualLayout
from nimbus.datagen.episode.observation import CameraFrames, Labels, Observation
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Outcome, SkillSegment, StartState, Trajectory
from nimbus.datagen.geometry import cameras, transforms
from nimbus.datagen.stages import Rendered, Request, Scene
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.writer import Hdf5Writer

TASK, TASK_HASH, RATE = "navigate_homes", "0f0f0f0f", 10.0
WIDTH, HEIGHT, RISE = 48, 32, 1.2
WALL = 9.0
"""x coordinate of the visible wall [m]."""


def driven_rows(index: int) -> tuple[FloatArray, FloatArray]:
    """Return positions (T, 3) and headings (T,): 3 m along x, then 2 m to the left or right."""
    side = 1 if index % 2 == 0 else -1
    straight = np.column_stack([np.arange(0, 3, 0.06), np.zeros(50)])
    bend = np.linspace(0, 0.5 * np.pi, 12)
    corner = np.column_stack([3 + 0.4 * np.sin(bend), side * 0.4 * (1 - np.cos(bend))])
    across = np.column_stack([np.full(27, 3.4), side * (0.4 + 0.06 * np.arange(1, 28))])
    yaws = np.concatenate([np.zeros(50), side * bend, np.full(27, side * 0.5 * np.pi)])
    path = np.concatenate([straight, corner, across]) + (1.0 + index, 2.0)
    return np.column_stack([path, np.full(len(path), 0.1)]), yaws


def driven_episode(index: int, *, scene: str = "home_000") -> Rendered:
    positions, yaws = driven_rows(index)
    count = len(positions)
    camera = Camera(
        name="front",
        mount="base",
        position=(0.1, 0.0, RISE),
        wxyz=transforms.look_at((0, 0, 0), (1.0, 0, -0.2)),
        vertical_fov=0.9,
        width=WIDTH,
        height=HEIGHT,
    )
    goal: dict[str, Any] = {
        "scene": scene,
        "start": [*positions[0].tolist(), float(yaws[0])],
        "goal": (positions[-1] + (0.3, 0.3, 0.0)).tolist(),
        "facing": (positions[-1] + (0.4, 0.4, 0.3)).tolist(),
        "kind": "object",
        "name": f"chair_{index % 2}",
        "object_class": "chair",
        "geodesic": 4.8,
        "index": index,
    }
    if index == 2:
        goal |= {"facing": None, "kind": "room", "name": "hall_0", "object_class": "hall"}
    light = Light(direction=(0, 0, -1), color=(1, 1, 1), sky=(0.2, 0.2, 0.2), ground=(0.1, 0.1, 0.1))
    layout = Layout(
        key=EpisodeKey(task=TASK, task_hash=TASK_HASH, seed=0, index=index),
        physical=PhysicalLayout(objects=(), drawn={"goal": goal}),
        visual=VisualLayout(light=light, cameras=(camera,), instruction=f"Go to the chair, room {index}."),
    )
    half = 0.5 * yaws
    wxyz = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=1)
    joints = np.column_stack([positions[:, :2], yaws])
    trajectory = Trajectory(
        rate=RATE,
        time=np.arange(count) / RATE,
        joint_names=("x", "y", "yaw"),
        joint_positions=joints,
        joint_velocities=np.gradient(joints, 1 / RATE, axis=0),
        action_names=("forward", "turn"),
        actions=np.column_stack([np.full(count, 0.6), np.gradient(yaws, 1 / RATE)]),
        body_names=("base",),
        body_positions=positions[:, None],
        body_wxyz=wxyz[:, None],
        segments=(SkillSegment(start=0, stop=count, skill="go", target="hall", phase="start"),),
        outcome=Outcome(success=True),
        start=StartState(joint_positions=joints[0], joint_velocities=np.zeros(3)),
    )
    labels = Labels(
        instance_names=("background",),
        instance_bodies=("",),
        instance_semantics=np.zeros(1, np.uint8),
        semantic_names=("background",),
        boxes_3d=np.full((1, 2, 3), np.nan),
    )
    provenance = Provenance(task_text="name: navigate_homes\n", task_hash=TASK_HASH, settings={})
    return Rendered(
        scene=Scene(request=Request(index=index), assets=None, provenance=provenance),
        layout=layout,
        trajectory=trajectory,
        labels=labels,
        observations=_observations(camera, positions, wxyz),
        times={},
    )


def _observations(camera: Camera, positions: FloatArray, wxyz: FloatArray) -> Iterator[Observation]:
    for start in range(0, len(positions), 16):
        rows = slice(start, min(start + 16, len(positions)))
        places, turns = cameras.camera_poses(camera, {"base": 0}, positions[rows, None], wxyz[rows, None])
        yield Observation(start=start, cameras={"front": _frames(camera, cameras.world_T_camera(places, turns))})


def _frames(camera: Camera, poses: FloatArray) -> CameraFrames:
    """Return the distance along the viewing axis to a wall across x; 20 m if it is not ahead."""
    count, shape = len(poses), (len(poses), HEIGHT, WIDTH)
    matrix = cameras.intrinsics(camera)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    rays = np.stack([(x - matrix[0, 2]) / matrix[0, 0], (y - matrix[1, 2]) / matrix[1, 1], np.ones_like(x)], -1)
    towards = np.einsum("hwc,kc->khw", rays, poses[:, 0, :3])
    depth = (WALL - poses[:, 0, 3])[:, None, None] / np.maximum(towards, 1e-6)
    depth = np.where((towards > 0.05) & (depth < 20), depth, 20.0)
    return CameraFrames(
        rgb=np.repeat((depth[..., None] * 12).clip(0, 255).astype(np.uint8), 3, axis=-1),
        depth=depth.astype(np.float32),
        instance=np.zeros(shape, np.uint8),
        semantic=np.zeros(shape, np.uint8),
        normals=np.zeros((*shape, 3), np.int8),
        boxes_2d=np.full((count, 1, 4), np.nan, np.float32),
        visibility=np.zeros((count, 1), np.float32),
        intrinsics=matrix,
        world_T_camera=poses,
    )


def write_driven(folder: Path, scenes: tuple[str, ...] = ("home_000", "home_000", "home_001")) -> Path:
    """Write an episode for each named scene."""
    with Dataset.create_or_open(folder, task=TASK, task_hash=TASK_HASH, seed=0, robot="base") as dataset:
        writer = Hdf5Writer(dataset)
        try:
            list(writer(driven_episode(index, scene=scene) for index, scene in enumerate(scenes)))
        finally:
            writer.close()
    return folder
