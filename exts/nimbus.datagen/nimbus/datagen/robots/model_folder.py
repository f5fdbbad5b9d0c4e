"""Folder of a robot's model, in which all files that the model names must lie.

A model may come from another user, and all that it names is copied into USD files and drawn into datasets. The model
itself may be elsewhere, because the user names the robot file that selects it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import TEXT_BYTES, is_dataset, read_bytes, real_path
from nimbus.datagen.objects.imported.named_files import existing_file

_MODEL_FOLDERS = ("urdf", "urdfs", "robot", "robots", "model", "models", "xml", "mjcf")
"""Names of folders beside which robots keep their meshes, as in ``my_robot/urdf`` and ``my_robot/meshes``."""
_BESIDE = ("assets", "collision", "collisions", "materials", "mesh", "meshes", "textures", "visual", "visuals")
"""Names of folders beside these that belong to the robot, if the folder around them is that of a robot. The archive of
a robot chooses the name of its top folder, so that the folder around it may be the user's own."""
_OTHERS = frozenset(
    ".git .github .vscode config configs dae doc docs gazebo images launch licenses media mujoco obj rviz scripts sdf "
    "src srdf stl test tests usd worlds xacro yaml".split()
)
"""Names of other folders in the folder of a robot."""
_LEVELS = 3
"""Number of folders above that of the URDF in which ``package.xml`` is looked for."""
MJCF_FOLDERS = ("meshdir", "texturedir", "assetdir")
"""Attributes of an MJCF with folders of assets."""
UPWARDS = 8
"""Largest number of folders by which a name in an MJCF goes up."""
_UNCLEAR = re.compile(
    r"<!DOCTYPE|\bxmlns\b|\b(?:file\w*|\w+dir)\s*=\s*(?:\"[^\"]*[\r\n\t]|'[^']*[\r\n\t])", re.IGNORECASE
)
"""Parts of an MJCF that MuJoCo may read in another way than Python's parser."""
_MOST_PARTS = 1000
"""Largest number of files that an MJCF includes."""


def model_folders(urdf: Path) -> tuple[Path, ...]:
    """Return the folders in which all files that a model names must lie.

    These are the model's own folder, and folders such as ``meshes`` in the nearest folder with a ``package.xml``.
    Beside a folder such as ``urdf`` they count as well, if the folder around them has no folder that is unusual for a
    robot. Other files around them may be the user's: an archive may have been unpacked among them. None is outside of
    the folder of a dataset, which another user may have made, and none but the model's own is the home folder or above
    it. Links are left out, because a process that reads the model may open all of the folders.
    """
    own = real_path(urdf).parent
    home = Path(os.path.realpath(os.path.expanduser("~")))
    for folder in (own, *own.parents[:_LEVELS]):
        if home.is_relative_to(folder):
            break
        if (folder / "package.xml").is_file():
            return (own, *(_without_links(folder, (*_BESIDE, *_MODEL_FOLDERS)) if folder != own else ()))
        if is_dataset(folder):
            break
    is_part = own.name in _MODEL_FOLDERS and not is_dataset(own) and not home.is_relative_to(own.parent)
    beside = _BESIDE if is_part and _is_of_robot(own.parent) else ()
    return (own, *_without_links(own.parent, beside))


def _without_links(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    return (place for name in names if not (place := folder / name).is_symlink())


def _is_of_robot(folder: Path) -> bool:
    """Return True if all folders in a folder have usual names for that of a robot; a folder of the user has others."""
    known = _OTHERS.union(_MODEL_FOLDERS, _BESIDE)
    try:
        return all(place.name.lower() in known for place in folder.iterdir() if place.is_dir())
    except OSError:
        return False


def check_inside(path: Path, folders: tuple[Path, ...], name: str, where: str) -> None:
    """Refuse a file that is outside of a robot's folders, also through a link.

    Raises:
        InputError: It is.
    """
    places = real_path(path), real_path(path.parent)
    if not all(any(place.is_relative_to(folder) for folder in folders) for place in places):
        shown = name.encode("utf-8", "replace").decode()
        what = f"'{shown}' is outside of the robot's folder {folders[0]}"
        instead = "put the file there, or a package.xml into the folder of the whole robot"
        raise InputError(what, where=where, instead=instead)


@dataclass(frozen=True)
class MjcfFiles:
    """Files of an MJCF, without ``..`` in their paths.

    Args:
        parts: The MJCF itself, and those that it includes or attaches.
        others: Its other files.
    """

    parts: frozenset[Path]
    others: frozenset[Path]


def check_mjcf_files(path: Path) -> MjcfFiles:
    """Return the files that an MJCF names, all in the folder of its robot; MuJoCo opens any path.

    Raises:
        InputError: A file is outside, or an included one cannot be read.
    """
    path = Path(os.path.abspath(path))
    inside, waiting, seen = model_folders(path), [path], {path}
    folders: set[str] = {""}
    names: dict[str, Path] = {}
    parts: set[str] = set()
    while waiting:
        while waiting:
            part = waiting.pop()
            for name, is_part in _names(part, folders):
                names.setdefault(name, part)
                parts.update([name] if is_part else [])
        # A name begins in the folder of a model that includes or attaches the part, at any level.
        for name in sorted(parts):
            for found in _candidates(name, _folders_of(seen), {""}):
                check_inside(found, inside, name, str(names[name]))
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
        if len(seen) > _MOST_PARTS:
            what = f"includes more than {_MOST_PARTS} files"
            raise InputError(what, where=str(path), instead="write them into one file")
    others: set[Path] = set()
    for name, part in names.items():
        for found in _candidates(name, _folders_of(seen), folders):
            check_inside(found, inside, name, str(part))
            others.add(found)
    return MjcfFiles(frozenset(seen), frozenset(others - seen))


def _folders_of(files: Iterable[Path]) -> list[Path]:
    return sorted({file.parent for file in files})


def read_part(part: Path) -> ElementTree.Element:
    """Read an MJCF.

    Raises:
        InputError: It is none, or MuJoCo may read it in another way.
    """
    try:
        text = read_bytes(part, limit=TEXT_BYTES).decode("utf-8-sig")
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, UnicodeDecodeError) as error:
        raise InputError(f"not an MJCF: {error}", where=str(part), instead="correct its XML syntax") from None
    if _UNCLEAR.search(text):
        what = "has a document type, a namespace, or a line break in the name of a file"
        raise InputError(what, where=str(part), instead="remove it")
    return root


def is_file_name(key: str) -> bool:
    """Return True if an attribute of an MJCF names a file, such as ``file`` and ``fileright``."""
    return key.lower().startswith("file")


def path_in(text: str, part: Path) -> str:
    """Return a path in an MJCF as MuJoCo reads it, which takes a backslash for a slash on all systems.

    Raises:
        InputError: It has a drive or the name of a service, or goes up by too many folders.
    """
    if ":" in text:
        raise InputError(f"the path '{text}' contains ':'", where=str(part), instead="write a path without it")
    name = text.replace("\\", "/")
    if name.count("..") > UPWARDS:
        what = f"the path '{text}' contains '..' more than {UPWARDS} times"
        raise InputError(what, where=str(part), instead="write a shorter path")
    return name


def _names(part: Path, folders: set[str]) -> Iterator[tuple[str, bool]]:
    """Yield the file names in an MJCF, each with True if it is another MJCF; collect the folders of its assets."""
    for element in read_part(part).iter():
        folders.update(path_in(element.get(name, ""), part) for name in MJCF_FOLDERS)
        for key, value in element.attrib.items():
            if is_file_name(key):
                yield path_in(value, part), element.tag in ("include", "model")


def _candidates(name: str, bases: Iterable[Path], folders: set[str]) -> Iterator[Path]:
    """Yield the existing files that MuJoCo may open for a name; with ``strippath`` it uses the last part only."""
    for base in bases:
        for folder in sorted(folders):
            for one in dict.fromkeys((name, name.rpartition("/")[2])):
                if (found := existing_file(base / folder / one)) is not None:
                    yield found
