"""MJCF: the visual geoms of a body, with scale, textures and colors from outside the meshes."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.found import FoundAsset, FoundPart
from nimbus.datagen.assets.xml_files import numbers, parse_xml, place_of, turned, upper_rows
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import quat_to_matrix
from nimbus.datagen.objects.imported.roots import below

_DEEPEST = 50
"""Includes and bodies below each other."""
_SCENERY = ("scene", "arena", "floor", "basic")
"""Words in the names of included files that bring a room and its table."""
_SOLIDS = ("box", "sphere", "cylinder", "capsule")
_COLLISION_GROUP = 3
"""MuJoCo's viewer hides groups from this number on."""


@dataclass
class _Model:
    """A file with all that it includes."""

    root: Path
    file: Path
    meshes: dict[str, tuple[str, FloatArray]] = field(default_factory=dict)
    """Path below the root, and the scale, by name."""
    textures: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Path below the root, and whether it follows the map of the mesh."""
    materials: dict[str, Element] = field(default_factory=dict)
    classes: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {"main": {}})
    """Attributes by element, by class."""
    bodies: list[tuple[Element, str]] = field(default_factory=list)
    """Top bodies, and the file that brings each."""
    missing: list[str] = field(default_factory=list)
    is_radian: bool = False
    order: str = "xyz"


def read_mjcf(root: Path, path: str) -> list[FoundAsset]:
    """Read a file as one asset for each body that stands in its world; scenery is left out.

    Raises:
        InputError: It is no XML, or includes a file that cannot be read.
    """
    file = root / path
    top = parse_xml(file)
    if top.tag != "mujoco":
        return []
    model = _Model(root, file)
    top = _included(top, root, file, 0)
    _collect(model, top)
    claims = tuple(sorted({mesh for mesh, _ in model.meshes.values() if mesh}))
    name = file.parent.name if file.name == "model.xml" else file.stem
    layout = "robocasa" if file.name == "model.xml" else "mjcf"
    bodies = [body for body, source in model.bodies if not any(word in Path(source).stem for word in _SCENERY)]
    free = [body for body in bodies if body.find("freejoint") is not None]
    bodies = free or bodies
    count = sum(map(_moving, bodies))
    if count or top.find("actuator") is not None:
        moved = f"{count} moving part{'s' * (count > 1)}" if count else "motors"
        what = f"has {moved}: articulated assets are not imported yet"
        return [FoundAsset(name=name, path=path, layout=layout, refused=what, claims=claims)]
    found = []
    for number, body in enumerate(bodies):
        parts = _Parts(model).of(body)
        if parts:
            own = name if len(bodies) == 1 else f"{name}_{body.get('name') or number}"
            words = (own, body.get("name") or "", *(parent.name for parent in file.parents[:2]))
            common: dict[str, Any] = {
                "words": words,
                "metres": 1.0,
                "is_unit_certain": True,
                "up": "z",
                "claims": claims,
            }
            notes = tuple(model.missing)
            weights = (item.get("mass") for tag in ("inertial", "geom") for item in body.iter(tag))
            common["mass"] = sum(float(numbers(weight, (0.0,))[0]) for weight in weights if weight) or None
            found.append(FoundAsset(name=own, path=path, layout=layout, parts=parts, notes=notes, **common))
    return found


def _included(element: Element, root: Path, file: Path, depth: int) -> Element:
    """Put included files in place; each element learns the file that brings it."""
    if depth > _DEEPEST:
        raise InputError("includes itself", where=str(file), instead="export it as one file")
    children: list[Element] = []
    for child in list(element):
        if child.tag == "include":
            name = below(root, file.parent, child.get("file") or "")
            if name:
                inner = _included(parse_xml(root / name), root, root / name, depth + 1)
                children += list(inner)
            continue
        grown = _included(child, root, file, depth + 1)
        grown.attrib.setdefault("_file", str(file))
        children.append(grown)
    element[:] = children
    return element


def _collect(model: _Model, top: Element) -> None:
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
                scale = numbers(item.get("scale") or _default(model, "main", "mesh").get("scale"), (1.0, 1.0, 1.0))
                model.meshes[name] = (found, np.diag([*scale[:3], 1.0]))
                if given and not found:
                    model.missing.append(f"no mesh '{given}': left out")
            elif item.tag == "texture" and given:
                model.textures[name] = (found, item.get("type") == "2d")
                if not found:
                    model.missing.append(f"no texture '{given}': its color is used")
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


def _file(model: _Model, item: Element, folder: str, given: str) -> str:
    here = Path(item.get("_file") or model.file).parent
    for base in dict.fromkeys((model.file.parent, here)):
        if found := below(model.root, (base / folder).resolve(), given) or below(model.root, base, given):
            return found
    return ""


def _defaults(model: _Model, element: Element, name: str, above: dict[str, dict[str, str]]) -> None:
    own = deepcopy(above)
    for child in element:
        if child.tag != "default":
            own[child.tag] = own.get(child.tag, {}) | child.attrib
    merged = model.classes.get(name, {})
    model.classes[name] = {tag: merged.get(tag, {}) | own.get(tag, {}) for tag in {*merged, *own}}
    for child in element:
        if child.tag == "default":
            _defaults(model, child, child.get("class") or "main", own)


def _default(model: _Model, name: str, tag: str) -> dict[str, str]:
    return model.classes.get(name, model.classes["main"]).get(tag, {})


def _moving(body: Element) -> int:
    """Count joints within a body; those of the first body with geoms move it as a whole."""
    while body.find("geom") is None and len(body.findall("body")) == 1:
        body = body.findall("body")[0]
    return sum(len(inner.findall("joint")) for child in body.findall("body") for inner in child.iter("body"))


class _Parts:
    """The visual parts of a body and of those fixed to it.

    Args:
        model: Its file.
    """

    def __init__(self, model: _Model) -> None:
        self._model = model
        self._geoms: list[tuple[dict[str, str], FloatArray]] = []

    def of(self, body: Element) -> tuple[FoundPart, ...]:
        """List the parts in the body's frame: its visual geoms, else its meshes, else all of its geoms."""
        self._walk(body, np.eye(4), body.get("childclass") or "main", 0)
        shown = [geom for geom in self._geoms if self._is_shown(geom[0])]
        seen = [geom for geom in shown if _is_visual(geom[0])]
        chosen = seen or [geom for geom in shown if "mesh" in geom[0]] or shown
        parts = (self._part(given, place) for given, place in chosen)
        return tuple(part for part in parts if part)

    def _walk(self, body: Element, place: FloatArray, childclass: str, depth: int) -> None:
        if depth > _DEEPEST:
            return
        for geom in body.findall("geom"):
            given = _default(self._model, geom.get("class") or childclass, "geom") | geom.attrib
            self._geoms.append((given, place @ self._place(given)))
        for child in body.findall("body"):
            inner = child.get("childclass") or childclass
            self._walk(child, place @ self._place(dict(child.attrib)), inner, depth + 1)

    def _is_shown(self, geom: dict[str, str]) -> bool:
        if geom.get("type") == "plane" or float(numbers(geom.get("group"), (0.0,))[0]) >= _COLLISION_GROUP:
            return False
        return "rgba" not in geom or float(numbers(geom["rgba"], (1.0,) * 4)[3]) > 0

    def _place(self, given: dict[str, str]) -> FloatArray:
        """Read a place from position and any of MJCF's orientations."""
        model, turn = self._model, np.eye(3)
        unit = 1.0 if model.is_radian else np.pi / 180
        position = numbers(given.get("pos"), (0.0, 0.0, 0.0))
        if "quat" in given:
            w, x, y, z = numbers(given["quat"], (1.0, 0.0, 0.0, 0.0))[:4].tolist()
            turn = quat_to_matrix((w, x, y, z))
        elif "euler" in given:
            for axis, angle in zip(model.order, numbers(given["euler"], (0.0,) * 3).tolist(), strict=False):
                step = turned(_AXES[axis.lower()], unit * angle)
                turn = turn @ step if axis.islower() else step @ turn
        elif "axisangle" in given:
            x, y, z, angle = numbers(given["axisangle"], (0.0, 0.0, 1.0, 0.0))[:4].tolist()
            turn = turned((x, y, z), unit * angle)
        elif "zaxis" in given:
            turn = _turn_to(numbers(given["zaxis"], (0.0, 0.0, 1.0))[:3])
        elif "xyaxes" in given:
            x, y = numbers(given["xyaxes"], (1.0, 0.0, 0.0, 0.0, 1.0, 0.0))[:6].reshape(2, 3)
            x = x / np.linalg.norm(x)
            y = y - (x @ y) * x
            y = y / np.linalg.norm(y)
            turn = np.column_stack([x, y, np.cross(x, y)])
        elif "fromto" in given:
            ends = numbers(given["fromto"], (0.0,) * 6)[:6].reshape(2, 3)
            position, turn = ends.mean(axis=0), _turn_to(ends[0] - ends[1])
        return place_of(position, turn)

    def _part(self, geom: dict[str, str], place: FloatArray) -> FoundPart | None:
        look = self._look(geom)
        if "mesh" in geom:
            mesh, scale = self._model.meshes.get(geom["mesh"], ("", np.eye(4)))
            return FoundPart(mesh=mesh, place=upper_rows(place @ scale), **look) if mesh else None
        kind, size = geom.get("type", "sphere"), numbers(geom.get("size"), (0.01,)).tolist()
        if kind not in _SOLIDS:
            return None
        if "fromto" in geom:
            ends = numbers(geom["fromto"], (0.0,) * 6)[:6].reshape(2, 3)
            size = [size[0], float(np.linalg.norm(ends[0] - ends[1])) / 2]
        needed = {"box": 3, "sphere": 1}.get(kind, 2)
        full = (size + size[-1:] * 3)[:needed]
        full = [2 * side for side in full] if kind == "box" else [full[0], *(2 * side for side in full[1:])]
        return FoundPart(solid=kind, size=tuple(full), place=upper_rows(place), **look)

    def _look(self, geom: dict[str, str]) -> dict[str, Any]:
        material = self._model.materials.get(geom.get("material", ""))
        look: dict[str, Any] = {}
        if material is not None:
            texture, follows = self._model.textures.get(material.get("texture") or "", ("", False))
            if texture and follows:
                look["texture"] = texture
        rgba = geom.get("rgba") or (material.get("rgba") if material is not None else None)
        if rgba:
            look["color"] = tuple(np.clip(numbers(rgba, (0.5,) * 3)[:3], 0, 1).tolist())
        return look


_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def _is_visual(geom: dict[str, str]) -> bool:
    return geom.get("contype") == "0" and geom.get("conaffinity") == "0"


def _turn_to(direction: FloatArray) -> FloatArray:
    """Rotation (3, 3) that takes z to a direction by the least turn."""
    direction = direction / max(float(np.linalg.norm(direction)), 1e-12)
    axis = np.cross([0.0, 0.0, 1.0], direction)
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        return np.eye(3) if direction[2] > 0 else turned((1, 0, 0), np.pi)
    x, y, z = (axis / length).tolist()
    return turned((x, y, z), float(np.arctan2(length, direction[2])))
