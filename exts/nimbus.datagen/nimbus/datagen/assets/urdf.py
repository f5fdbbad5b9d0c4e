"""Reader of URDF: links with visuals and collisions, joints, scales, and colors that the meshes do not contain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.articulated.chains import RawJoint, RawLink, attach_links
from nimbus.datagen.assets.found import FoundAsset, FoundPart
from nimbus.datagen.assets.source_files import text_beside
from nimbus.datagen.assets.xml_files import numbers, parse_xml, place_of, turned, upper_rows
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.codec import parse_json
from nimbus.datagen.objects.imported.roots import below

_LONGEST = 200
"""Largest depth of nested links; it also ends the search in a cycle."""
_KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide"}
_PARTNET, _SEMANTICS, _META = "mobility.urdf", "semantics.txt", "meta.json"
"""Names of the files that identify PartNet-Mobility."""
_XACRO = "contains xacro macros; expand them first: xacro IN.urdf.xacro > OUT.urdf"


def read_urdf(root: Path, path: str) -> list[FoundAsset]:
    """Read a file as one asset.

    Raises:
        InputError: The file is not XML, needs xacro, or its fixed joints form a cycle.
    """
    file = root / path
    robot = parse_xml(root, file)
    if robot.tag != "robot":
        return []
    if _needs_xacro(robot):
        raise InputError(_XACRO, where=path, instead="import the expanded file")
    meshes = [below(root, file.parent, mesh.get("filename") or "") for mesh in robot.iter("mesh")]
    claims = tuple(sorted(set(filter(None, meshes))))
    is_partnet = file.name == _PARTNET
    name = file.parent.name if is_partnet else file.stem
    common: dict[str, Any] = {"name": name, "path": path, "layout": "partnet" if is_partnet else "urdf"}
    common["claims"] = claims
    links, notes = _links(root, file, robot)
    if not any(not part.is_touched for link in links for part in link.parts):
        return (
            [] if not claims and not notes else [FoundAsset(**common, refused=notes[0] if notes else "has no visual")]
        )
    masses = [float(numbers(mass.get("value"), (0.0,))[0]) for mass in robot.iter("mass")]
    if 0 in masses:
        notes.append("a mass of 0 is ignored")
    category = _category(root, file.parent / _META) if is_partnet else ""
    words = (category, file.stem, robot.get("name") or "", file.parent.name)
    asset = FoundAsset(
        **common,
        words=tuple(filter(None, words)),
        metres=0.0 if is_partnet else 1.0,
        is_unit_certain=not is_partnet,
        up="z",
        mass=sum(masses) or None,
        notes=tuple(dict.fromkeys(notes)),
    )
    if is_partnet and category:
        asset = replace(asset, name=f"{category}_{name}")
    try:
        return [attach_links(links, asset)]
    except InputError as error:
        return [FoundAsset(**common, refused=error.what)]


def _needs_xacro(robot: Element) -> bool:
    """Return True if a file has xacro macros or expressions; without xacro, its numbers would be wrong."""
    return any(
        one.tag.startswith("{") and "xacro" in one.tag or any("${" in value for value in one.attrib.values())
        for one in robot.iter()
    )


def _links(root: Path, file: Path, robot: Element) -> tuple[list[RawLink], list[str]]:
    """Return the links with their parts, and notes about omitted parts."""
    places, semantics = _places(robot), _semantics(root, file.parent / _SEMANTICS)
    colors = {
        material.get("name"): color.get("rgba")
        for material in robot.iter("material")
        if (color := material.find("color")) is not None
    }
    links: dict[str, RawLink] = {}
    notes: list[str] = []
    for link in robot.findall("link"):
        name = link.get("name") or ""
        links[name] = raw = RawLink(name=name, words=semantics.get(name, ()))
        for tag in ("visual", "collision"):
            for visual in link.findall(tag):
                part, note = _part(root, file, visual, places.get(name, np.eye(4)), colors)
                notes += [note] if note else []
                if part:
                    called = visual.get("name") or ""
                    raw.parts.append(replace(part, link=name, is_touched=tag == "collision", name=called))
    for joint in robot.findall("joint"):
        child, parent = joint.find("child"), joint.find("parent")
        link = links.get(child.get("link") or "") if child is not None else None
        if link is None or parent is None:
            continue
        link.parent = parent.get("link") or ""
        if joint.get("type") != "fixed":
            link.joints.append(_joint(joint, places[link.name]))
    return list(links.values()), notes


def _joint(joint: Element, place: FloatArray) -> RawJoint:
    kind, axis, limit = joint.get("type") or "none", joint.find("axis"), joint.find("limit")
    dynamics, mimic = joint.find("dynamics"), joint.find("mimic")
    limits = None
    if kind != "continuous" and limit is not None and limit.get("upper") is not None:
        lower, upper = (_number(limit.get(side)) for side in ("lower", "upper"))
        limits = (lower, upper)
    return RawJoint(
        name=joint.get("name") or "?",
        kind=_KINDS.get(kind, kind),
        axis=place[:3, :3] @ numbers(axis.get("xyz") if axis is not None else None, (1.0, 0.0, 0.0))[:3],
        origin=place[:3, 3],
        limits=limits,
        damping=_number(dynamics.get("damping")) if dynamics is not None else 0.0,
        friction=_number(dynamics.get("friction")) if dynamics is not None else 0.0,
        leader=(mimic.get("joint") or "another") if mimic is not None else "",
    )


def _number(text: str | None) -> float:
    try:
        return float(text or 0.0)
    except ValueError:
        return float("nan")


def _semantics(root: Path, path: Path) -> dict[str, tuple[str, ...]]:
    """Read ``semantics.txt`` of PartNet-Mobility, whose lines give a link, its type of joint and its meaning."""
    rows = (line.split() for line in text_beside(root, path).splitlines())
    return {row[0]: (" ".join(row[2:]),) for row in rows if len(row) > 2}


def _category(root: Path, path: Path) -> str:
    """Return the category of a PartNet-Mobility asset from its ``meta.json``."""
    try:
        found = parse_json(text_beside(root, path) or "{}")
    except ValueError:
        return ""
    name = found.get("model_cat", "") if isinstance(found, dict) else ""
    return name[:60] if isinstance(name, str) else ""


def _places(robot: Element) -> dict[str, FloatArray]:
    """Return the pose (4, 4) of each link in the frame of the root."""
    above = {}
    for joint in robot.findall("joint"):
        child, parent = joint.find("child"), joint.find("parent")
        if child is not None and parent is not None:
            above[child.get("link")] = (parent.get("link"), _origin(joint))
    found = {}
    for link in robot.findall("link"):
        name, place, depth = link.get("name"), np.eye(4), 0
        while name in above:
            name, origin = above[name]
            place, depth = origin @ place, depth + 1
            if depth > _LONGEST:
                raise InputError("the fixed joints form a cycle", instead="give every link at most one parent")
        found[link.get("name")] = place
    return found


def _origin(element: Element) -> FloatArray:
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    roll, pitch, yaw = numbers(origin.get("rpy"), (0.0, 0.0, 0.0))[:3].tolist()
    turn = turned((0, 0, 1), yaw) @ turned((0, 1, 0), pitch) @ turned((1, 0, 0), roll)
    return place_of(numbers(origin.get("xyz"), (0.0, 0.0, 0.0)), turn)


def _part(
    root: Path, file: Path, visual: Element, link: FloatArray, colors: dict[str | None, str | None]
) -> tuple[FoundPart | None, str]:
    place = link @ _origin(visual)
    material = visual.find("material")
    rgba = numbers(colors.get(material.get("name")) if material is not None else None, (0.0,) * 3)
    color = None if material is None or not rgba.any() else (float(rgba[0]), float(rgba[1]), float(rgba[2]))
    shape = next(iter(visual.find("geometry") or ()), None)
    if shape is None:
        return None, ""
    if shape.tag == "mesh":
        name = shape.get("filename") or ""
        mesh = below(root, file.parent, name)
        if not mesh:
            return None, f"mesh '{name}' is missing and is omitted"
        scale = numbers(shape.get("scale"), (1.0, 1.0, 1.0))[:3]
        texture = material.find("texture") if material is not None else None
        picture = below(root, file.parent, texture.get("filename") or "") if texture is not None else ""
        rows = upper_rows(place @ np.diag([*scale, 1.0]))
        return FoundPart(mesh=mesh, place=rows, color=color, texture=picture), ""
    sizes = {
        "box": tuple(numbers(shape.get("size"), (0.0,) * 3)[:3].tolist()),
        "sphere": tuple(numbers(shape.get("radius"), (0.0,)).tolist()),
        "capsule": (*numbers(shape.get("radius"), (0.0,)).tolist(), *numbers(shape.get("length"), (0.0,)).tolist()),
        "cylinder": (*numbers(shape.get("radius"), (0.0,)).tolist(), *numbers(shape.get("length"), (0.0,)).tolist()),
    }
    size = sizes.get(shape.tag, ())
    if not size or min(size) <= 0:
        return None, f"a {shape.tag} without a size is omitted"
    return FoundPart(solid=shape.tag, size=size, place=upper_rows(place), color=color), ""
