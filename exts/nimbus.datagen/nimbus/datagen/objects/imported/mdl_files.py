"""Files that the MDL modules of a scene name: images and other modules, which Isaac Sim opens when it renders.

USD's list of dependencies ends at a module. An MDL module is not parsed here: every text in it counts as the name of a
file, and every name of an import as a module, if there is such a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import is_file_below, read_bytes

_MODULE_BYTES = 16 << 20
"""Largest module [bytes]; the largest of Isaac Sim's own have some 100 kB."""
_MOST_FILES = 10_000
"""Largest number of modules, and of names in one."""
_TOKENS = re.compile(r"""//[^\n]*|/\*.*?\*/|((?:"(?:[^"\\\n]|\\.)*"\s*)+)|("|/\*)""", re.DOTALL)
"""Comments, texts (adjacent ones are one), and beginnings of either that do not end."""
_ONE = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_IMPORTS = re.compile(r"\b(?:import|using)\b([^;]*)")
_NAMES = re.compile(r"(?:\.\.?|\w+|::)+")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[/\\]|file:|[/\\]", re.IGNORECASE)
_INSTEAD = "copy the file into the folder of the scene, and write its path from the module"


def mdl_files(modules: Iterable[Path], folder: Path) -> list[Path]:
    """Return the files that MDL modules name, and those that these name.

    Args:
        modules: The modules that a scene names.
        folder: Folder of the scene; all files must lie there, or in the folder of the module that names them.

    Raises:
        InputError: A module is not text, is compressed, or names an address, an absolute path, or a file outside of
            the folder.
    """
    found: dict[Path, None] = {}
    waiting = [path for path in modules if path.is_file()]
    seen = {*waiting}
    while waiting:
        module = waiting.pop()
        for name in _names(module):
            for place in dict.fromkeys((module.parent / name, folder / name)):
                if not is_file_below(place, place.parent):
                    leads_out = ".." in Path(name).parts and not _inside(place, folder, module.parent)
                    if leads_out or os.path.islink(place):
                        raise _outside(name, module)
                    continue
                if not _inside(place, folder, module.parent):
                    raise _outside(name, module)
                found[place] = None
                if place.suffix.lower() == ".mdl" and place not in seen:
                    seen.add(place)
                    waiting.append(place)
        if len(seen) > _MOST_FILES:
            raise InputError(
                f"has more than {_MOST_FILES} modules", where=str(module), instead="simplify the materials"
            )
    return list(found)


def _names(module: Path) -> Iterator[str]:
    """Yield everything in a module that may be the path of a file, relative to the module or to the scene."""
    if module.suffix.lower() != ".mdl":
        raise InputError("is a compressed MDL module", where=str(module), instead="unpack it into an .mdl and images")
    try:
        text = read_bytes(module, limit=_MODULE_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not a UTF-8 text: byte {error.start}", where=str(module), instead="export it again"
        ) from None
    texts, code, at = dict[str, None](), list[str](), 0
    for token in _TOKENS.finditer(text):
        code.append(text[at : token.start()])
        at = token.end()
        if token[2]:
            raise InputError("has a text or comment without an end", where=str(module), instead="export it again")
        if token[1]:
            texts["".join(_plain(one[1], module) for one in _ONE.finditer(token[1]))] = None
            code.append(" ")
    code.append(text[at:])
    if len(texts) > _MOST_FILES:
        raise InputError(f"has more than {_MOST_FILES} texts", where=str(module), instead="simplify the material")
    for name in filter(None, texts):
        if _ADDRESS.match(name):
            what = f"names '{name[:200]}', which is an address or an absolute path"
            raise InputError(what, where=str(module), instead=_INSTEAD)
        yield name
        yield f"{name}.mdl"
    for imported in _IMPORTS.finditer("".join(code)):
        for name in _NAMES.finditer(imported[1]):
            parts = [part for part in name[0].split("::") if part]
            yield from ("/".join(parts[:count]) + ".mdl" for count in range(1, len(parts) + 1))


def _plain(text: str, module: Path) -> str:
    """Return a text without escapes; only those of quotes, backslashes and line breaks are accepted."""
    if re.search(r"\\[^nt\"\\]", text):
        raise InputError("has a text with coded characters", where=str(module), instead="write the characters")
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def _inside(place: Path, *folders: Path) -> bool:
    try:
        return any(place.resolve().is_relative_to(folder.resolve()) for folder in folders)
    except (OSError, ValueError):
        return False


def _outside(name: str, module: Path) -> InputError:
    return InputError(f"names '{name[:200]}' outside of the scene's folder", where=str(module), instead=_INSTEAD)
