"""Reader of MJCF bodies: links, joints and geoms, with scales, textures and colors that the meshes do not contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast
from xml.etree.ElementTree import Element

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.articulated.chains import RawJoint, RawLink, attach_links
from nimbus.datagen.assets.found import FoundAsset, FoundPart
from nimbus.datagen.assets.mjcf_file import MjcfFile, default_of, load_mjcf
from nimbus.datagen.assets.xml_files import numbers, place_of, turned, upper_rows
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.transforms import quat_to_matrix

_DEEPEST = 50
"""Largest depth of nested bodies."""
_SCENERY = ("scene", "arena", "floor", "basic")
"""Words in the names of included files that describe a room or a table."""
_SOLIDS = ("box", "sphere", "cylinder", "capsule")
_COLLISION_GROUP = 3
"""First geom group that MuJoCo's viewer hides by default."""
_ROBOCASA_SITES = {"bottom_site", "top_site", "horizontal_radius_site"}
"""Sites that robosuite and RoboCasa use to place objects."""


_Geom = tuple[str, dict[str, str], FloatArray]
"""Name of the link, attributes and pose (4, 4) of a geom."""
_IN_RADIANS = ("robosuite", "robocasa")
"""Layouts whose files are included into a world with angles in radians."""


def read_mjcf(root: Path, path: str) -> list[FoundAsset]:
    """Read a file as one asset per top-level body; scenery is omitted.

    Raises:
        InputError: The file is not XML, or includes an unreadable file.
    """
    loaded = load_mjcf(root, path)
    if loaded is None:
        return []
    model, top = loaded
    file = model.file
    claims = tuple(sorted({mesh for mesh, _ in model.meshes.values() if mesh}))
    name = file.parent.name if file.name == "model.xml" else file.stem
    layout = _layout(model, top)
    if layout in _IN_RADIANS and not any(one.get("angle") for one in top.findall("compiler")):
        model.is_radian = True
    bodies = [body for body, source in model.bodies if not any(word in Path(source).stem for word in _SCENERY)]
    bodies = [body for body in bodies if body.find("freejoint") is not None] or bodies
    if top.find("actuator") is not None:
        what = "has actuators: it is a robot, or a scene with a robot"
        return [FoundAsset(name=name, path=path, layout=layout, refused=what, claims=claims)]
    found = []
    for number, body in enumerate(bodies):
        links = MjcfLinks(model).of(body)
        if not any(link.parts for link in links):
            continue
        own = name if len(bodies) == 1 else f"{name}_{body.get('name') or number}"
        words = (own, body.get("name") or "", *(parent.name for parent in file.parents[:2]))
        weights = [numbers(weight, (0.0,))[0] for weight in _weights(body)]
        weightless = ["a mass of 0 is ignored"] if 0 in weights else []
        notes = tuple(dict.fromkeys(model.missing + weightless))
        common: dict[str, Any] = {"name": own, "path": path, "layout": layout, "claims": claims, "words": words}
        common |= {"metres": 1.0, "is_unit_certain": True, "up": "z", "mass": float(sum(weights)) or None}
        try:
            found.append(attach_links(links, FoundAsset(**common, notes=notes)))
        except InputError as error:
            found.append(FoundAsset(name=own, path=path, layout=layout, refused=error.what, claims=claims))
    return found


def _layout(model: MjcfFile, top: Element) -> str:
    """Return the name of the dataset whose conventions a file follows."""
    sites = {site.get("name") for site in top.iter("site")}
    if model.file.name == "model.xml":
        return "robocasa"
    if sites >= _ROBOCASA_SITES:
        return "robosuite"
    brought = {Path(item.get("_file") or "").stem for item in top.iter()}
    return "metaworld" if any(stem.endswith("_dependencies") for stem in brought) else "mjcf"


def _weights(body: Element) -> list[str]:
    return [weight for tag in ("inertial", "geom") for item in body.iter(tag) if (weight := item.get("mass"))]


class MjcfLinks:
    """Links of a body: the body itself and its descendants, with their joints and geoms.

    Args:
        model: File of the body.
    """

    def __init__(self, model: MjcfFile) -> None:
        self._model = model
        self._geoms: list[_Geom] = []
        self._links: list[RawLink] = []

    def of(self, body: Element) -> list[RawLink]:
        """Return the links in the frame of the body.

        The visual geometry consists of the visual geoms, or else of the meshes, or else of all geoms. Geoms that are
        not purely visual are used for contact.
        """
        self._walk(body, "", np.eye(4), body.get("childclass") or "main", 0)
        shown = [geom for geom in self._geoms if self._is_shown(geom[1])]
        seen = [geom for geom in shown if _is_visual(geom[1])]
        chosen = seen or [geom for geom in shown if "mesh" in geom[1]] or shown
        touched = [geom for geom in self._geoms if not _is_visual(geom[1]) and not _is_among(geom, chosen)]
        links = {link.name: link for link in self._links}
        for geoms, is_touched in ((chosen, False), (touched, True)):
            for name, given, place in geoms:
                if part := self._part(given, place, name=name, is_touched=is_touched):
                    links[name].parts.append(part)
        return self._links

    def _walk(self, body: Element, parent: str, place: FloatArray, childclass: str, depth: int) -> None:
        if depth > _DEEPEST:
            return
        name = body.get("name") or f"body_{len(self._links)}"
        name = f"{name}_{len(self._links)}" if name in {link.name for link in self._links} else name
        link = RawLink(name=name, parent=parent)
        self._links.append(link)
        for joint in body.findall("joint"):
            given = default_of(self._model, joint.get("class") or childclass, "joint") | joint.attrib
            if given.get("type") != "free":
                link.joints.append(self._joint(given, place, name))
        for site in body.findall("site"):
            if "handle" in (site.get("name") or "").lower():
                at = place @ [*numbers(site.get("pos"), (0.0,) * 3)[:3], 1.0]
                link.holds.append((float(at[0]), float(at[1]), float(at[2])))
        for geom in body.findall("geom"):
            given = default_of(self._model, geom.get("class") or childclass, "geom") | geom.attrib
            self._geoms.append((name, given, place @ self._place(given)))
        for child in body.findall("body"):
            inner = child.get("childclass") or childclass
            self._walk(child, name, place @ self._place(dict(child.attrib)), inner, depth + 1)

    def _joint(self, given: dict[str, str], place: FloatArray, link: str) -> RawJoint:
        kind = given.get("type", "hinge")
        unit = 1.0 if self._model.is_radian or kind == "slide" else np.pi / 180
        limits = numbers(given["range"], (0.0, 0.0))[:2] * unit if "range" in given else None
        if given.get("limited") == "false":
            limits = None
        first = {name: float(numbers(given.get(name), (0.0,))[0]) for name in ("damping", "frictionloss", "stiffness")}
        return RawJoint(
            name=given.get("name") or f"of {link}",
            kind=cast("Literal['hinge', 'slide']", kind),
            axis=place[:3, :3] @ numbers(given.get("axis"), (0.0, 0.0, 1.0))[:3],
            origin=(place @ [*numbers(given.get("pos"), (0.0,) * 3)[:3], 1.0])[:3],
            limits=None if limits is None else (float(limits[0]), float(limits[1])),
            damping=first["damping"],
            friction=first["frictionloss"],
            stiffness=first["stiffness"],
        )

    def _is_shown(self, geom: dict[str, str]) -> bool:
        if geom.get("type") == "plane" or float(numbers(geom.get("group"), (0.0,))[0]) >= _COLLISION_GROUP:
            return False
        return "rgba" not in geom or float(numbers(geom["rgba"], (1.0,) * 4)[3]) > 0

    def _place(self, given: dict[str, str]) -> FloatArray:
        """Read a pose (4, 4) from a position and any of MJCF's forms of orientation."""
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

    def _part(self, geom: dict[str, str], place: FloatArray, *, name: str, is_touched: bool) -> FoundPart | None:
        look = self._look(geom) | {"link": name, "is_touched": is_touched}
        look["name"] = " ".join((geom.get("name") or "", geom.get("mesh") or "")).strip()
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


def _is_among(
    geom: tuple[str, dict[str, str], FloatArray], others: list[tuple[str, dict[str, str], FloatArray]]
) -> bool:
    return any(geom is other for other in others)


def _is_visual(geom: dict[str, str]) -> bool:
    return geom.get("contype") == "0" and geom.get("conaffinity") == "0"


def _turn_to(direction: FloatArray) -> FloatArray:
    """Return the smallest rotation (3, 3) that turns z to a direction (3,)."""
    direction = direction / max(float(np.linalg.norm(direction)), 1e-12)
    axis = np.cross([0.0, 0.0, 1.0], direction)
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        return np.eye(3) if direction[2] > 0 else turned((1, 0, 0), np.pi)
    x, y, z = (axis / length).tolist()
    return turned((x, y, z), float(np.arctan2(length, direction[2])))
