"""What a dataset is: ``dataset.json``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import from_json, to_json
from nimbus.datagen.store.episode_file.schema import FORMAT_VERSION

INFO_NAME = "dataset.json"
RESTORE = "restore this file from a copy"


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What ``dataset.json`` says."""

    format_version: int = FORMAT_VERSION
    task: str
    task_hash: str
    seed: int
    inputs: dict[str, str] = field(default_factory=dict)
    """What else decides the content: assets, code, settings and versions by name, see ``content.content_inputs``."""
    field_schema: int = 1
    """Newest set of fields that its episodes hold, see ``schema.FIELD_SCHEMA``; not in files of up to Nimbus 0.1.0."""
    robot: str = ""
    rate: float = 0.0
    """[Hz]; 0 until an episode is stored, like the rest below."""
    cameras: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Width and height by camera."""
    joint_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    instance_names: tuple[str, ...] = ()
    """Every instance name that occurs in an episode."""
    semantic_names: tuple[str, ...] = ()
    features: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By path in the file: shape (symbols where it differs between episodes), dtype, units, description."""
    episode_count: int = 0
    step_count: int = 0
    byte_count: int = 0


def read_info(folder: Path) -> DatasetInfo:
    """Read ``dataset.json``.

    Raises:
        InputError: The folder holds no dataset, or one of another format.
    """
    path = folder / INFO_NAME
    if path.exists() and not path.is_file():
        raise InputError("is no file", where=str(path))
    try:
        info = from_json(DatasetInfo, path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("there is no dataset here", where=str(folder), instead="give the folder of a run") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except ValueError as error:
        what = f"not a Nimbus dataset description: {error}"
        raise InputError(what, where=str(path), instead=RESTORE) from None
    if info.format_version != FORMAT_VERSION:
        raise InputError(
            f"format version {info.format_version}, this Nimbus reads {FORMAT_VERSION}",
            where=str(path),
            instead="use the Nimbus that wrote it",
        )
    return info


def merge(info: DatasetInfo, learned: DatasetInfo) -> DatasetInfo:
    """What is known of a dataset after one more episode; counts stay."""
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


def info_text(info: DatasetInfo) -> str:
    """The text of ``dataset.json``."""
    return to_json(info, indent=2) + "\n"
