"""Writer of robomimic's format: one HDF5 file with all episodes, filter keys and metadata of the environment."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.datasets.export.hdf5 import copy_images, new_file
from nimbus.datagen.datasets.export.parts import EpisodeParts
from nimbus.datagen.datasets.export.shards import Options
from nimbus.datagen.datasets.export.source import ExportItem, Source, read_signals
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.store.episode_file.read import EpisodeFile

NEEDS_PARTS = False
_FILE = "dataset.hdf5"
_NO_ENVIRONMENT = 0
"""Environment type that robomimic does not know: policies can be trained, but it cannot create environments."""
_VALID_SHARE = 0.1
"""Fraction of the plans in the validation split."""


def write(source: Source, parts: EpisodeParts, tree: Path, options: Options) -> None:
    """Write a dataset in robomimic's format into an empty folder.

    Args:
        source: Dataset to export.
        parts: Unused: images are stored losslessly, one frame per chunk; video is decoded.
        tree: Folder of the export.
        options: Unused.
    """
    low, high = _action_range(source)
    with new_file(tree / _FILE) as (file, check):
        data = file.create_group("data")
        data.attrs["total"] = source.frame_count
        data.attrs["env_args"] = to_json(_environment(source))
        if source.views:
            data.attrs["view"] = to_json(source.views.described())
        data.attrs["action_low"], data.attrs["action_high"] = low, high
        for item in source.items:
            with EpisodeFile(item.path) as episode:
                _write_demo(data.create_group(f"demo_{item.position}"), episode, item, source, (low, high))
            check()
        for name, members in _masks(source).items():
            file[f"mask/{name}"] = np.array([f"demo_{item.position}" for item in members], dtype="S")


def _write_demo(
    demo: h5py.Group, episode: EpisodeFile, item: ExportItem, source: Source, bounds: tuple[NDArray[Any], NDArray[Any]]
) -> None:
    signals = read_signals(episode, source)
    demo.attrs.update(
        num_samples=item.step_count,
        model_file="",
        success=item.success,
        seed=item.seed,
        reason=item.reason,
        phase=item.phase,
        episode_id=item.episode_id,
        instruction=signals.instruction,
    )
    positions, wxyz = episode.array("observations/body_positions"), episode.array("observations/body_wxyz")
    bodies = np.concatenate([positions, wxyz], axis=-1).reshape(item.step_count, -1)
    low_dim = {"joint_pos": signals.state, "joint_vel": signals.velocity, "object": bodies}
    low_dim |= {name.removeprefix("observation."): rows for name, rows in signals.extra.items() if rows.ndim == 2}
    actions = _actions(episode, source)
    demo["actions"] = scaled(actions, *bounds)
    demo["actions_abs"] = actions
    demo["states"] = np.concatenate([signals.state, signals.velocity, bodies], axis=-1)
    done = np.zeros(item.step_count)
    done[-1] = item.success
    demo["rewards"], demo["dones"] = done, np.arange(item.step_count) == item.step_count - 1
    for name, values in low_dim.items():
        demo[f"obs/{name}"] = values
        demo[f"next_obs/{name}"] = np.concatenate([values[1:], values[-1:]])
    for camera in source.cameras:
        copy_images(episode, camera, demo.require_group("obs"), f"{camera}_image")
        _shift(demo, f"{camera}_image")


def _actions(episode: EpisodeFile, source: Source) -> NDArray[Any]:
    return source.views.make(episode).action if source.views else episode.array("action")


def scaled(actions: NDArray[Any], low: NDArray[Any], high: NDArray[Any]) -> NDArray[np.float64]:
    """Scale actions to [-1, 1], which robomimic requires; constant entries become 0.

    Args:
        actions: (T, A) actions [units of the actions].
        low: (A,) smallest values.
        high: (A,) largest values.
    """
    middle, half = (low + high) / 2, (high - low) / 2
    return np.clip((actions - middle) / np.where(half > 0, half, 1.0), -1.0, 1.0)


def _action_range(source: Source) -> tuple[NDArray[Any], NDArray[Any]]:
    low, high = np.inf, -np.inf
    for item in source.items:
        with EpisodeFile(item.path) as episode:
            actions = _actions(episode, source)
        low, high = np.minimum(low, actions.min(axis=0)), np.maximum(high, actions.max(axis=0))
    return np.asarray(low), np.asarray(high)


def _shift(demo: h5py.Group, name: str) -> None:
    """Define the images of the next steps as an HDF5 virtual dataset, without copies."""
    images: Any = demo[f"obs/{name}"]
    later = h5py.VirtualLayout(shape=images.shape, dtype=images.dtype)
    here = h5py.VirtualSource(".", images.name, shape=images.shape)
    later[:-1], later[-1:] = here[1:], here[-1:]
    later.dcpl.set_obj_track_times(False)  # without time stamps, equal exports have equal bytes
    demo["next_obs"].create_virtual_dataset(name, later)  # pyright: ignore[reportAttributeAccessIssue]


def _masks(source: Source) -> dict[str, list[ExportItem]]:
    """Return the items of each filter key.

    All visual variants of a plan are in the same split; otherwise training and validation would share trajectories.
    """
    numbers = sorted({(item.seed, item.index) for item in source.stored}, key=_rank)
    valid = set(numbers[: round(_VALID_SHARE * len(numbers))])
    sides: dict[str, list[ExportItem]] = {"train": [], "valid": [], "success": [*source.stored]}
    for item in source.stored:
        sides["valid" if (item.seed, item.index) in valid else "train"].append(item)
    return sides | ({"failure": [*source.failures]} if source.failures else {})


def _rank(plan: tuple[int, int]) -> str:
    return hashlib.sha256(f"split:{plan[0]}:{plan[1]}".encode()).hexdigest()


def _environment(source: Source) -> dict[str, Any]:
    """Return metadata of the environment, with the keys that robomimic expects."""
    cameras = {f"{name}_image": [size[1], size[0], 3] for name, size in source.cameras.items()}
    return {
        "env_name": f"nimbus-{source.task}",
        "env_version": "",
        "type": _NO_ENVIRONMENT,
        "env_kwargs": {"robot": source.robot, "rate": source.fps, "cameras": cameras},
    }
