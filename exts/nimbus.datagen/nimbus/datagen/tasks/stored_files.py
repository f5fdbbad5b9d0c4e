"""Files that a stored task names: they are used only if the episode was made with them.

A dataset may come from another user. Without this check, its tasks could name any scene, robot or mesh of this user,
whose images or sizes would then be written into a new dataset or report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.library import ObjectLibrary
from nimbus.datagen.robots.robot import Robot, load_robot
from nimbus.datagen.tasks.named_files import asset_names, own_files
from nimbus.datagen.tasks.task import BaseTask, NavigationTask, Task
from nimbus.datagen.tasks.task_file import TaskFile
from nimbus.datagen.usd.stage import StageInfo, read_stage

PICTURES = "pictures of "
"""Beginning of the names of image hashes in a provenance; only :mod:`.stored_pictures` compares them, because a replay
in physics needs no images."""
_LIBRARY = "library "
"""Beginning of the names of the hashes of object libraries."""


def asset_fingerprints(stage: StageInfo, robot: Robot, libraries: Iterable[ObjectLibrary]) -> dict[str, str]:
    """Return the content hash of each asset, by type and name, such as ``robot panda``."""
    from nimbus.datagen.usd.robot import robot_hash

    hashes = {f"scene {stage.name}": stage.content_hash, f"robot {robot.name}": robot_hash(robot)}
    return hashes | {_LIBRARY + library.name: library.content_hash for library in libraries}


def names_files(task: BaseTask | TaskFile) -> bool:
    """Return True if a task names a scene, robot or library of the user, or is one of navigation."""
    return not isinstance(task, Task | TaskFile) or bool(own_files(task))


def hash_assets(task: BaseTask | TaskFile) -> dict[str, str]:
    """Return the current content hashes of a task's scene, robot and object libraries.

    Raises:
        InputError: One of them is missing or cannot be read, or two libraries have one name.
    """
    if isinstance(task, NavigationTask):
        return task.source.fingerprint()
    assert isinstance(task, Task | TaskFile)
    robot, scene, *named = asset_names(task)
    libraries = list(dict.fromkeys(map(open_library, named)))
    names = [library.name for library in libraries]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        what = f"two object libraries have the name '{twice}'"
        raise InputError(what, where="objects", instead="rename one of the files")
    return asset_fingerprints(read_stage(scene), load_robot(robot), libraries)


def hash_stored_assets(task: BaseTask | TaskFile, assets: Mapping[str, str], *, where: str) -> dict[str, str]:
    """Return the hashes of a stored task's assets like :func:`hash_assets`, with errors that quote no file.

    A scan is read only if the episode states its name, because a pattern finds files whose names its author does not
    know. Errors are stored in certificates, reports and ledgers, which are shared, and a parser would quote what it
    cannot read in a private file.

    Args:
        task: The task.
        assets: Content hashes in the episode's provenance.
        where: The episode.

    Raises:
        InputError: One of the assets is missing or cannot be read, two libraries have one name, or the episode does not
            state a scan.
    """
    try:
        if isinstance(task, NavigationTask):
            if any(f"{task.source.file_kind} {path.name}" not in assets for path in task.source.paths):
                raise _unstated(where)
        return hash_assets(task)
    except _OtherFile:
        raise
    except InputError:
        named = [PurePath(name).name for name in own_files(task)] if isinstance(task, Task | TaskFile) else ()
        what = f"a file that its task names is missing or cannot be used{': ' if named else ''}{', '.join(named)}"
        instead = "restore the files with which the episode was made, or name the task if it moved: --task FILE"
        raise InputError(what, where=where, instead=instead) from None


def check_stored_files(task: BaseTask | TaskFile, assets: Mapping[str, str], *, where: str) -> None:
    """Refuse a stored task that names files other than those with which its episode was made.

    Args:
        task: The task, whose paths begin in a folder of this user.
        assets: Content hashes in the episode's provenance.
        where: The episode.

    Raises:
        InputError: There is no such file, or it is another one.
    """
    if not names_files(task):
        return
    now, then = hash_stored_assets(task, assets, where=where), without_picture_hashes(assets)
    if isinstance(task, TaskFile):  # it does not tell the libraries of randomizers, and its readers open none
        then = {name: digest for name, digest in then.items() if name in now or not name.startswith(_LIBRARY)}
    compare_assets(now, then, where=where)


def without_picture_hashes(assets: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes of a provenance that :func:`hash_assets` computes."""
    return {name: digest for name, digest in assets.items() if not name.startswith(PICTURES)}


def compare_assets(now: Mapping[str, str], then: Mapping[str, str], *, where: str) -> None:
    """Check that assets are those with which an episode was made.

    Errors contain neither names nor hashes of files that the episode does not state: a stored task may name private
    files by a pattern.

    Args:
        now: Current content hashes.
        then: Content hashes of the same kinds in the episode's provenance.
        where: The episode.

    Raises:
        InputError: One of them has changed since then, or is missing on either side.
    """
    for name in dict.fromkeys((*then, *now)):
        if now.get(name) != then.get(name):
            if name not in then:
                raise _unstated(where)
            what = f"the {name} changed since this episode was made (hash {then[name]})"
            instead = f"restore the {name}, or use the version of Nimbus that made the episode"
            raise _OtherFile(what, where=where, instead=instead)


class _OtherFile(InputError):
    """Raised for a file with which an episode was not made."""


def _unstated(where: str) -> _OtherFile:
    what = "its task names files of which the episode states no content"
    instead = "restore the files with which it was made, or use the version of Nimbus that made it"
    return _OtherFile(what, where=where, instead=instead)
