"""Reading of demonstrations for the editor of their cuts, with contacts and the cuts found from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.datasets.multiply.contact_rows import ContactRows
from nimbus.datagen.datasets.multiply.cuts_file import DemonstrationCuts
from nimbus.datagen.datasets.multiply.cutting import Cutter
from nimbus.datagen.datasets.multiply.intervals import find_grips
from nimbus.datagen.datasets.multiply.source import Demonstration, read_nimbus_set
from nimbus.datagen.errors import InputError
from nimbus.datagen.robots.robot import load_robot
from nimbus.datagen.tasks.task import Task
from nimbus.datagen.ui.cuts_draft import CutsDraft
from nimbus.datagen.usd.stage import read_stage


@dataclass(frozen=True, kw_only=True)
class ArmContacts:
    """Contacts of an arm over T rows."""

    touches: NDArray[np.bool_]
    """(T,) True where the hand touches something."""
    holds: NDArray[np.bool_]
    """(T,) True where the hand holds something."""


@dataclass(frozen=True, kw_only=True)
class OpenCuts:
    """Demonstrations of a dataset with a draft of their cuts."""

    folder: Path
    task: Task
    draft: CutsDraft
    contacts: dict[str, dict[str, ArmContacts]]
    """Contacts by demonstration and arm; a demonstration that cannot be used has none."""
    paths: dict[str, dict[str, FloatArray]]
    """Positions (T, 3) of the tools [m], by demonstration and arm."""


def open_cuts(folder: Path, cuts_file: Path, task: Task) -> OpenCuts:
    """Read the demonstrations of a dataset, find their contacts and cuts, and read the cuts file if it exists.

    Args:
        folder: Dataset of Nimbus.
        cuts_file: File of the cuts.
        task: Task of the demonstrations.

    Raises:
        InputError: The dataset is not one of the task, or the file has an error.
    """
    robot, stage = load_robot(task.robot), read_stage(task.scene)
    demonstrations = read_nimbus_set(folder, task=task, robot=robot)
    cutter = Cutter(demonstrations[0].layout, task=task, stage=stage, robot=robot)
    found: dict[str, DemonstrationCuts] = {}
    contacts: dict[str, dict[str, ArmContacts]] = {}
    paths: dict[str, dict[str, FloatArray]] = {}
    for one in demonstrations:
        try:
            whole, rows = cutter.contacts(one)
        except InputError as error:
            found[one.name] = DemonstrationCuts(cuts=(), use=False, reason=error.what)
            continue
        contacts[one.name] = _contacts(one, rows)
        paths[one.name] = {arm: of_arm.tool[:, :3, 3] for arm, of_arm in rows.arms.items()}
        try:
            found[one.name] = DemonstrationCuts(cuts=cutter.find(whole, rows))
        except InputError as error:
            found[one.name] = DemonstrationCuts(cuts=(), use=False, reason=error.what)
    draft = CutsDraft(demonstrations, found, cutter.scope, cuts_file)
    return OpenCuts(folder=folder, task=task, draft=draft, contacts=contacts, paths=paths)


def _contacts(one: Demonstration, rows: ContactRows) -> dict[str, ArmContacts]:
    return {
        name: ArmContacts(
            touches=np.array([bool(names) for names in arm.touched]),
            holds=np.array([bool(name) for name in find_grips(arm, one.rate)]),
        )
        for name, arm in rows.arms.items()
    }
