"""Trained policy in a folder: weights, and the conventions that it was trained with.

The folder has ``weights.npz`` or ``weights.safetensors``, ``policy.json`` and ``policy.py``, and can be evaluated with
``nimbus evaluate TASK --policy FOLDER``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.asset_folders import file_in
from nimbus.datagen.files.atomic import replacing, write_atomic
from nimbus.datagen.files.bounded import check_regular, read_typed
from nimbus.datagen.files.codec import to_json
from nimbus.datagen.files.installation import add_extra
from nimbus.datagen.files.npy_files import read_npz
from nimbus.datagen.files.own_files import check_own
from nimbus.datagen.policies.policy import TIMES_LONGEST, Policy, PolicyTask, layout_source
from nimbus.datagen.policies.signal_view import SignalView
from nimbus.datagen.random_streams import RUN
from nimbus.datagen.store.info import read_info
from nimbus.datagen.store.ledger.ledger import FILE_NAME, Ledger

WEIGHTS, SETTINGS, ENTRY = "weights.npz", "policy.json", "policy.py"
_LARGEST_WEIGHTS = 1 << 30
"""Largest weights, unpacked [bytes]; those of the state policy have some MB."""
_GROWTH = 10
"""Largest ratio of unpacked to packed weights; their bits are nearly random."""
_AGAIN = "train the policy again"
_COMPARED = ("robot", "rate", "joint_names", "action_names", "feature_names")
_ENTRY_TEXT = '''"""The policy of this folder, for nimbus evaluate --policy."""

from pathlib import Path

from {module} import {name}


def make_policy():
    """Load the weights that lie beside this file."""
    return {name}(Path(__file__).parent)
'''


_CLASSES = (
    ("nimbus.datagen.policies.state_policy", "StatePolicy"),
    ("nimbus.datagen.policies.image_policy", "ImagePolicy"),
    ("nimbus.train.vla_policy", "VlaPolicy"),
)
"""Modules and names of the classes for which ``policy.py`` is written."""


@dataclass(frozen=True, kw_only=True)
class TrainedSettings:
    """Conventions that a trained policy expects."""

    task: str
    robot: str
    rate: float
    joint_names: tuple[str, ...]
    action_names: tuple[str, ...]
    feature_names: tuple[str, ...] = ()
    cameras: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Width and height [px] of the policy's cameras by name."""
    horizon: Annotated[int, Meta(ge=1, le=10_000)]
    """Number of actions of an answer."""
    limit: Annotated[int, Meta(ge=1, le=10_000_000)]
    """Largest number of steps of an episode: twice the longest demonstration."""
    dataset: str = ""
    """Hash of the demonstrations (D0)."""
    is_relative: bool = False
    """True if the network's arm joints are relative to the posture of the observation."""
    options: dict[str, float] = field(default_factory=dict)
    """Sizes of the network by name."""
    trained_layouts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Indices of the demonstrations' layouts, see :attr:`~nimbus.datagen.policies.policy.Policy.trained_layouts`."""


def settings_of(folder: Path, *, horizon: int, longest: int, with_cameras: bool = True) -> TrainedSettings:
    """Return the conventions of a dataset.

    Args:
        folder: A dataset of Nimbus.
        horizon: Number of actions of an answer.
        longest: Number of steps of its longest episode.
        with_cameras: True if the policy uses images.

    Raises:
        InputError: There is no dataset, or it lacks the images that the policy needs.
    """
    info = read_info(folder)
    if with_cameras and not info.cameras:
        again = "run the task without --images none, and with cameras"
        raise InputError("the dataset has no images", where=str(folder), instead=again)
    return TrainedSettings(
        task=info.task,
        robot=info.robot,
        rate=info.rate,
        joint_names=info.joint_names,
        action_names=info.action_names,
        cameras=dict(sorted(info.cameras.items())) if with_cameras else {},
        horizon=horizon,
        limit=TIMES_LONGEST * longest,
        dataset=info.task_hash,
        trained_layouts=stored_layouts(folder),
    )


def stored_layouts(folder: Path) -> dict[str, tuple[int, ...]]:
    """Find the layouts of a dataset's stored episodes.

    Returns:
        Their indices by :func:`~nimbus.datagen.policies.policy.layout_source`; empty without a ledger.
    """
    if not (folder / FILE_NAME).is_file():
        return {}
    with closing(Ledger(folder, read_only=True)) as ledger:
        return group_layouts((layout_source(one.task, RUN, one.seed), one.idx) for one in ledger.stored())


def group_layouts(pairs: Iterable[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    """Group indices of layouts by their source, in order."""
    found: dict[str, set[int]] = {}
    for source, index in pairs:
        found.setdefault(source, set()).add(index)
    return {source: tuple(sorted(found[source])) for source in sorted(found)}


class TrainedPolicy(Policy):
    """Base of policies in a folder; it compares the folder's conventions with the task's.

    Args:
        folder: Folder with weights and settings.
        weights: Name of the file with the weights.

    Raises:
        InputError: Files are missing, damaged, or links out of the folder.
    """

    view = SignalView()

    def __init__(self, folder: Path, *, weights: str = WEIGHTS) -> None:
        self.settings = read_typed(TrainedSettings, file_in(folder, SETTINGS))
        self.limit, self.horizon = self.settings.limit, self.settings.horizon
        self.trained_layouts = self.settings.trained_layouts
        self.path = file_in(folder, weights)
        try:
            check_regular(self.path)
            with self.path.open("rb") as file:
                self.identity = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        except OSError as error:
            raise unreadable(self.path, error) from None
        except InputError as error:
            raise InputError(error.what, where=str(self.path), instead=_AGAIN) from None

    def begin_task(self, task: PolicyTask) -> None:
        """Compare the conventions.

        Raises:
            InputError: Names, cameras, robot or rate of the task differ from those of the demonstrations.
        """
        mine = self.settings
        pairs = [(name.replace("_", " "), getattr(mine, name), getattr(task, name)) for name in _COMPARED]
        found = {name: task.cameras[name] for name in mine.cameras if name in task.cameras}
        for name, expected, there in (*pairs, ("cameras", mine.cameras, found)):
            if expected != there:
                what = f"the policy was trained with another {name}: {_shown(expected, there)}"
                raise InputError(what, where="--policy", instead=f"evaluate it on {mine.task}")


def read_weights(path: Path) -> dict[str, FloatArray]:
    """Read arrays by name.

    Raises:
        InputError: The file is damaged.
    """
    check_regular(path)
    try:
        held = read_npz(path, limit=_LARGEST_WEIGHTS, most_growth=_GROWTH)
        for name, array in held.items():
            if array.dtype.kind != "f" or array.itemsize < 4:
                raise ValueError(f"'{name}' has the type {array.dtype}, expected float32 or float64")
        return {name: np.asarray(array, dtype=float) for name, array in held.items()}
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> InputError:
    """Make the error for weights that cannot be read."""
    return InputError(f"cannot be read: {error}", where=str(path), instead=_AGAIN)


def generated_policy(folder: Path) -> type[TrainedPolicy] | None:
    """Return the class of a folder's policy if its ``policy.py`` is one that Nimbus writes, otherwise None.

    Such a file is not imported: modules of the same folder would stand for installed ones, and the folder may have been
    of others before a training continued in it.

    Raises:
        InputError: The class needs a package that is not installed.
    """
    path = folder / ENTRY
    for module, name in _CLASSES:
        text = _ENTRY_TEXT.format(module=module, name=name).encode()
        if path.is_file() and path.stat().st_size == len(text) and path.read_bytes() == text:
            try:
                return getattr(import_module(module), name)
            except ImportError as error:
                what = f"needs the package {error.name}"
                raise InputError(what, where=str(folder), instead=add_extra("train")) from None
    return None


def write_conventions(folder: Path, settings: TrainedSettings, *, policy: type[TrainedPolicy]) -> None:
    """Write the files beside the weights: the settings, and the file that creates the policy.

    Args:
        folder: Folder of the policy; the caller resolves it if the user named it, because such a folder may be a link.
        settings: Conventions.
        policy: Class that runs the weights.

    Raises:
        InputError: The folder is a link.
    """
    check_own(folder)
    folder.mkdir(parents=True, exist_ok=True)
    entry = _ENTRY_TEXT.format(module=policy.__module__, name=policy.__name__)
    for name, text in ((SETTINGS, to_json(settings, indent=1) + "\n"), (ENTRY, entry)):
        write_atomic(folder / name, text, durable=False, shared=False)


def write_policy(
    folder: Path, settings: TrainedSettings, weights: Mapping[str, NDArray[np.floating]], *, policy: type[TrainedPolicy]
) -> None:
    """Write the folder of a policy that runs in NumPy.

    Args:
        folder: Folder to create, see :func:`write_conventions`.
        settings: Conventions.
        weights: Arrays by name.
        policy: Class that runs the weights.

    Raises:
        InputError: The folder is a link.
    """
    write_conventions(folder, settings, policy=policy)
    with replacing(folder / WEIGHTS, durable=False, shared=False) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **weights)


def _shown(expected: object, found: object) -> str:
    if isinstance(expected, tuple) and isinstance(found, tuple):
        missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
        return f"it lacks {missing[:3]} and has the additional {extra[:3]}"
    return f"{expected}, not {found}"
