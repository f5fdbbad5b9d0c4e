"""Conversion of MJCF robots to URDF, so that all other code reads one format."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.atomic import write_atomic
from nimbus.datagen.files.bounded import check_regular, read_bytes
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.files.limited_process import run_limited
from nimbus.datagen.geometry.transforms import make_transform, quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.robots.mjcf_copy import MjcfCopy
from nimbus.datagen.robots.model_folder import check_mjcf_files, model_folders
from nimbus.datagen.robots.urdf import EFFORT, SPEED, Element, set_origin

_LIGHT = (1e-3, 1e-6)
"""Mass [kg] and inertia [kg m²] of links between several joints of one body."""
_CONVERTED = 1 << 30
"""Limit of a converted file [bytes]."""
_HEAD = 1 << 16
"""Part of a file in which its root element begins [bytes]."""


def is_mjcf(path: Path) -> bool:
    """Return True if a file's root element is ``<mujoco>``."""
    parser: Any = ElementTree.XMLPullParser(events=("start",))
    try:
        check_regular(path)
        with path.open("rb") as file:
            parser.feed(file.read(_HEAD))
        return next(parser.read_events())[1].tag == "mujoco"
    except (ElementTree.ParseError, StopIteration, OSError, LookupError, ValueError, InputError):
        return False


def convert_to_urdf(path: Path, *, angles: str = "") -> Path:
    """Convert an MJCF file to a URDF in the cache, and return the path of the URDF.

    Links have the names and frames of the bodies. Free joints are omitted, because the base of a robot is fixed. Geoms
    without contact become visual; planes are omitted.

    Args:
        path: The file.
        angles: Unit of its angles, radian or degree, if only a file that includes it states the unit; otherwise empty.

    Raises:
        InputError: MuJoCo cannot read it, or it has ball joints.
    """
    with TemporaryDirectory(prefix="nimbus-mjcf-") as work:
        made = Path(work, f"{path.stem}.urdf")
        given = {"file": path, "target": str(made), "angles": angles}
        run_limited(f"{__name__}:convert_into", given, where=str(path), reads=model_folders(path), writes=[made.parent])
        return keep_urdf(made)


def keep_urdf(made: Path) -> Path:
    """Copy a URDF and the meshes in its folder into the cache, and return the path of the copy.

    The folder of the copies is named by their names and contents, so that a parser that a file has taken over cannot
    choose the folder, and so not stand for another robot.

    Raises:
        InputError: The URDF is missing, or a file cannot be read.
    """
    meshes = sorted(file for file in made.parent.iterdir() if file != made)
    contents = {file.name: read_bytes(file, limit=_CONVERTED, follow=False) for file in (*meshes, made)}
    parts = (part for name, content in contents.items() for part in (os.fsencode(name), content))
    digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts))
    folder = cache_folder("mjcf") / digest.hexdigest()[:32]
    target = folder / made.name
    if not target.is_file():
        with writing(folder.parent):
            folder.mkdir(exist_ok=True)
            for name, content in contents.items():  # the URDF last
                write_atomic(folder / name, content, durable=False, shared=True)
    return target


def convert_into(file: str, target: str, angles: str = "") -> None:
    """Convert an MJCF file to a URDF, with its meshes beside it; this is called in a separate process.

    Raises:
        InputError: MuJoCo cannot read it, it has ball joints, or it names a file outside of the robot's folder.
    """
    path = Path(os.path.abspath(file))
    with TemporaryDirectory() as folder:
        copy = MjcfCopy(check_mjcf_files(path), Path(folder))
        try:
            model: Any = _read(path, copy, angles)
        except (ValueError, RuntimeError) as error:
            # MuJoCo raises RuntimeError when memory is too small for an array. Lines of the copy are not of the file.
            reason = re.sub(r", line \d+", "", copy.original(" ".join(str(error).split())))
            raise InputError(
                f"not an MJCF that MuJoCo reads: {reason}",
                where=str(path),
                instead="correct the file until MuJoCo's viewer opens it",
            ) from None
    root = Element("robot", name="mjcf")
    conversion = _Conversion(model, root)
    conversion.convert(where=str(path))
    conversion.write(Path(target))


def _read(path: Path, copy: MjcfCopy, angles: str) -> Any:
    """Compile a copy of an MJCF; with ``angles``, as a part of a model, where asset names may be repeated."""
    from nimbus.datagen.geometry.mujoco_library import mujoco

    place = copy.place(path)
    if angles:
        root = ElementTree.parse(place).getroot()
        _drop_repeated(root)
        compiler = root.find("compiler")
        if compiler is None:
            compiler = ElementTree.SubElement(root, "compiler")
        compiler.set("angle", compiler.get("angle", angles))
        copy.write(path, root)
    return mujoco.MjModel.from_xml_path(str(place))


def _drop_repeated(root: Element) -> None:
    """Remove assets that have the name of an earlier asset."""
    seen: set[tuple[str, str]] = set()
    for assets in root.findall("asset"):
        for asset in list(assets):
            key = asset.tag, asset.get("name", asset.get("file", ""))
            if key in seen:
                assets.remove(asset)
            seen.add(key)


@dataclass
class _Conversion:
    model: Any
    root: Element

    def __post_init__(self) -> None:
        self.meshes: dict[str, tuple[FloatArray, NDArray[np.int64]]] = {}
        """Vertices [m] and faces by file name."""

    def convert(self, *, where: str) -> None:
        model = self.model
        for joint in range(model.njnt):
            if model.jnt_type[joint] == 1:  # mjJNT_BALL
                what = f"joint '{self._name('joint', joint)}' is a ball joint"
                raise InputError(what, where=where, instead="replace it by three hinges")
        first = self._base()
        for body in range(first, model.nbody):
            self._link(body)
            if body > first:
                self._joints(body)
        self._mimics()

    def write(self, target: Path) -> None:
        import trimesh

        for mesh, (vertices, faces) in self.meshes.items():
            trimesh.Trimesh(vertices, faces, process=False).export(target.with_name(mesh), file_type="stl")
        ElementTree.indent(self.root)
        target.write_bytes(ElementTree.tostring(self.root))

    def _base(self) -> int:
        """Return the root body: the only body on the world if it has the world's frame, or else the world (0)."""
        model = self.model
        solid = [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] == 0 and model.geom_type[geom] != 0]
        on_world = [body for body in range(1, model.nbody) if model.body_parentid[body] == 0]
        alone = not solid and len(on_world) == 1 and not self._moves(on_world[0])
        same = alone and np.allclose(
            make_transform(model.body_pos[on_world[0]], model.body_quat[on_world[0]]), np.eye(4)
        )
        return int(same)

    def _moves(self, body: int) -> list[int]:
        """Return the joints of a body, without free joints."""
        first, count = self.model.body_jntadr[body], self.model.body_jntnum[body]
        return [joint for joint in range(first, first + count) if self.model.jnt_type[joint] != 0]

    def _name(self, kind: str, index: int) -> str:
        return getattr(self.model, kind)(index).name.replace("/", "_") or f"{kind}_{index}"

    def _link(self, body: int) -> None:
        model, link = self.model, ElementTree.SubElement(self.root, "link", name=self._name("body", body))
        mass, moments = float(model.body_mass[body]), model.body_inertia[body]
        if mass > 0.0 and body > 0:
            _inertial(link, mass, moments, make_transform(model.body_ipos[body], model.body_iquat[body]))
        geoms = [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] == body and model.geom_type[geom] != 0]
        solid = [geom for geom in geoms if model.geom_contype[geom] or model.geom_conaffinity[geom]]
        for tag, some in (("visual", [g for g in geoms if g not in solid] or solid), ("collision", solid)):
            for geom in some:
                self._geom(link, tag, geom)

    def _geom(self, link: Element, tag: str, geom: int) -> None:
        model = self.model
        place = make_transform(model.geom_pos[geom], model.geom_quat[geom])
        for number, (shift, shape) in enumerate(self._shapes(geom)):
            element = ElementTree.SubElement(link, tag, name=f"{tag}_{geom}_{number}")
            set_origin(element, place @ make_transform((0.0, 0.0, shift), (1.0, 0.0, 0.0, 0.0)))
            ElementTree.SubElement(element, "geometry").append(shape)
            if tag == "visual":
                material = int(model.geom_matid[geom])
                rgba = model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]
                paint = ElementTree.SubElement(element, "material", name=f"paint_{geom}")
                ElementTree.SubElement(paint, "color", rgba=_text(rgba))

    def _shapes(self, geom: int) -> Iterator[tuple[float, Element]]:
        """Yield the URDF shapes of a geom, each with its position along the geom's z axis [m]."""
        from nimbus.datagen.geometry.mujoco_library import mujoco

        model, kind = self.model, int(self.model.geom_type[geom])
        radius, half, depth = (float(value) for value in model.geom_size[geom])
        if kind == mujoco.mjtGeom.mjGEOM_BOX:
            yield 0.0, Element("box", size=_text((2 * radius, 2 * half, 2 * depth)))
        elif kind == mujoco.mjtGeom.mjGEOM_SPHERE:
            yield 0.0, Element("sphere", radius=f"{radius:.9g}")
        elif kind in (mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_CAPSULE):
            yield 0.0, Element("cylinder", radius=f"{radius:.9g}", length=f"{2 * half:.9g}")
            for end in (-half, half) if kind == mujoco.mjtGeom.mjGEOM_CAPSULE else ():
                yield end, Element("sphere", radius=f"{radius:.9g}")
        elif kind == mujoco.mjtGeom.mjGEOM_MESH:
            yield 0.0, self._mesh(int(model.geom_dataid[geom]))

    def _mesh(self, mesh: int) -> Element:
        model, name = self.model, f"mesh_{mesh}.stl"
        first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        face, faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
        vertices = np.array(model.mesh_vert[first : first + count], dtype=float)
        self.meshes[name] = vertices, np.array(model.mesh_face[face : face + faces], dtype=np.int64)
        return Element("mesh", filename=name)

    def _joints(self, body: int) -> None:
        """Convert the joints between a body and its parent.

        Several joints, or a joint away from the body's origin, need additional links.
        """
        model, name = self.model, self._name("body", body)
        parent = self._name("body", int(model.body_parentid[body]))
        # This is the pose of the body relative to the last link made.
        here = make_transform(model.body_pos[body], model.body_quat[body])
        moves = self._moves(body)
        for joint in moves:
            anchor, axis = make_transform(model.jnt_pos[joint], (1.0, 0.0, 0.0, 0.0)), np.array(model.jnt_axis[joint])
            last = joint == moves[-1] and not np.any(model.jnt_pos[joint])
            child = name if last else f"{name}_{self._name('joint', joint)}"
            self._joint(joint, parent, child, here @ anchor, axis)
            if last:
                return
            link = ElementTree.SubElement(self.root, "link", name=child)
            _inertial(link, _LIGHT[0], np.full(3, _LIGHT[1]), np.eye(4))
            parent, here = child, np.asarray(np.linalg.inv(anchor), dtype=np.float64)
        fixed = self._connection("fixed", f"{parent}_to_{name}", parent, name)
        set_origin(fixed, here)

    def _connection(self, kind: str, name: str, parent: str, child: str) -> Element:
        joint = ElementTree.SubElement(self.root, "joint", name=name, type=kind)
        joint.append(Element("parent", link=parent))
        joint.append(Element("child", link=child))
        return joint

    def _joint(self, joint: int, parent: str, child: str, place: FloatArray, axis: FloatArray) -> None:
        model, slides = self.model, self.model.jnt_type[joint] == 2  # mjJNT_SLIDE
        limited = bool(model.jnt_limited[joint])
        kind = "prismatic" if slides else "revolute" if limited else "continuous"
        element = self._connection(kind, self._name("joint", joint), parent, child)
        start = float(model.qpos0[model.jnt_qposadr[joint]])  # position of the joint in the pose of the file
        back = np.eye(4)
        if slides:
            back[:3, 3] = -start * axis
        else:
            back[:3, :3] = quat_to_matrix(quat_from_axis_angle(axis, -start))
        set_origin(element, place @ back)
        element.append(Element("axis", xyz=_text(axis)))
        limit = {"effort": f"{self._effort(joint):.6g}", "velocity": f"{SPEED['prismatic' if slides else 'revolute']}"}
        if limited:
            low, high = (float(value) for value in model.jnt_range[joint])
            limit |= {"lower": f"{low:.9g}", "upper": f"{high:.9g}"}
        element.append(Element("limit", limit))

    def _effort(self, joint: int) -> float:
        """Return the largest force of the joint, from its own limit or its actuators [N m or N]."""
        model = self.model
        if model.jnt_actfrclimited[joint]:
            return float(np.abs(model.jnt_actfrcrange[joint]).max())
        forces = [
            float(np.abs(model.actuator_forcerange[at]).max() * abs(model.actuator_gear[at, 0]))
            for at in range(model.nu)
            if model.actuator_trnid[at, 0] == joint
            and model.actuator_trntype[at] == 0
            and model.actuator_forcelimited[at]
        ]
        return max(forces, default=EFFORT)

    def _mimics(self) -> None:
        """Add ``<mimic>`` to each joint that an equality constraint couples to another joint."""
        model = self.model
        joints = {element.get("name"): element for element in self.root.findall("joint")}
        for equality in range(model.neq):
            follower, leader = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
            if model.eq_type[equality] == 2 and leader >= 0:  # mjEQ_JOINT
                ratio = {"joint": self._name("joint", leader), "multiplier": f"{model.eq_data[equality, 1]:.9g}"}
                joints[self._name("joint", follower)].append(Element("mimic", ratio))


def _inertial(link: Element, mass: float, moments: FloatArray, place: FloatArray) -> None:
    inertial = ElementTree.SubElement(link, "inertial")
    set_origin(inertial, place)
    inertial.append(Element("mass", value=f"{mass:.9g}"))
    values = dict(zip(("ixx", "iyy", "izz"), (f"{float(value):.9g}" for value in moments), strict=True))
    inertial.append(Element("inertia", values | {"ixy": "0", "ixz": "0", "iyz": "0"}))


def _text(values: Iterable[float]) -> str:
    return " ".join(f"{float(value):.9g}" for value in values)
