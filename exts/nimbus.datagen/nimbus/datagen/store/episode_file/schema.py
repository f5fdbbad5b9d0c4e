"""Schema of an episode file, one row per dataset; the writer, the verifier and docs/dataset.md follow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from nimbus.datagen.episode.layout import ANNOTATIONS, DEFAULT_MODALITIES, Modality
from nimbus.datagen.files.bounded import Count

FORMAT_VERSION = 2
TEXT = "text"


class Feature(TypedDict):
    """Description of a dataset in ``dataset.json``."""

    shape: list[Count | str]
    """Sizes; symbols where they differ between episodes."""
    dtype: str
    units: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Field:
    """One dataset of an episode file.

    Args:
        path: Path in the file; ``*`` stands for a camera or a measure.
        dims: Named or fixed sizes: T steps, J joints, A action entries, B bodies, E arms, N instances, M classes,
            Q keypoints, S segments, R relations, K motion plans, H, W pixels.
        dtype: NumPy name, or ``text`` for UTF-8.
        units: SI unit, or empty.
        description: One-line description.
        partial: True if the values may be NaN, for absent measurements; values of all other fields are finite.
        pixels: True if the values depend on rendering; they are compared at level D1 only.
        optional: True if an episode may lack the field.
        varying: True if the values, such as times and versions, always differ; they are not part of content hashes.
        since: Number of the field schema that introduced it.
    """

    path: str
    dims: tuple[str | int, ...]
    dtype: str
    units: str
    description: str
    partial: bool = False
    pixels: bool = False
    optional: bool = False
    varying: bool = False
    since: int = 1


def _field(path: str, dims: str, dtype: str, units: str, description: str, **flags: Any) -> Field:
    sizes = tuple(int(dim) if dim.isdigit() else dim for dim in dims.split())
    return Field(path=path, dims=sizes, dtype=dtype, units=units, description=description, **flags)


def _image(path: str, dims: str, dtype: str, units: str, description: str, **flags: Any) -> Field:
    return _field(f"observations/{path}/*", dims, dtype, units, description, pixels=True, **flags)


FIELDS = (
    _field(
        "action",
        "T A",
        "float64",
        "rad, m",
        "commanded joint positions; the last entry is the gripper's, the travel of one finger",
    ),
    _field(
        "executed_action",
        "T A",
        "float64",
        "rad, m",
        "commands that were executed, for replay: action with execution noise; absent without execution noise",
        optional=True,
        since=2,
    ),
    _field("time", "T", "float64", "s", "time of each step since the start"),
    _field("observations/qpos", "T J", "float64", "rad, m", "measured joint positions"),
    _field("observations/qvel", "T J", "float64", "rad/s, m/s", "measured joint velocities"),
    _field("observations/body_positions", "T B 3", "float64", "m", "origin of each body in the world frame"),
    _field("observations/body_wxyz", "T B 4", "float64", "", "orientation of each body, unit quaternion wxyz"),
    _field(
        "observations/end_effector_positions",
        "T E 3",
        "float64",
        "m",
        "origin of each arm's tool frame in the world frame; only if a task requests it",
        optional=True,
        since=5,
    ),
    _field(
        "observations/end_effector_wxyz",
        "T E 4",
        "float64",
        "",
        "orientation of each tool frame, z out of the hand, y along the closing direction",
        optional=True,
        since=5,
    ),
    _image("images", "T H W 3", "uint8", "", "sRGB image"),
    _image("video", "", TEXT, "", "JSON: the MP4 file beside this one that holds the camera's sRGB images"),
    _image(
        "histogram", "3 256", "int64", "", "how often red, green, blue values occur in a grid of pixels of all images"
    ),
    _image("depth", "T H W", "uint16", "mm", "distance along the optical axis; 0 where nothing was hit"),
    _image("instance", "T H W", "uint8", "", "index into labels/instance_names"),
    _image("semantic", "T H W", "uint8", "", "index into labels/semantic_names"),
    _image("normals", "T H W 3", "int8", "1/127", "unit normal in the world frame; 0 where nothing was hit"),
    _image(
        "boxes_2d",
        "T N 4",
        "float32",
        "px",
        "visible box x_min y_min x_max y_max (exclusive); NaN where not seen",
        partial=True,
    ),
    _image(
        "visibility",
        "T N",
        "float32",
        "",
        "visible pixels over the area of the projected convex outline, 0 to 1; NaN where not measured",
        partial=True,
    ),
    _image(
        "flow",
        "T H W 2",
        "float16",
        "px",
        "displacement of each visible point to its pixel in the next step, right and down; NaN where nothing was hit "
        "and in the last step; only if requested",
        partial=True,
    ),
    _image(
        "keypoints_3d",
        "T Q 3",
        "float32",
        "m",
        "keypoints in the frame of the camera, OpenCV axes; only if requested",
        since=5,
    ),
    _image(
        "keypoints_2d",
        "T Q 2",
        "float32",
        "px",
        "column and row of keypoints, including hidden ones; NaN behind the camera",
        partial=True,
        since=5,
    ),
    _image(
        "keypoint_visibility",
        "T Q",
        "uint8",
        "",
        "2: visible; 1: hidden behind a surface, including its own; 0: outside the image",
        since=5,
    ),
    _image("intrinsics", "3 3", "float64", "px", "pinhole matrix"),
    _image("world_T_camera", "T 4 4", "float64", "m", "camera pose, OpenCV axes: +Z forward, +Y down"),
    _field("names/joints", "J", TEXT, "", "joint of each column of qpos and qvel"),
    _field("names/actions", "A", TEXT, "", "meaning of each column of action"),
    _field("names/bodies", "B", TEXT, "", "body of each row of body_positions and body_wxyz"),
    _field("names/end_effectors", "E", TEXT, "", "arm of each tool frame", optional=True, since=5),
    _field("labels/instance_names", "N", TEXT, "", "names of the instances in masks; 0 is background"),
    _field(
        "labels/instance_bodies",
        "N",
        TEXT,
        "",
        "body that each instance moves with; empty if the instance is static or has several bodies, like the robot",
    ),
    _field("labels/instance_semantics", "N", "uint8", "", "semantic index of each instance"),
    _field("labels/semantic_names", "M", TEXT, "", "names of the classes in masks; 0 is background"),
    _field(
        "labels/boxes_3d",
        "N 2 3",
        "float64",
        "m",
        "lower and upper corner in the frame of the instance's body; NaN for an instance without a box",
        partial=True,
    ),
    _field("labels/keypoint_names", "Q", TEXT, "", "name of each keypoint, such as items_0.top", since=5),
    _field("labels/keypoint_bodies", "Q", TEXT, "", "body that each keypoint moves with", since=5),
    _field("labels/keypoint_instances", "Q", "uint8", "", "instance that each keypoint belongs to", since=5),
    _field(
        "labels/keypoint_positions",
        "Q 3",
        "float64",
        "m",
        "position of each keypoint in the frame of its body",
        since=5,
    ),
    _field("skills/step", "T", "int32", "", "row of the segment table that each step belongs to; -1 for none"),
    _field("skills/start", "S", "int64", "step", "first step of each segment"),
    _field("skills/stop", "S", "int64", "step", "step after the last of each segment"),
    _field("skills/skill", "S", TEXT, "", "skill of each segment"),
    _field("skills/target", "S", TEXT, "", "object or place that the skill acts on"),
    _field("skills/phase", "S", TEXT, "", "part of the skill"),
    _field(
        "scene_graph/start",
        "R",
        "int64",
        "step",
        "step at which each relation begins; relations are evaluated when a skill starts and at the end",
        optional=True,
        since=3,
    ),
    _field(
        "scene_graph/stop",
        "R",
        "int64",
        "step",
        "step at which the relation has ended; T + 1 if it still holds at the end of the episode",
        optional=True,
        since=3,
    ),
    _field("scene_graph/relation", "R", TEXT, "", "name of each relation, such as in", optional=True, since=3),
    _field("scene_graph/object", "R", TEXT, "", "object that has the relation", optional=True, since=3),
    _field(
        "scene_graph/target",
        "R",
        TEXT,
        "",
        "the other object; empty for a state of a single object",
        optional=True,
        since=3,
    ),
    _field("start/joint_positions", "P", "float64", "", "all generalized positions of the simulator before step 0"),
    _field("start/joint_velocities", "V", "float64", "", "all generalized velocities of the simulator before step 0"),
    _field("contacts/*", "T", "float64", "m, m/s, N", "contact measure of this name at each step"),
    _field(
        "signals/*", "T", "float64", "m", "measure of this name of a driving body at each step", optional=True, since=4
    ),
    _field(
        "plan_statistics/*",
        "K",
        "float64",
        "s, m, rad",
        "measure of this name of each motion plan; NaN where not measured",
        partial=True,
        varying=True,
    ),
    _field("instruction", "", TEXT, "", "instruction to the robot"),
    _field("outcome", "", TEXT, "", "JSON: success, and the phase and reason of a failure"),
    _field("layout", "", TEXT, "", "JSON: all values drawn for this episode, and its key (task, seed, index, variant)"),
    _field("provenance", "", TEXT, "", "JSON: task text, hashes, settings, versions and ancestors", varying=True),
)
"""Every dataset, in the order of the documentation. A symbol has the same size throughout a file."""

FIELD_SCHEMA = max(field.since for field in FIELDS)
"""Number of the newest field schema; an added field gets the next number as its ``since``."""

_RENAMED: dict[Modality, str] = {"rgb": "images", "boxes": "boxes_2d"}
CAMERA_GROUPS: dict[Modality, str] = {modality: _RENAMED.get(modality, modality) for modality in DEFAULT_MODALITIES}
"""Group under ``observations`` of each modality that is stored by default."""
ANNOTATION_GROUPS: dict[Modality, tuple[str, ...]] = dict(
    zip(ANNOTATIONS, (("flow",), ("keypoints_3d", "keypoints_2d", "keypoint_visibility")), strict=True)
)
"""Groups under ``observations`` of each modality that is stored only on request; they have the names of fields of
``CameraFrames``."""

_BY_PATH = {field.path: field for field in FIELDS}
CAMERA_FIELDS = {field.path.split("/")[1]: field for field in FIELDS if field.pixels}
"""Fields of cameras by the name of their group under ``observations``."""


def field_of(path: str) -> Field | None:
    """Return the field that describes a path such as ``observations/images/front``, or None."""
    return _BY_PATH.get(path) or _BY_PATH.get(path.rpartition("/")[0] + "/*")


def feature(field: Field, shape: tuple[int, ...]) -> Feature:
    """Return a dataset's entry in ``dataset.json``; sizes that differ between episodes stay symbols."""
    fixed = ("J", "A", "H", "W")
    sizes: list[int | str] = [size if dim in fixed else dim for dim, size in zip(field.dims, shape, strict=True)]
    return {"shape": sizes, "dtype": field.dtype, "units": field.units, "description": field.description}


def unify(field: Field, shape: tuple[int, ...], sizes: dict[str, int], *, scope: str = "") -> bool:
    """Match a shape with a field's named sizes, and bind unknown symbols in ``sizes``.

    Args:
        field: Field that the shape belongs to.
        shape: Shape of the dataset.
        sizes: Sizes by symbol, extended in place.
        scope: The camera or measure; ``H``, ``W`` and ``K`` are separate for each.
    """
    if len(shape) != len(field.dims):
        return False
    for dim, size in zip(field.dims, shape, strict=True):
        symbol = f"{scope}.{dim}" if dim in ("H", "W", "K") else dim
        known = dim if isinstance(dim, int) else sizes.setdefault(str(symbol), size)
        if known != size:
            return False
    return True


def is_dtype(field: Field, dtype: np.dtype[Any]) -> bool:
    """Return True if a dataset has the type of its field."""
    if field.dtype == TEXT:
        return dtype.kind in "SO"
    return dtype == np.dtype(field.dtype)
