"""Small synthetic episodes with values of every type that stages pass on, for tests of storing and showing them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.episode.layout import (
    Camera,
    EpisodeKey,
    Layout,
    Light,
    PhysicalLayout,
    PlacedObject,
    SurfaceLook,
    VisualLayout,
)
from nimbus.datagen.episode.observation import CameraFrames, Labels, Observation
from nimbus.datagen.episode.provenance import Provenance
from nimbus.datagen.episode.trajectory import Outcome, Reason, RelationSpan, SkillSegment, StartState, Trajectory
from nimbus.datagen.random_streams import generator
from nimbus.datagen.stages import Rendered, Request, Scene, Stored
from nimbus.datagen.store.dataset import Dataset
from nimbus.datagen.store.ledger.attempt import Attempt, attempt_of
from nimbus.datagen.store.writer import Hdf5Writer

TASK, TASK_HASH = "sort_trash", "0123abcd"
KINDS = (("bottle", "plastic"), ("can", "metal"), ("carton", "paper"))


def make_layout(index: int = 0, *, variant: int = 0, seed: int = 0, width: int = 64, height: int = 48) -> Layout:
    """Make a layout of two objects, a front and a wrist camera."""
    random = generator(seed, index, "layout")
    objects = tuple(
        PlacedObject(
            name=f"items_{row}",
            group="items",
            library="trash",
            kind=kind,
            variant=int(random.integers(4)),
            object_class=object_class,
            position=(float(random.uniform(0.3, 0.6)), float(random.uniform(-0.2, 0.2)), 0.03),
            wxyz=(1.0, 0.0, 0.0, 0.0),
            rest_pose=("upright", "lying")[int(random.integers(2))],
            mass=float(random.uniform(0.01, 0.2)),
            friction=0.7,
        )
        for row, (kind, object_class) in enumerate(KINDS[i % 3] for i in (index, index + 1))
    )
    cameras = tuple(
        Camera(
            name=name,
            mount=mount,
            position=(1.2, 0.0, 0.8),
            wxyz=(1.0, 0.0, 0.0, 0.0),
            vertical_fov=0.9,
            width=width,
            height=height,
        )
        for name, mount in (("front", ""), ("wrist", "panda_hand"))
    )
    light = Light(direction=(0.0, 0.0, -1.0), color=(1.0, 0.9, 0.8), sky=(0.2, 0.2, 0.3), ground=(0.1, 0.1, 0.1))
    return Layout(
        key=EpisodeKey(task=TASK, task_hash=TASK_HASH, seed=seed, index=index, variant=variant),
        physical=PhysicalLayout(objects=objects, drawn={"pose": {"yaw": float(random.uniform(0, 6))}}),
        visual=VisualLayout(
            light=light,
            cameras=cameras,
            surfaces={"table": SurfaceLook(color=(0.5, 0.4, 0.3), texture="wood", texture_seed=variant)},
            instruction="put every piece of trash into its bin, façade included",
        ),
    )


def make_trajectory(index: int = 0, *, steps: int = 20, outcome: Outcome | None = None) -> Trajectory:
    """Make a smooth synthetic motion with two skill segments."""
    random = generator(0, index, "trajectory")
    joints, bodies = 9, 4
    phase = np.linspace(0, 2, steps)[:, None] + random.uniform(0, 1, joints)
    half = steps // 2
    return Trajectory(
        rate=15.0,
        time=np.arange(steps) / 15.0,
        joint_names=tuple(f"joint{i}" for i in range(joints)),
        joint_positions=np.sin(phase),
        joint_velocities=np.cos(phase),
        action_names=tuple(f"joint{i}" for i in range(7)) + ("gripper",),
        actions=np.sin(phase[:, :8] + 0.1),
        executed_actions=np.sin(phase[:, :8] + 0.11),
        body_names=("panda_link0", "panda_hand", "items_0", "items_1"),
        body_positions=random.normal(size=(steps, bodies, 3)),
        body_wxyz=np.tile([1.0, 0.0, 0.0, 0.0], (steps, bodies, 1)),
        segments=(
            SkillSegment(start=0, stop=half, skill="pick", target="items_0", phase="approach"),
            SkillSegment(start=half, stop=steps - 1, skill="place", target="bin_metal", phase="release"),
        ),
        outcome=outcome or Outcome(success=True),
        scene_graph=(
            RelationSpan(start=0, stop=half, relation="on", object="items_0", target="world"),
            RelationSpan(start=half, stop=steps + 1, relation="held", object="items_0"),
        ),
        start=StartState(joint_positions=random.normal(size=23), joint_velocities=random.normal(size=21)),
        contacts={"grip_force": random.uniform(0, 20, steps), "held_penetration": np.zeros(steps)},
        plan_statistics={"plan_time": random.uniform(0, 0.02, 3), "clearance": random.uniform(0, 0.1, 3)},
    )


def make_labels() -> Labels:
    """Make names for masks of two objects over a background."""
    return Labels(
        instance_names=("background", "items_0", "items_1"),
        instance_bodies=("", "items_0", "items_1"),
        instance_semantics=np.array([0, 1, 2], dtype=np.uint8),
        semantic_names=("background", "plastic", "metal"),
        boxes_3d=np.concatenate([np.full((1, 2, 3), np.nan), np.tile([[[-0.03] * 3, [0.03] * 3]], (2, 1, 1))]),
    )


def make_frames(step: int, count: int, *, camera: int, seed: int, width: int, height: int) -> CameraFrames:
    """Make images of a shaded table with two moving discs."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    instance = np.zeros((count, height, width), dtype=np.uint8)
    boxes = np.full((count, 3, 4), np.nan, dtype=np.float32)
    for row in range(count):
        for item in (1, 2):
            center_x = width * (0.3 + 0.2 * camera + 0.2 * np.sin((step + row) / 9 + item + seed))
            disc = (x - center_x) ** 2 + (y - height * 0.3 * item) ** 2 < (height / 8) ** 2
            instance[row][disc] = item
            if disc.any():
                boxes[row, item] = x[disc].min(), y[disc].min(), x[disc].max() + 1, y[disc].max() + 1
    shade = 140 + 60 * np.sin(x / width * 5 + camera) * np.cos(y / height * 3)
    tints = np.array([[0.9, 0.8, 0.7], [0.9, 0.3, 0.2], [0.3, 0.5, 0.9]], dtype=np.float32)
    depth = (0.8 + y / height * 0.5 + x / width * 0.1)[None] - 0.05 * (instance > 0)
    depth[:, :2] = 0
    return CameraFrames(
        rgb=(shade[None, ..., None] * tints[instance]).clip(0, 255).astype(np.uint8),
        depth=depth.astype(np.float32),
        instance=instance,
        semantic=instance,
        normals=np.broadcast_to(np.array([0, 0, 127], np.int8), (count, height, width, 3)),
        boxes_2d=boxes,
        visibility=np.where(np.isnan(boxes[..., 0]), 0, 1).astype(np.float32),
        intrinsics=np.array([[60.0, 0, width / 2], [0, 60.0, height / 2], [0, 0, 1]]),
        world_T_camera=np.tile(np.eye(4), (count, 1, 1)),
    )


def make_observations(
    steps: int, *, chunk: int = 8, seed: int = 0, width: int = 64, height: int = 48
) -> Iterator[Observation]:
    """Yield the images of an episode, one chunk at a time."""
    for start in range(0, steps, chunk):
        count = min(chunk, steps - start)
        cameras = {
            name: make_frames(start, count, camera=row, seed=seed, width=width, height=height)
            for row, name in enumerate(("front", "wrist"))
        }
        yield Observation(start=start, cameras=cameras)


def make_rendered(
    index: int = 0, *, variant: int = 0, steps: int = 20, width: int = 64, height: int = 48, **options: Any
) -> Rendered:
    """Make a result of the render stage; ``outcome=`` a failure makes it one without images."""
    outcome = options.pop("outcome", None)
    layout = make_layout(index, variant=variant, width=width, height=height)
    provenance = Provenance(task_text="name: sort_trash\n", task_hash=TASK_HASH, settings={"sim": "newton"})
    failed = outcome is not None and not outcome.success
    images = make_observations(steps, seed=index + variant, width=width, height=height)
    values: dict[str, Any] = {
        "scene": Scene(request=Request(index=index), assets=None, provenance=provenance),
        "layout": layout,
        "trajectory": make_trajectory(index, steps=steps, outcome=outcome),
        "labels": None if failed else make_labels(),
        "observations": iter(()) if failed else images,
        "times": {"plan": 1.5, "render": 3.0},
    }
    return Rendered(**values | options)


def failure(reason: Reason = Reason.NO_IK) -> Outcome:
    """Return a failed outcome."""
    return Outcome(success=False, phase="pick items_0", reason=reason, detail="closest 3 cm short")


def failed_attempts(*, variants: int, index: int = 0) -> tuple[Attempt, ...]:
    """Return the rows of one failed plan, the last attempt at an episode, one for each variant."""
    trajectory = make_trajectory(index, outcome=failure())
    return tuple(
        attempt_of(make_layout(index, variant=variant), trajectory, attempt=0, final=True, times={}, started=0.0)
        for variant in range(variants)
    )


def open_dataset(folder: Path, *, seed: int = 0) -> Dataset:
    """Open the dataset for synthetic episodes."""
    return Dataset.create_or_open(folder, task=TASK, task_hash=TASK_HASH, seed=seed, robot="panda")


def write_dataset(folder: Path, items: list[Rendered] | None = None, **options: Any) -> list[Stored]:
    """Write synthetic episodes, by default two stored ones and a failed one."""
    items = items or [make_rendered(0), make_rendered(1), make_rendered(2, outcome=failure())]
    with open_dataset(folder) as dataset:
        writer = Hdf5Writer(dataset, **options)
        try:
            return list(writer(iter(items)))
        finally:
            writer.close()
