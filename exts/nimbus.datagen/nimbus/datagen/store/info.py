"""Description of a dataset: ``dataset.json``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from nimbus.datagen.episode.credits import AssetCredit
from nimbus.datagen.episode.layout import TASK, Layout, RunSeed, TaskName
from nimbus.datagen.episode.meaning import TaskMeaning
from nimbus.datagen.episode.observation import Labels
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.bounded import Count, Pixels, Rate, read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.random_streams import RUN
from nimbus.datagen.store.episode_file.read import EpisodeFile
from nimbus.datagen.store.episode_file.schema import FORMAT_VERSION, Feature, feature, field_of

INFO_NAME = "dataset.json"
RESTORE = "restore this file from a copy"


@dataclass(frozen=True, kw_only=True)
class TaskEntry:
    """One task of a dataset of several tasks."""

    task_hash: str
    """Content hash of the task."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Inputs that differ from the dataset's; empty for an input that the task does not have."""


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """Content of ``dataset.json``."""

    format_version: int = FORMAT_VERSION
    task: str
    """Name of its task, or of the folder of its tasks."""
    task_hash: str
    """Content hash of its task; empty where it has several tasks."""
    tasks: dict[TaskName, TaskEntry] = field(default_factory=dict)
    """Tasks by name in a dataset of several tasks; empty in a dataset of one task."""
    seed: RunSeed
    inputs: dict[str, str] = field(default_factory=dict)
    """Further inputs that decide the content: assets, code, settings and versions by name, see
    ``fingerprint_inputs``."""
    field_schema: int = 1
    """Newest field schema of its episodes, see ``schema.FIELD_SCHEMA``; absent in files up to Nimbus 0.1.0."""
    robot: str = ""
    credits: dict[str, AssetCredit] = field(default_factory=dict)
    """Sources and licenses of imported objects that its episodes may show, by ``library/kind``."""
    meanings: dict[TaskName, TaskMeaning] = field(default_factory=dict)
    """Meanings of its tasks by name; absent in files up to Nimbus 0.1.0."""
    rate: Rate = 0.0
    """Steps per second [Hz]. This field and the following ones are empty or 0 until an episode is stored."""
    cameras: dict[str, tuple[Pixels, Pixels]] = field(default_factory=dict)
    """Width and height by camera [px]."""
    joint_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    instance_names: tuple[str, ...] = ()
    """Every instance name that occurs in an episode."""
    semantic_names: tuple[str, ...] = ()
    features: dict[str, Feature] = field(default_factory=dict)
    """Descriptions of datasets by path in the file."""
    episode_count: Count = 0
    step_count: Count = 0
    byte_count: Count = 0

    def __post_init__(self) -> None:
        """Refuse a task or a split whose name is none; the name of a folder of tasks is free."""
        if self.task and not self.tasks and not TASK.fullmatch(self.task):
            raise ValueError(f"task {self.task[:200]!a} is not a name")
        if not TASK.fullmatch(split := self.inputs.get("split", RUN)):
            raise ValueError(f"split {split[:200]!a} is not a name")

    def inputs_of(self, task: str) -> dict[str, str]:
        """Return the further inputs that decide the content of a task's episodes, by name."""
        own = self.inputs | self.tasks[task].inputs if task in self.tasks else self.inputs
        return {name: value for name, value in own.items() if value}


def read_info(folder: Path) -> DatasetInfo:
    """Read ``dataset.json``.

    Raises:
        InputError: The folder holds no dataset, or one of another format.
    """
    path = folder / INFO_NAME
    if not path.exists() and not path.is_symlink():
        raise InputError("there is no dataset here", where=str(folder), instead="give the folder of a run")
    try:
        info = read_typed(DatasetInfo, path)
    except InputError as error:
        what = f"not a Nimbus dataset description: {error.what}"
        raise InputError(what, where=str(path), instead=RESTORE) from None
    if info.format_version != FORMAT_VERSION:
        raise InputError(
            f"format version {info.format_version}, this Nimbus reads {FORMAT_VERSION}",
            where=str(path),
            instead="use the Nimbus that wrote it",
        )
    return info


def read_single_task_info(folder: Path) -> DatasetInfo:
    """Read ``dataset.json`` of a dataset of one task.

    Raises:
        InputError: The folder holds no dataset, or one of several tasks.
    """
    if (info := read_info(folder)).tasks:
        first = next(iter(info.tasks))
        words = quote_words("nimbus", "filter", folder, "--where", f'task == "{first}"', "--out", first)
        instead = f"take one of them: {words}"
        raise InputError(f"the dataset holds {len(info.tasks)} tasks", where=str(folder), instead=instead)
    return info


def keep_task(info: DatasetInfo, task: str) -> DatasetInfo:
    """Return the description of one task's part of a dataset of several tasks.

    Raises:
        InputError: The dataset has no such task; the name may come from a ledger of others.
    """
    if task not in info.tasks:
        raise InputError(f"the dataset has no task '{task}'", where=INFO_NAME, instead=RESTORE)
    return replace(
        info,
        task=task,
        task_hash=info.tasks[task].task_hash,
        inputs=info.inputs_of(task),
        tasks={},
        meanings={name: one for name, one in info.meanings.items() if name == task},
    )


def merge(info: DatasetInfo, learned: DatasetInfo) -> DatasetInfo:
    """Merge the description of one more episode into that of the dataset; counts are not changed."""
    return replace(
        info,
        rate=learned.rate,
        cameras=info.cameras | learned.cameras,
        joint_names=learned.joint_names,
        action_names=learned.action_names,
        instance_names=tuple(sorted({*info.instance_names, *learned.instance_names})),
        semantic_names=tuple(sorted({*info.semantic_names, *learned.semantic_names})),
        features=info.features | learned.features,
    )


def add_task(info: DatasetInfo, own: DatasetInfo) -> DatasetInfo:
    """Add a task to the description of a dataset of several tasks.

    Args:
        info: The dataset.
        own: Description of a dataset of the new task alone.
    """
    names = sorted({*info.inputs, *own.inputs})
    inputs = {name: value for name in names if (value := own.inputs.get(name, "")) != info.inputs.get(name, "")}
    entry = TaskEntry(task_hash=own.task_hash, inputs=inputs)
    return replace(
        info,
        tasks={**info.tasks, own.task: entry},
        credits=info.credits | own.credits,
        meanings=info.meanings | own.meanings,
    )


def info_text(info: DatasetInfo) -> str:
    """Return the text of ``dataset.json``."""
    return to_json(info, indent=2) + "\n"


def infer_dataset_info(
    info: DatasetInfo, layout: Layout, trajectory: Trajectory, labels: Labels | None, features: dict[str, Feature]
) -> DatasetInfo:
    """Return the description of a dataset with this episode only."""
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
    """Return the description of a dataset with one stored episode only.

    Raises:
        InputError: The file holds no readable episode.
    """
    with EpisodeFile(path) as episode:
        fields = ((name, field_of(name)) for name in episode.paths())
        features = {name: feature(field, episode[name].shape) for name, field in fields if field}
        return infer_dataset_info(info, episode.layout(), episode.trajectory(), episode.labels, features)
