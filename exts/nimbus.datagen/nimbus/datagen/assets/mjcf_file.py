"""MJCF file with its includes: meshes, textures, materials, default classes and bodies."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.xml_files import numbers, parse_xml
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.bounded import real_path
from nimbus.datagen.objects.imported.roots import below

_DEEPEST = 50
"""Largest depth of nested includes and elements."""


@dataclass
class MjcfFile:
    """MJCF file together with the files that it includes."""

    root: Path
    file: Path
    meshes: dict[str, tuple[str, FloatArray]] = field(default_factory=dict)
    """Path below the root (empty if missing) and scale (4, 4) of each mesh, by name."""
    textures: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Path below the root, and True if the texture follows the texture coordinates of meshes, by name."""
    materials: dict[str, Element] = field(default_factory=dict)
    classes: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {"main": {}})
    """Default attributes by class and element."""
    bodies: list[tuple[Element, str]] = field(default_factory=list)
    """Top-level bodies, each with the file that defines it."""
    missing: list[str] = field(default_factory=list)
    is_radian: bool = False
    order: str = "xyz"


def load_mjcf(root: Path, path: str) -> tuple[MjcfFile, Element] | None:
    """Load a file with its includes; return it with its root element, or None if it is not MJCF.

    Raises:
        InputError: The file is not XML, or includes itself or an unreadable file.
    """
    file = root / path
    top = parse_xml(root, file)
    if top.tag != "mujoco":
        return None
    model = MjcfFile(root, file)
    top = _include(model, top, file, 0)
    _collect(model, top)
    return model, top


def _include(model: MjcfFile, element: Element, file: Path, depth: int) -> Element:
    """Insert the content of included files; each element records the file that defines it."""
    if depth > _DEEPEST:
        raise InputError("includes itself", where=str(file), instead="export it as one file")
    children: list[Element] = []
    for child in list(element):
        if child.tag == "include":
            given = child.get("file") or ""
            if name := below(model.root, file.parent, given):
                inner = _include(model, parse_xml(model.root, model.root / name), model.root / name, depth + 1)
                children += list(inner)
            else:
                model.missing.append(f"the included file '{given}' is missing below the source and is omitted")
            continue
        grown = _include(model, child, file, depth + 1)
        grown.attrib.setdefault("_file", str(file))
        children.append(grown)
    element[:] = children
    return element


def _collect(model: MjcfFile, top: Element) -> None:
    compiler: dict[str, str] = {}
    for one in top.findall("compiler"):
        compiler |= one.attrib
    model.is_radian, model.order = compiler.get("angle") == "radian", compiler.get("eulerseq", "xyz")
    for default in top.findall("default"):
        _defaults(model, default, default.get("class") or "main", {})
    folders = {sort: compiler.get(sort) or compiler.get("assetdir") or "" for sort in ("meshdir", "texturedir")}
    for asset in top.findall("asset"):
        for item in asset:
            name, given = item.get("name") or Path(item.get("file") or "").stem, item.get("file") or ""
            folder = "meshdir" if item.tag == "mesh" else "texturedir"
            found = given and _file(model, item, folders[folder], given)
            if item.tag == "mesh":
                scale = numbers(item.get("scale") or default_of(model, "main", "mesh").get("scale"), (1.0, 1.0, 1.0))
                model.meshes[name] = (found, np.diag([*scale[:3], 1.0]))
                if given and not found:
                    model.missing.append(f"mesh '{given}' is missing and is omitted")
            elif item.tag == "texture" and given:
                model.textures[name] = (found, item.get("type") == "2d")
                if not found:
                    model.missing.append(f"texture '{given}' is missing; the color is used")
            elif item.tag == "material":
                model.materials[name] = item
    for world in top.findall("worldbody"):
        loose = Element("body", {"_file": str(model.file)})
        for child in world:
            if child.tag == "body":
                model.bodies.append((child, child.get("_file") or ""))
            elif child.tag == "geom" and child.get("_file") == str(model.file) and child.get("type") != "plane":
                loose.append(child)
        if len(loose):
            model.bodies.append((loose, str(model.file)))


def _file(model: MjcfFile, item: Element, folder: str, given: str) -> str:
    here = Path(item.get("_file") or model.file).parent
    for base in dict.fromkeys((model.file.parent, here)):
        if found := below(model.root, real_path(base / folder), given) or below(model.root, base, given):
            return found
    return ""


def _defaults(model: MjcfFile, element: Element, name: str, above: dict[str, dict[str, str]]) -> None:
    own = deepcopy(above)
    for child in element:
        if child.tag != "default":
            own[child.tag] = own.get(child.tag, {}) | child.attrib
    merged = model.classes.get(name, {})
    model.classes[name] = {tag: merged.get(tag, {}) | own.get(tag, {}) for tag in {*merged, *own}}
    for child in element:
        if child.tag == "default":
            _defaults(model, child, child.get("class") or "main", own)


def default_of(model: MjcfFile, name: str, tag: str) -> dict[str, str]:
    """Return the attributes that a default class gives to an element."""
    return model.classes.get(name, model.classes["main"]).get(tag, {})
