"""URDF: the visuals of all links that are fixed to each other, with scale and colors from outside the meshes."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets.found import FoundAsset, FoundPart
from nimbus.datagen.assets.xml_files import numbers, parse_xml, place_of, turned, upper_rows
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported.roots import below

_LONGEST = 200
"""Links below each other; a cycle ends there."""


def read_urdf(root: Path, path: str) -> list[FoundAsset]:
    """Read a file as one asset; one with moving parts is refused, with its meshes claimed.

    Raises:
        InputError: It is no XML.
    """
    file = root / path
    robot = parse_xml(file)
    if robot.tag != "robot":
        return []
    colors = {
        material.get("name"): color.get("rgba")
        for material in robot.iter("material")
        if (color := material.find("color")) is not None
    }
    meshes = [below(root, file.parent, mesh.get("filename") or "") for mesh in robot.iter("mesh")]
    claims = tuple(sorted(set(filter(None, meshes))))
    moving = [joint for joint in robot.findall("joint") if joint.get("type") != "fixed"]
    is_partnet = file.name == "mobility.urdf"
    name = file.parent.name if is_partnet else file.stem
    common = {"name": name, "path": path, "layout": "partnet" if is_partnet else "urdf", "claims": claims}
    if moving:
        what = f"has {len(moving)} moving part{'s' * (len(moving) > 1)}: articulated assets are not imported yet"
        return [FoundAsset(**common, refused=what)]
    places, notes = _places(robot), []
    parts = []
    for link in robot.findall("link"):
        for visual in link.findall("visual"):
            part, note = _part(root, file, visual, places.get(link.get("name") or "", np.eye(4)), colors)
            parts += [part] if part else []
            notes += [note] if note else []
    if not parts:
        return [] if not claims else [FoundAsset(**common, refused=notes[0] if notes else "has no visual")]
    masses = [float(numbers(mass.get("value"), (0.0,))[0]) for mass in robot.iter("mass")]
    words = (file.stem, robot.get("name") or "", file.parent.name)
    return [
        FoundAsset(
            **common,
            parts=tuple(parts),
            words=words,
            metres=1.0,
            is_unit_certain=True,
            up="z",
            mass=sum(masses) or None,
            notes=tuple(notes),
        )
    ]


def _places(robot: Element) -> dict[str, FloatArray]:
    """Place of each link in the root's frame."""
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
                raise InputError("links are fixed to each other in a circle", instead="export it again")
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
            return None, f"no mesh '{name}': left out"
        scale = numbers(shape.get("scale"), (1.0, 1.0, 1.0))[:3]
        texture = material.find("texture") if material is not None else None
        picture = below(root, file.parent, texture.get("filename") or "") if texture is not None else ""
        rows = upper_rows(place @ np.diag([*scale, 1.0]))
        return FoundPart(mesh=mesh, place=rows, color=color, texture=picture), ""
    sizes = {
        "box": tuple(numbers(shape.get("size"), (0.0,) * 3)[:3].tolist()),
        "sphere": tuple(numbers(shape.get("radius"), (0.0,)).tolist()),
        "cylinder": (*numbers(shape.get("radius"), (0.0,)).tolist(), *numbers(shape.get("length"), (0.0,)).tolist()),
    }
    size = sizes.get(shape.tag, ())
    if not size or min(size) <= 0:
        return None, f"a {shape.tag} without a size: left out"
    return FoundPart(solid=shape.tag, size=size, place=upper_rows(place), color=color), ""
