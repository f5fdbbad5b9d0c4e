"""What one episode tells about its dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nimbus.datagen.episode.layout import Layout
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.episode_file.schema import feature, field_of

if TYPE_CHECKING:
    from nimbus.datagen.store.info import DatasetInfo


def infer_dataset_info(
    info: DatasetInfo, layout: Layout, trajectory: Trajectory, labels: Labels | None, features: dict[str, Any]
) -> DatasetInfo:
    """The description of a dataset that holds this episode and no other."""
    return replace(
        info,
        rate=trajectory.rate,
        cameras={camera.name: (camera.width, camera.height) for camera in layout.visual.cameras},
        joint_names=trajectory.joint_names,
        action_names=trajectory.action_names,
        instance_names=labels.instance_names if labels else (),
        semantic_names=labels.semantic_names if labels else (),
        features=features,
    )


def infer_dataset_info_from_file(info: DatasetInfo, path: Path) -> DatasetInfo:
    """The same, read back from a stored episode.

    Raises:
        InputError: There is no readable episode in the file.
    """
    with EpisodeFile(path) as episode:
        fields = ((name, field_of(name)) for name in episode.paths())
        features = {name: feature(field, episode[name].shape) for name, field in fields if field}
        return infer_dataset_info(info, episode.layout(), episode.trajectory(), episode.labels, features)
