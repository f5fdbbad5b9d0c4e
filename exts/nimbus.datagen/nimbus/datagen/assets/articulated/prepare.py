"""Preparation of an articulated asset: parts, joints, handles, masses, and a test in physics for each joint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets import stages
from nimbus.datagen.assets.articulated.contacts import contact_pieces
from nimbus.datagen.assets.articulated.free_motion import check_motion
from nimbus.datagen.assets.articulated.handles import PartSurface, find_handles, find_pressings
from nimbus.datagen.assets.articulated.joints import (
    JointPlan,
    decide_joint,
    hold_against_gravity,
    move_about,
    opening_way,
    turn_plan,
)
from nimbus.datagen.assets.articulated.links import LinkGeometry, Notebook, read_links
from nimbus.datagen.assets.articulated.sheet import LinkLook, lay_out_looks
from nimbus.datagen.assets.decisions import Decision, class_of, decide_category, decide_mass, decide_scale
from nimbus.datagen.assets.found import FoundAsset
from nimbus.datagen.errors import InputError
from nimbus.datagen.geometry.hulls import qhull
from nimbus.datagen.geometry.transforms import quat_from_axis_angle, quat_to_matrix
from nimbus.datagen.objects.imported.read import join_surfaces
from nimbus.datagen.objects.imported.rooms import find_rooms, name_rooms
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.model import MovingPart, RestPose
from nimbus.datagen.objects.prepared.shape_file import AssetShape
from nimbus.datagen.objects.shapes.contact import Piece, piece_triangles

_FRICTION = 0.7
_TURNS = {"-x": 0.0, "-y": -np.pi / 2, "x": np.pi, "y": np.pi / 2}
"""Rotation about z that turns a named side to -x [rad]."""
_FRONTS = {"partnet": "-x", "metaworld": "-y", "robosuite": "-x", "robocasa": "-y"}
"""Front side by layout, for layouts with a convention."""
_LEVEL = 0.3
"""Smallest horizontal length of a unit opening direction that indicates the front."""
_SWEEP = np.linspace(0.0, 1.0, 5)


def make_articulated(root: Path, asset: FoundAsset, book: Notebook) -> AssetShape | None:
    """Prepare an asset with joints; return None if no joint moves.

    Args:
        root: Folder of the source.
        asset: Recognized asset.
        book: Decisions of the user; receives the decisions of the import.

    Raises:
        InputError: The asset is unusable, or a decision of the user is invalid.
    """
    jammed: dict[str, str] = {}
    while True:
        moving = _decide_moves(asset, book, jammed)
        if not moving:
            return None
        shape, line = _attempt(root, asset, book, moving)
        if shape is not None:
            return shape
        jammed |= line
        book.notes += [f"{name}: {why}; it is fixed" for name, why in line.items()]


def _decide_moves(asset: FoundAsset, book: Notebook, jammed: Mapping[str, str]) -> list[str]:
    """Decide which parts move, and return their names."""
    for joint in asset.joints:
        name, flaw = f"{joint.link}.moves", jammed.get(joint.link, joint.flaw)
        value = "fixed" if flaw else joint.kind
        if name in book.given and joint.link not in jammed:
            book.decisions[name] = Decision(value=book.given[name], why="given")
        else:
            book.decisions[name] = Decision(value=value, why=flaw or "as the source states")
    moving = [joint.link for joint in asset.joints if book.decisions[f"{joint.link}.moves"].value != "fixed"]
    for joint in asset.joints:
        if joint.link in moving and joint.on in moving:
            what = f"{joint.link} is attached to {joint.on}; only one of them may move"
            raise InputError(
                what, instead=f"set decisions.{joint.on}.moves.value or decisions.{joint.link}.moves.value to fixed"
            )
    return moving


def _attempt(
    root: Path, asset: FoundAsset, book: Notebook, moving: list[str]
) -> tuple[AssetShape | None, dict[str, str]]:
    """Prepare the asset with some moving parts; return the shape, or None and the parts that fail in physics."""
    links = read_links(root, asset, book, moving)
    named, category = decide_category(asset, book.given)
    whole = join_surfaces([one for link in links.values() for one in link.seen], unit_is_known=False, up="z")
    given = dict(book.given)
    if asset.metres == 0.0 and category and "scale" not in given:  # PartNet scales every object to unit size
        usual = float(np.sqrt(category.long[0] * category.long[1])) / 100
        given["scale"] = float(f"{usual / np.ptp(whole.corners.reshape(-1, 3), axis=0).max():.6g}")
    scale = decide_scale(whole, asset, category, given)
    if "scale" not in book.given and "scale" in given:
        scale = replace(scale, why="the layout has no unit; scaled to the usual size of its category")
    book.decisions |= {"category": named, "scale": scale}
    book.decisions["class"] = _given(book, "class", class_of(category))
    most = _given(book, "pieces", Decision(value=stages.PIECES, why="upper bound for each mesh"))
    book.decisions["pieces"] = most
    size = np.diag([*(3 * [float(scale.value)]), 1.0])
    links = {name: link.move(size) for name, link in links.items()}
    for name, link in links.items():
        link.pieces = contact_pieces(link.seen, link.touched, most=int(most.value), path=root / asset.path)
        if not link.pieces:
            return None, {name: "encloses nothing"} if name else _no_base()
    plans = _plan_joints(asset, book, links, float(scale.value))
    links = {name: link.move(plans[name].closed_T_found) if name else link for name, link in links.items()}
    links, plans = _face_front(asset, book, links, plans)
    volumes = {name: sum(float(qhull(points).volume) for points, _ in link.pieces) for name, link in links.items()}
    longest = float(np.ptp(np.vstack([link.points() for link in links.values()]), axis=0).max())
    total = sum(volumes.values())
    mass = decide_mass(asset, category, volume=total, longest=longest, given=book.given)
    book.decisions["mass"] = mass
    usual = Decision(value=_FRICTION, why="usual for plastic and wood")
    book.decisions["friction"] = _given(book, "friction", usual)
    book.decisions["symmetry"] = Decision(value="none", why="it has a front")
    masses = {name: float(mass.value) * volume / total for name, volume in volumes.items()}
    looks = lay_out_looks({name: link.seen for name, link in links.items()})
    plans = {name: _held_plan(plans[name], links[name], masses[name], book) for name in moving}
    parts = [_part(plans[name], links[name], looks[name], masses[name]) for name in moving]
    for index, part in enumerate(parts):
        if line := check_motion(parts, index):
            return None, {part.name: line}
    taken = tuple(_with_holds(part, plans[part.name], links, book) for part in parts)
    return _shape(links, looks, taken, masses, plans, book), {}


def _no_base() -> dict[str, str]:
    raise InputError("the base encloses no volume", instead="give it a thickness and a volume")


def _given(book: Notebook, name: str, found: Decision) -> Decision:
    return Decision(value=book.given[name], why="given") if name in book.given else found


def _plan_joints(
    asset: FoundAsset, book: Notebook, links: dict[str, LinkGeometry], scale: float
) -> dict[str, JointPlan]:
    plans = {}
    for joint in asset.joints:
        if joint.link not in links:
            continue
        others = np.vstack([link.points() for name, link in links.items() if name != joint.link])
        plan, decided = decide_joint(joint, links[joint.link].points(), others, scale=scale, given=book.given)
        plans[joint.link] = plan
        book.decisions |= {f"{joint.link}.{name}": one for name, one in decided.items()}
    return plans


def _face_front(
    asset: FoundAsset, book: Notebook, links: dict[str, LinkGeometry], plans: dict[str, JointPlan]
) -> tuple[dict[str, LinkGeometry], dict[str, JointPlan]]:
    """Rotate the object so that its front faces -x, and shift the center of its base to the origin."""
    votes = np.zeros(2)
    for name, plan in plans.items():
        points = links[name].points()
        way = opening_way(plan, points) * (-1.0 if plan.role == "button" else 1.0)
        if plan.role == "lid" and abs(way[2]) > 0.7:
            way = points.mean(axis=0) - plan.joint.origin
        way = way / max(float(np.linalg.norm(way)), 1e-9)
        if plan.role != "control" and np.linalg.norm(way[:2]) > _LEVEL:
            votes += way[:2]
    found = None
    if np.linalg.norm(votes) > _LEVEL:
        axis = int(np.abs(votes).argmax())
        found = ("-" if votes[axis] < 0 else "") + "xy"[axis], "its parts open to this side"
    if side := _FRONTS.get(asset.layout):
        others = (found,) if found and found[0] != side else ()
        decision = Decision(value=side, why=f"usual for the layout {asset.layout}", others=others)
    else:
        decision = Decision(value=found[0], why=found[1]) if found else Decision(value="-x", why="no side opens")
    book.decisions["front"] = decision = _given(book, "front", decision)
    turn = quat_to_matrix(quat_from_axis_angle((0, 0, 1), _TURNS[str(decision.value)]))
    base = links[""].points() @ turn.T
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = turn, -(base.min(axis=0) + base.max(axis=0)) / 2
    turned = {name: turn_plan(plan, turn, place[:3, 3]) for name, plan in plans.items()}
    return {name: link.move(place) for name, link in links.items()}, turned


def _held_plan(plan: JointPlan, link: LinkGeometry, mass: float, book: Notebook) -> JointPlan:
    """Give a joint the friction or the spring that its part needs."""
    center, _ = mass_properties(*piece_triangles(tuple(link.pieces)), mass=mass, in_surface=False)
    start = f"{plan.name}."
    decided = {key.removeprefix(start): one for key, one in book.decisions.items() if key.startswith(start)}
    plan = hold_against_gravity(plan, decided, book.given, mass=mass, center=center)
    book.decisions |= {f"{start}{key}": one for key, one in decided.items()}
    return plan


def _part(plan: JointPlan, link: LinkGeometry, look: LinkLook, mass: float) -> MovingPart:
    """Build a moving part, without its handles."""
    origin = plan.joint.origin
    pieces = tuple((points - origin, faces) for points, faces in link.pieces)
    center, inertia = mass_properties(*piece_triangles(pieces), mass=mass, in_surface=False)
    rooms = _rooms(link.pieces) if plan.role == "drawer" else {}
    cavities = {room: box - origin for room, box in rooms.items()}
    return MovingPart(
        name=plan.name,
        vertices=look.vertices - origin,
        faces=look.faces,
        normals=look.normals,
        uvs=look.uvs,
        convex_pieces=pieces,
        mass=mass,
        center_of_mass=center,
        inertia=inertia,
        joint=plan.joint,
        frames=stages.find_mouths(cavities),
        cavities=cavities,
    )


def _with_holds(part: MovingPart, plan: JointPlan, links: dict[str, LinkGeometry], book: Notebook) -> MovingPart:
    """Find the handles and the pressing points of a part."""
    name, link = part.name, links[part.name]
    around = [piece for other, geometry in links.items() if other != name for piece in geometry.pieces]
    boxes = [link.seen[index].corners.reshape(-1, 3) for index in link.named]
    named = np.array([(box.min(axis=0), box.max(axis=0)) for box in boxes]).reshape(-1, 2, 3)
    surface = PartSurface(plan=plan, pieces=link.pieces, around=around, named=named)
    wanted = str(book.given.get(f"{name}.handle", "auto"))
    is_without = plan.role == "button" or wanted == "none"
    handles = () if is_without else find_handles(surface, place=_point(name, wanted))
    pressings = find_pressings(surface)
    why = "no handle that two fingers can grasp"
    if handles:
        place = " ".join(f"{value:.3f}" for value in handles[0].position)
        reason = "by its name" if len(named) or len(plan.holds) else "by its shape, far from the hinge"
        why = f"{place} [m], {1000 * handles[0].width:.0f} mm wide: {'given' if wanted != 'auto' else reason}"
    book.decisions[f"{name}.handle"] = Decision(value=wanted, why=why)
    unit = "m" if plan.joint.kind == "slide" else "rad"
    book.found[name] = (
        f"{plan.role}, {plan.joint.kind} of {plan.joint.range[1]:.3g} {unit}, {part.mass:.3g} kg,"
        f" {len(handles)} handles, {len(pressings)} pressing points; opens, closes and stays in place in physics"
    )
    here = part.joint.origin
    return replace(
        part,
        handles=tuple(replace(handle, position=handle.position - here) for handle in handles),
        pressings=tuple(replace(press, position=press.position - here) for press in pressings),
    )


def _point(name: str, text: str) -> FloatArray | None:
    if text in ("auto", "none"):
        return None
    try:
        x, y, z = (float(word) for word in text.split())
    except ValueError:
        what = f"decisions.{name}.handle: '{text}' is not a position"
        raise InputError(what, instead="write auto, none, or x y z in meters from the center of the base") from None
    return np.array((x, y, z))


def _rooms(pieces: list[Piece]) -> dict[str, FloatArray]:
    rooms = find_rooms(*piece_triangles(tuple(pieces)))
    return name_rooms(np.array([(room.lower, room.upper) for room in rooms]).reshape(-1, 2, 3))


def _shape(
    links: dict[str, LinkGeometry],
    looks: dict[str, LinkLook],
    parts: tuple[MovingPart, ...],
    masses: dict[str, float],
    plans: dict[str, JointPlan],
    book: Notebook,
) -> AssetShape:
    base, look = links[""], looks[""]
    lowest = float(base.points()[:, 2].min())
    for part in parts:
        joint = part.joint
        for position in joint.range[1] * _SWEEP:
            place = move_about(joint.kind, joint.axis, joint.origin, float(position))
            points = links[part.name].points() @ place[:3, :3].T + place[:3, 3]
            lowest = min(lowest, float(points[:, 2].min()))
    center, inertia = mass_properties(*piece_triangles(tuple(base.pieces)), mass=1.0, in_surface=False)
    is_lidded = any(plans[part.name].role == "lid" for part in parts)
    rooms = _rooms(base.pieces) if is_lidded else {}
    top = float(look.vertices[:, 2].max())
    x, y, z = (100 * np.ptp(np.vstack([link.points() for link in links.values()]), axis=0)).tolist()
    book.found |= {
        "size": f"{x:.3g} x {y:.3g} x {z:.3g} cm, closed",
        "mass": ", ".join(f"{name or 'base'} {mass:.3g} kg" for name, mass in masses.items()),
        "pieces": ", ".join(f"{name or 'base'} {len(link.pieces)}" for name, link in links.items()),
        "rooms": ", ".join([*rooms, *(f"{part.name}.{room}" for part in parts for room in part.cavities)]) or "none",
    }
    return AssetShape(
        vertices=look.vertices,
        faces=look.faces,
        normals=look.normals,
        uvs=look.uvs,
        texture=look.texture,
        center_of_mass=center,
        inertia=inertia,
        pieces=tuple(base.pieces),
        rest_poses=(RestPose(name="upright", wxyz=(1.0, 0.0, 0.0, 0.0), height=-lowest, tilt_margin=0.5),),
        keypoints={"top": np.array([0, 0, top]), "middle": np.zeros(3), "base": np.array([0, 0, lowest])},
        frames=stages.find_mouths(rooms),
        cavities=rooms,
        parts=parts,
    )
