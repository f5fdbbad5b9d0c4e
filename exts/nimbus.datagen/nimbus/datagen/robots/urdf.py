"""URDF files: reading, joint properties, and assembly of several into one."""

from __future__ import annotations

import copy
import importlib.metadata
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError, quote_words
from nimbus.datagen.files.bounded import TEXT_BYTES, read_bytes
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.robots.robot import BASE_JOINTS, Adapter, BaseTravel, Piece

Element = ElementTree.Element

SPEED = {"revolute": 2.0, "prismatic": 0.2}
"""Speed limit of a joint whose model gives none [rad/s, m/s]."""
EFFORT = 50.0
"""Effort limit of a joint whose model gives none [N m, N]."""

_MOST_ELEMENTS = 200_000
"""Largest number of XML elements; a model of 1,000 links has about 30,000."""
_DEEPEST = 40
"""Largest nesting depth of XML elements; a URDF has five levels."""
_KNOWN_PACKAGES = ("example-robot-data",)
"""Packages of shipped robots. Another name comes from a robot file, and pip could install anything by it."""
_LINK_OF = {"parent": "link", "child": "link", "mimic": "joint"}


@lru_cache(maxsize=16)
def package_folder(package: str) -> Path:
    """Return the folder of a package's shared data, which is ``package://<package>/`` in its URDFs.

    Raises:
        InputError: The package is not installed, or has no such folder.
    """
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        known = package in _KNOWN_PACKAGES
        instead = quote_words("pip", "install", package) if known else "get it from the author of the robot file"
        raise InputError(f"the package '{package}' is not installed", where="robot", instead=instead) from None
    marker = f"/share/{package}/"
    for file in files:
        text = file.as_posix()
        if marker in text:
            return Path(str(file.locate())).resolve().parents[len(text.split(marker)[1].split("/")) - 1]
    raise InputError(
        f"the package '{package}' has no share/{package} folder",
        where="robot",
        instead="build and source the package's workspace, or give the path of the file",
    )


def piece_path(piece: Piece, *, robot: str) -> Path:
    """Return the URDF file of a piece; an MJCF file is converted.

    Raises:
        InputError: The piece has no such file.
    """
    from nimbus.datagen.robots.mjcf import convert_to_urdf, is_mjcf

    path = model_path(piece, robot=robot)
    return convert_to_urdf(path) if is_mjcf(path) else path


def model_path(piece: Piece, *, robot: str) -> Path:
    """Return the URDF or MJCF file of a piece.

    Raises:
        InputError: The piece has no such file.
    """
    path = package_folder(piece.package) / piece.urdf if piece.package else Path(piece.urdf)
    inside = Path(piece.urdf)
    is_elsewhere = bool(piece.package) and (inside.is_absolute() or ".." in inside.parts)
    with suppress(OSError):  # the name is too long, or the folder may not be read
        if path.is_file() and not is_elsewhere:
            return path
    what = f"'{piece.urdf}' is not in the package '{piece.package}'" if piece.package else f"no such file: {piece.urdf}"
    raise InputError(what, where=f"robot {robot}: urdf", instead="correct the path of the URDF")


class _BoundedTree(ElementTree.TreeBuilder):
    """Builder of a tree that refuses too many elements and too many levels."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where, self._depth, self._count = where, 0, 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        """Open an element."""
        self._depth += 1
        self._count += 1
        if self._count > _MOST_ELEMENTS:
            what = f"not a URDF: more than {_MOST_ELEMENTS:,} elements"
            raise InputError(what, where=self._where, instead="give a URDF file")
        if self._depth > _DEEPEST:
            raise InputError("not a URDF: nested too deeply", where=self._where, instead="give a URDF file")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        """Close an element."""
        self._depth -= 1
        return super().end(tag)


def read_urdf(path: Path) -> Element:
    """Return the root element of a URDF.

    Raises:
        InputError: The file is not a URDF.
    """
    parser = ElementTree.XMLParser(target=_BoundedTree(str(path)))
    try:
        # In one call, because the parser reads a long token from its beginning again in each.
        parser.feed(read_bytes(path, limit=TEXT_BYTES))
        root: Element = parser.close()
    except ElementTree.ParseError as error:
        line, column = error.position
        what = f"not a URDF: {str(error).rsplit(':', 1)[0]}"
        raise InputError(what, where=f"{path}:{line}:{column + 1}", instead="correct its XML syntax") from None
    except (LookupError, ValueError) as error:  # the declared encoding is unknown, or does not match the file
        raise InputError(f"not a URDF: {error}", where=str(path), instead="save it as UTF-8") from None
    if root.tag != "robot" or root.find("link") is None:
        raise InputError(
            f"not a URDF: its root is <{root.tag}>, with no links",
            where=str(path),
            instead="give a file with <robot> at its root",
        )
    return root


def assemble(pieces: Iterable[Piece], *, robot: str) -> Element:
    """Assemble the URDF of all pieces, each fixed to a link of an earlier one, or to the base.

    The paths of meshes and textures are absolute, so that the result can be stored anywhere.
    """
    pieces = tuple(pieces)
    whole = Element("robot", name=re.sub(r"\W", "_", robot))
    several_bases = sum(not piece.mount for piece in pieces) > 1
    if several_bases:
        whole.append(Element("link", name="base_of_all"))
    for piece in pieces:
        path = piece_path(piece, robot=robot)
        part = _taken(read_urdf(path), piece, path)
        if mount := piece.mount or ("base_of_all" if several_bases else ""):
            root = root_link(part)
            whole.append(_fixed_joint(f"{mount}_to_{root}", mount, root, make_transform(piece.position, piece.wxyz)))
            if piece.adapter is not None:
                link = f"{root}_adapter"
                whole.append(_adapter_link(link, piece.adapter))
                whole.append(_fixed_joint(f"{mount}_to_{link}", mount, link, np.eye(4)))
        whole.extend(part)
    return whole


def _adapter_link(name: str, adapter: Adapter) -> Element:
    """Return the link of an adapter, whose mass comes from its shape."""
    link = Element("link", name=name)
    for kind in ("visual", "collision"):
        shape = ElementTree.SubElement(link, kind)
        set_origin(shape, make_transform((0.0, 0.0, adapter.length / 2), (1.0, 0.0, 0.0, 0.0)))
        size = {"radius": f"{adapter.radius}", "length": f"{adapter.length}"}
        ElementTree.SubElement(ElementTree.SubElement(shape, "geometry"), "cylinder", size)
    material = ElementTree.SubElement(link[0], "material", name=f"{name}_color")
    ElementTree.SubElement(material, "color", rgba="0.15 0.15 0.15 1")
    return link


def drop_inertials(root: Element, links: Iterable[str]) -> None:
    """Remove the inertials of some links, whose masses then come from their collision shapes."""
    for link in root.findall("link"):
        if link.get("name", "") in links and (inertial := link.find("inertial")) is not None:
            link.remove(inertial)


def _without_dots(name: str) -> str:
    """Replace the dots in a name, which USD does not allow and which separate the labels of parts."""
    return name.replace(".", "_")


def root_link(root: Element) -> str:
    """Return the first link that is not the child of a joint."""
    children = {child_of(joint) for joint in root.findall("joint")}
    return next(name for link in root.findall("link") if (name := link.get("name", "")) not in children)


def _taken(root: Element, piece: Piece, path: Path) -> Element:
    """Return the elements that a piece contributes, with its prefix."""
    root = copy.deepcopy(root)
    children = {child_of(joint): joint for joint in root.findall("joint")}
    if piece.root:
        keep = {piece.root} | {link for link in children if is_below(link, piece.root, children)}
        for element in list(root):
            name = element.get("name")
            link = child_of(element) if element.tag == "joint" else name
            if element.tag in ("link", "joint") and (
                link not in keep or (element.tag == "joint" and link == piece.root)
            ):
                root.remove(element)
    for link in piece.without:
        _remove_below(root, link, children)
    drop_inertials(root, piece.weighed)
    for element in list(root):
        if element.tag not in ("link", "joint", "material"):
            root.remove(element)
    for joint in root.findall("joint"):
        if is_unlimited(joint):
            _limit_turns(joint)
    for element in (*root.iter("mesh"), *root.iter("texture")):
        if filename := element.get("filename"):
            element.set("filename", str(mesh_path(filename, piece, path).absolute()))
    if piece.travel is not None:
        _add_travel(root, piece.travel)
    if piece.prefix or any("." in element.get("name", "") for element in root):
        for element in root:
            element.set("name", piece.prefix + _without_dots(element.get("name", "")))
            for child in element:
                if attribute := _LINK_OF.get(child.tag) if element.tag == "joint" else None:
                    child.set(attribute, piece.prefix + _without_dots(child.get(attribute, "")))
        for material in root.iter("material"):
            if material in list(root):
                continue
            material.set("name", piece.prefix + _without_dots(material.get("name", "")))
    return root


def _add_travel(root: Element, travel: BaseTravel) -> None:
    """Put the joints of a moving base below the first link."""
    links = ("base_origin", "base_x_link", "base_y_link", root_link(root))
    ranges = (("prismatic", "1 0 0", travel.x), ("prismatic", "0 1 0", travel.y), ("revolute", "0 0 1", travel.turn))
    for link in links[:3]:
        inertial = ElementTree.SubElement(ElementTree.SubElement(root, "link", name=link), "inertial")
        # Without a center of mass, USD computes one from colliders, and warns because these links have none.
        ElementTree.SubElement(inertial, "origin", xyz="0 0 0")
        ElementTree.SubElement(inertial, "mass", value="1e-3")
        ElementTree.SubElement(
            inertial, "inertia", {"ixx": "1e-6", "iyy": "1e-6", "izz": "1e-6", "ixy": "0", "ixz": "0", "iyz": "0"}
        )
    for name, parent, child, (kind, axis, (low, high)) in zip(BASE_JOINTS, links, links[1:], ranges, strict=False):
        joint = ElementTree.SubElement(root, "joint", name=name, type=kind)
        ElementTree.SubElement(joint, "parent", link=parent)
        ElementTree.SubElement(joint, "child", link=child)
        ElementTree.SubElement(joint, "axis", xyz=axis)
        limits = {"lower": f"{low}", "upper": f"{high}", "velocity": f"{travel.velocity}", "effort": f"{travel.effort}"}
        ElementTree.SubElement(joint, "limit", limits)


def _remove_below(root: Element, link: str, children: Mapping[str, Element]) -> None:
    """Remove a link and its descendants."""
    gone = {link} | {name for name in children if is_below(name, link, children)}
    for element in list(root):
        name = child_of(element) if element.tag == "joint" else element.get("name")
        if element.tag in ("link", "joint") and name in gone:
            root.remove(element)


def is_unlimited(joint: Element) -> bool:
    """Return True for a rotating joint without limits."""
    return joint.get("type") == "continuous" or (joint.get("type") == "revolute" and range_of(joint) is None)


def _limit_turns(joint: Element) -> None:
    """Limit an unlimited joint to two turns, because planners need limits."""
    limit = joint.find("limit")
    if limit is None:
        limit = ElementTree.SubElement(joint, "limit")
    joint.set("type", "revolute")
    limit.set("lower", f"{-2 * np.pi}")
    limit.set("upper", f"{2 * np.pi}")


def is_below(link: str, root: str, children: Mapping[str, Element]) -> bool:
    """Return True if a link is a descendant of another, given the joint above each link."""
    while link in children:
        link = parent_of(children[link])
        if link == root:
            return True
    return False


def mesh_path(filename: str, piece: Piece, urdf: Path) -> Path:
    """Return the path of a mesh or texture.

    ``package://name/…`` is in the package, or in a parent folder ``name`` of the URDF.
    """
    name, _, inside = filename.removeprefix("package://").partition("/")
    if not filename.startswith("package://"):
        return urdf.parent / filename.removeprefix("file://")
    if piece.package and name == piece.package:
        return package_folder(piece.package) / inside
    around = next((folder for folder in urdf.resolve().parents if folder.name == name), urdf.parent / name)
    return around / inside


def _fixed_joint(name: str, parent: str, child: str, parent_T_child: FloatArray) -> Element:
    joint = Element("joint", name=name, type="fixed")
    joint.append(Element("parent", link=parent))
    joint.append(Element("child", link=child))
    set_origin(joint, parent_T_child)
    return joint


def lock_joints(root: Element, positions: Mapping[str, float]) -> None:
    """Make joints rigid at a position [rad, m]."""
    for joint in root.findall("joint"):
        name = joint.get("name", "")
        if name not in positions:
            continue
        at, axis, value = origin_of(joint), axis_of(joint), positions[name]
        moved = np.eye(4)
        if joint.get("type") == "prismatic":
            moved[:3, 3] = axis * value
        else:
            moved[:3, :3] = quat_to_matrix(quat_from_axis_angle(axis, value))
        joint.set("type", "fixed")
        for tag in ("limit", "mimic", "axis", "dynamics", "safety_controller", "origin"):
            for element in joint.findall(tag):
                joint.remove(element)
        set_origin(joint, at @ moved)


def set_origin(element: Element, matrix: FloatArray) -> None:
    """Add the ``origin`` of a pose (4, 4); URDF rotates about fixed x, y and z axes, so the rotation is Rz Ry Rx."""
    pitch = float(np.arcsin(np.clip(-matrix[2, 0], -1.0, 1.0)))
    if abs(matrix[2, 0]) < 1.0 - 1e-9:
        roll, yaw = np.arctan2(matrix[2, 1], matrix[2, 2]), np.arctan2(matrix[1, 0], matrix[0, 0])
    else:
        roll, yaw = 0.0, np.arctan2(-matrix[0, 1], matrix[1, 1])
    text = " ".join(f"{value:.12g}" for value in matrix[:3, 3])
    element.append(Element("origin", xyz=text, rpy=f"{roll:.12g} {pitch:.12g} {yaw:.12g}"))


def _numbers(text: str) -> FloatArray:
    return np.array([float(value) for value in text.split()])


def origin_of(element: Element) -> FloatArray:
    """Return the (4, 4) pose of a URDF element."""
    origin, matrix = element.find("origin"), np.eye(4)
    if origin is not None:
        roll, pitch, yaw = _numbers(origin.get("rpy", "0 0 0"))
        turns = (
            quat_from_axis_angle(axis, angle)
            for axis, angle in (((0, 0, 1), yaw), ((0, 1, 0), pitch), ((1, 0, 0), roll))
        )
        for turn in turns:
            matrix[:3, :3] = matrix[:3, :3] @ quat_to_matrix(turn)
        matrix[:3, 3] = _numbers(origin.get("xyz", "0 0 0"))
    return matrix


def axis_of(joint: Element) -> FloatArray:
    """Return the unit axis (3,) of a joint in the joint's frame."""
    axis = joint.find("axis")
    vector = _numbers(axis.get("xyz", "1 0 0")) if axis is not None else np.array([1.0, 0.0, 0.0])
    return vector / max(float(np.linalg.norm(vector)), 1e-12)


def parent_of(joint: Element) -> str:
    """Return the parent link of a joint."""
    return _linked(joint, "parent")


def child_of(joint: Element) -> str:
    """Return the child link of a joint."""
    return _linked(joint, "child")


def _linked(joint: Element, tag: str) -> str:
    element = joint.find(tag)
    link = None if element is None else element.get("link")
    if not link:
        raise InputError(
            f"not a URDF: joint '{joint.get('name')}' has no {tag} link",
            where="robot: urdf",
            instead="add it to the joint",
        )
    return link


def limit_of(joint: Element, name: str) -> float | None:
    """Return a joint's ``lower``, ``upper``, ``velocity`` or ``effort``, if the URDF gives it."""
    limit = joint.find("limit")
    text = None if limit is None else limit.get(name)
    return None if text is None else float(text)


def range_of(joint: Element) -> tuple[float, float] | None:
    """Return lowest and highest position of a joint [rad, m]; an omitted bound is 0, the URDF default."""
    lower, upper = limit_of(joint, "lower"), limit_of(joint, "upper")
    return None if lower is None and upper is None else (lower or 0.0, upper or 0.0)


def speed_of(joint: Element) -> float:
    """Return the speed limit of a joint [rad/s, m/s]."""
    speed = limit_of(joint, "velocity")
    return SPEED["prismatic" if joint.get("type") == "prismatic" else "revolute"] if speed is None else speed


def effort_of(joint: Element) -> float:
    """Return the torque or force limit of a joint [N m, N]."""
    effort = limit_of(joint, "effort")
    return EFFORT if effort is None else effort


def ratio_of(joint: Element) -> float:
    """Return a joint's displacement per displacement of the joint that it mimics; 1 if it mimics none."""
    mimic = joint.find("mimic")
    return 1.0 if mimic is None else float(mimic.get("multiplier", "1"))
