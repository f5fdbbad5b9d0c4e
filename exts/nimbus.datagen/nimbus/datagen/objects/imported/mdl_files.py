"""Files that the MDL modules of a scene name: images and other modules, which Isaac Sim opens when it renders.

USD's list of dependencies ends at a module. An MDL module is not parsed here: every text in it counts as the name of a
file, and every name of an import as a module, if there is such a file. A module is refused if the compiler could find
other texts, names or files in it: only plain relative paths are accepted, except in annotations.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import read_bytes, real_path
from nimbus.datagen.files.plain_paths import ALPHABET, is_plain_relative

_MODULE_BYTES = 16 << 20
"""Largest module [bytes]; the largest of Isaac Sim's own have some 100 kB."""
_MOST_FILES = 10_000
"""Largest number of modules, and of names in one."""
_TOKENS = re.compile(r"""//[^\n]*|(/\*.*?\*/)|"((?:[^"\\\n]|\\.)*)"|("|/\*|')""", re.DOTALL)
"""Comments, texts, beginnings of either that do not end, and beginnings of names in quotes."""
_CONTROL = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_PARTS = re.compile(r"""(\[\[)|(\]\s*\])|"(?:\s*")*""")
"""Ends of annotations, and texts, of which adjacent ones are one."""
_IMPORTS = re.compile(r"\b(?:import|using)\b([^;]*)")
_ALIAS = re.compile(r"\busing\s+\w+\s*=")
_NAMES = re.compile(r"(?:\.\.?|\w+|::)+")


def mdl_files(modules: Iterable[Path], folder: Path) -> list[Path]:
    """Return the files that MDL modules name, and those that these name.

    Args:
        modules: The modules that a scene names.
        folder: Folder of the scene; all files must lie there, or in the folder of the module that names them.

    Raises:
        InputError: A module is not text, is compressed, names a file outside of the folder or by anything but a plain
            relative path, or has code that compilers read in another way.
    """
    found: dict[Path, None] = {}
    waiting = list(modules)
    seen = {*waiting}
    while waiting:
        module = waiting.pop()
        near, all_starts = _starts(module, folder)
        for name in _names(module):
            starts = near if name.startswith(".") else all_starts
            for place in (Path(os.path.normpath(start / name)) for start in starts):
                if not os.path.lexists(place) and not name.startswith("../"):
                    continue
                if not _inside(place, folder, module.parent):
                    what = f"names '{name[:200]}' outside of the scene's folder"
                    instead = "copy the file into the folder of the scene, and write its path from the module"
                    raise InputError(what, where=str(module), instead=instead)
                if not place.is_file():
                    continue
                found[place] = None
                if place.suffix.lower().startswith(".md") and place not in seen:
                    seen.add(place)
                    waiting.append(place)
        if len(seen) > _MOST_FILES:
            raise InputError(
                f"has more than {_MOST_FILES} modules", where=str(module), instead="simplify the materials"
            )
    return list(found)


def _starts(module: Path, folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders in which paths with dots begin, and those in which all others may begin.

    The former are relative to the module; the latter also to search paths, such as a folder above it in the scene.
    """
    roots = (folder.absolute(), folder.resolve())
    own = (module, module.resolve())
    above = [place for one in own for place in one.parents if any(place.is_relative_to(root) for root in roots)]
    near = list(dict.fromkeys(one.parent for one in own))
    return near, list(dict.fromkeys((*near, *above, folder)))


def _names(module: Path) -> Iterator[str]:
    """Yield everything in a module that may be the path of a file."""
    texts, code = _read(module)
    for name, is_annotation in dict.fromkeys(_joined(texts, code)):
        if is_plain_relative(name):
            yield from (name, f"{name}.mdl")
        elif name and not is_annotation:
            what = f"names '{name[:200]}', which may be an address, an absolute path, or another file than it seems"
            instead = f"write the path of a file in the scene's folder from the module, with {ALPHABET}"
            raise InputError(what, where=str(module), instead=instead)
    for imported in _IMPORTS.finditer(code):
        for name in _NAMES.finditer(re.sub(r"\s*::\s*", "::", imported[1])):
            parts = [part for part in name[0].split("::") if part]
            for count in range(1, len(parts) + 1):
                yield from (f"{'/'.join(parts[:count])}{suffix}" for suffix in (".mdl", ".mdle"))
                yield f"{'.'.join(parts[:count])}.mdr"


def _read(module: Path) -> tuple[list[str], str]:
    """Return the texts of a module as they are written, and its code with a quote for each, without comments.

    Raises:
        InputError: The compiler may find other texts.
    """
    if module.suffix.lower() != ".mdl":  # an archive, or a part of one
        raise InputError("is a compressed MDL module", where=str(module), instead="unpack it into an .mdl and images")
    try:
        text = read_bytes(module, limit=_MODULE_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not a UTF-8 text: byte {error.start}", where=str(module), instead="export it again"
        ) from None
    why = "a control character" if _CONTROL.search(text) else ""
    texts, code, at = list[str](), list[str](), 0
    for token in _TOKENS.finditer(text):
        code += (text[at : token.start()], " " if token[2] is None else '"')
        at = token.end()
        if token[1] and "/*" in token[1][2:]:
            why = "a comment in a comment"
        elif token[2] is not None:
            texts.append(token[2])
        elif token[3]:
            why = "a name in quotes" if token[3] == "'" else "a text or comment without an end"
    code = "".join((*code, text[at:]))
    if _ALIAS.search(code):
        why = "another name for a module"
    if why:
        raise InputError(f"has {why}", where=str(module), instead="export it again, as an MDL module without it")
    if len(texts) > _MOST_FILES:
        raise InputError(f"has more than {_MOST_FILES} texts", where=str(module), instead="simplify the material")
    return texts, code


def _joined(texts: list[str], code: str) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a module, adjacent ones as one, and True for those of annotations, which name no files."""
    at, is_annotation = 0, False
    for part in _PARTS.finditer(code):
        if part[1] or part[2]:
            is_annotation = bool(part[1])
        else:
            count = part[0].count('"')
            yield "".join(texts[at : at + count]), is_annotation
            at += count


def _inside(place: Path, *folders: Path) -> bool:
    try:
        return any(real_path(place).is_relative_to(real_path(folder)) for folder in folders)
    except (OSError, ValueError):
        return False
