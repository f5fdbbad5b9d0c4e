"""Preparation of one asset in a child process: read, decide, repair, decompose, find rest poses, and write."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.assets import stages
from nimbus.datagen.assets.annotate import describe
from nimbus.datagen.assets.articulated.links import Notebook
from nimbus.datagen.assets.articulated.prepare import make_articulated
from nimbus.datagen.assets.card import Additions, card_text
from nimbus.datagen.assets.color_names import measure_colors
from nimbus.datagen.assets.decisions import (
    Decision,
    Value,
    class_of,
    decide_category,
    decide_mass,
    decide_scale,
    flat,
)
from nimbus.datagen.assets.found import FoundAsset, found_from_plain
from nimbus.datagen.assets.grasp_trials import try_grasps
from nimbus.datagen.assets.pages import write_page
from nimbus.datagen.assets.read_parts import read_part
from nimbus.datagen.errors import InputError
from nimbus.datagen.objects.imported.read import join_surfaces
from nimbus.datagen.objects.imported.surface import ImportedSurface
from nimbus.datagen.objects.mass import mass_properties
from nimbus.datagen.objects.prepared.index import CARD_NAME, SHAPE_NAME, AssetEntry
from nimbus.datagen.objects.prepared.library import build_model
from nimbus.datagen.objects.prepared.shape_file import AssetShape, shape_bytes
from nimbus.datagen.objects.shapes.shape import frame_at
from nimbus.datagen.robots.robot_file import read_robot

_FRICTION = 0.7
GRASPING_ROBOT = "panda"
"""Robot whose gripper is used in grasp trials. For a gripper of another size, grasps are computed at each pick."""


def prepare_asset(
    root: str, asset: dict[str, Any], entry: dict[str, Any], given: dict[str, Value], add: dict[str, Any], target: str
) -> dict[str, Any]:
    """Prepare one asset in a new folder; an error is recorded in its entry.

    Args:
        root: Folder of the source.
        asset: Plain values of :class:`FoundAsset`.
        entry: Known fields of :class:`AssetEntry`.
        given: Decisions of the user.
        add: Points, frames and cavities of the user.
        target: New folder for the files.

    Returns:
        Plain values of the entry, and the CPU time [s].
    """
    begin = time.process_time()
    job = _Job(Path(root), found_from_plain(asset), given, Additions.model_validate(add, strict=False))
    known = AssetEntry(**entry)
    folder = Path(target)
    folder.mkdir(parents=True)
    shape, refused, model = b"", "", None
    try:
        if job.asset.refused:
            raise InputError(job.asset.refused, instead="")
        made = job.make()
        known = replace(known, **job.entry_fields(made))
        if not made.parts:  # no grasp trials for assets with moving parts: they are fixed in place
            trials = try_grasps(build_model("", known, made), read_robot(GRASPING_ROBOT).gripper)
            made, job.found["grasps"] = replace(made, grasps=trials.grasps), trials.summary
            held = sum(one.holds for one in trials.grasps)
            known = replace(known, grasps=held, not_graspable=trials.not_graspable)
        words = describe(known)
        known = replace(known, caption=words.caption, synonyms=words.synonyms)
        job.found["caption"] = words.caption
        shape = shape_bytes(made)
        (folder / SHAPE_NAME).write_bytes(shape)
        model = build_model("", known, made)
    except InputError as error:
        refused = error.what + (f"; {error.instead}" if error.instead else "")
        if not job.asset.refused:
            job.decisions.setdefault("scale", Decision(value=1.0, why="not decided"))
    decisions = job.decisions | {"license": job.license(known.license)}
    write_page(
        folder,
        known.kind,
        f"{known.source}: {known.path}",
        model=model,
        refused=refused,
        decisions=decisions,
        found=job.found,
        notes=job.notes,
    )
    card = card_text(
        known.kind,
        job.asset,
        source=known.source,
        decisions=decisions,
        found=job.found,
        notes=tuple(job.notes),
        add=job.add,
        refused=refused,
    ).encode()
    (folder / CARD_NAME).write_bytes(card)
    automatic = {name: one.value for name, one in job.decisions.items() if name not in given}
    known = replace(
        known,
        refused=refused,
        notes=tuple(job.notes),
        card=hashlib.sha256(card).hexdigest(),
        shape=hashlib.sha256(shape).hexdigest() if shape else "",
        automatic=known.automatic | automatic,
    )
    return {"entry": asdict(known), "seconds": time.process_time() - begin}


class _Job:
    """State of the preparation of one asset.

    Args:
        root: Folder of the source.
        asset: Recognized asset.
        given: Decisions of the user.
        add: Additions of the user.
    """

    def __init__(self, root: Path, asset: FoundAsset, given: dict[str, Value], add: Additions) -> None:
        self.root, self.asset, self.given, self.add = root.resolve(), asset, given, add
        self.decisions: dict[str, Decision] = {}
        self.found: dict[str, str] = {}
        self.notes = list(asset.notes)
        self._volume = 0.0

    def make(self) -> AssetShape:
        """Run the stages of the preparation.

        Raises:
            InputError: The asset is unusable.
        """
        asset, given = self.asset, self.given
        path = self.root / asset.path
        if asset.joints:
            book = Notebook(given, self.decisions, self.found, self.notes)
            if shape := make_articulated(self.root, asset, book):
                added = {name: np.array([box.lower, box.upper]) for name, box in self.add.cavities.items()}
                return replace(shape, cavities=shape.cavities | added)
        surface = self._read()
        self.notes += [note for note in surface.notes if note not in self.notes]
        named, category = decide_category(asset, given)
        self.decisions["category"] = named
        self.decisions["class"] = self._given("class", class_of(category))
        self.decisions["scale"] = scale = decide_scale(surface, asset, category, given)
        self.decisions["up"] = up = stages.decide_up(
            surface, asset, given, scale=float(scale.value), category=str(named.value), path=path
        )
        surface = surface.upright(str(up.value)).scaled(float(scale.value))
        extent = np.ptp(surface.corners.reshape(-1, 3), axis=0)
        if flat(extent):
            raise InputError(f"is flat: {_sides(extent)}", instead="give it a thickness and a volume")
        middle = (surface.corners.reshape(-1, 3).min(axis=0) + surface.corners.reshape(-1, 3).max(axis=0)) / 2
        surface = replace(surface, corners=surface.corners - middle)
        solid, notes = stages.close_surface(surface, path)
        self.notes += notes
        self._volume = solid.volume
        mass = decide_mass(asset, category, volume=solid.volume, longest=float(extent.max()), given=given)
        self.decisions["mass"] = mass
        self.decisions["friction"] = self._given(
            "friction", Decision(value=_FRICTION, why="usual for plastic, paper and fruit")
        )
        self.decisions["symmetry"] = self._given("symmetry", stages.decide_symmetry(solid))
        most = self._given("pieces", Decision(value=stages.PIECES, why="upper bound; fewer if they fit"))
        self.decisions["pieces"] = most
        look, contact = stages.make_looks(surface, solid), stages.cut_pieces(solid, int(most.value), path)
        center, inertia = mass_properties(solid.points, solid.faces, mass=1.0, in_surface=False)
        rests, rooms = stages.find_rest_poses(contact.pieces, center, inertia), stages.find_rooms(solid)
        height = float(extent[2]) / 2
        ends = {"top": np.array([0, 0, height]), "middle": np.zeros(3), "base": np.array([0, 0, -height])}
        frames = stages.find_mouths(rooms)
        frames |= {name: frame_at(np.array(at.at), z=at.z, x=at.x) for name, at in self.add.frames.items()}
        added = {name: np.array([box.lower, box.upper]) for name, box in self.add.cavities.items()}
        self.found |= {
            "size": _sides(extent),
            "volume": f"{solid.volume * 1e6:.4g} cm³, {stages.hull_share(solid):.0%} of its hull",
            "pieces": f"{len(contact.pieces)}, {contact.growth:.2f} x its volume, {contact.filled:.0%} of rooms full",
            "looks": f"{len(look.mesh.faces)} triangles, images differ by {look.error:.1f} gray levels",
            "supports": stages.describe_supports(solid),
            "rests": ", ".join(f"{pose.name} {np.rad2deg(pose.tilt_margin):.0f}°" for pose in rests),
            "rooms": ", ".join(rooms) or "none",
        }
        return AssetShape(
            **{name: getattr(look.mesh, name) for name in ("vertices", "faces", "normals", "uvs", "texture")},
            center_of_mass=center,
            inertia=inertia,
            pieces=contact.pieces,
            rest_poses=rests,
            keypoints=ends | {name: np.array(point) for name, point in self.add.keypoints.items()},
            frames=frames,
            cavities=rooms | added,
        )

    def entry_fields(self, shape: AssetShape) -> dict[str, Any]:
        """Return the fields of the entry that depend on the preparation."""
        values = {name: decision.value for name, decision in self.decisions.items()}
        x, y, z = np.ptp(shape.vertices, axis=0).tolist()
        return {
            "object_class": _identifier(str(values["class"])),
            "category": str(values["category"]),
            "color_names": measure_colors(shape),
            "size": (x, y, z),
            "mass": float(values["mass"]),
            "friction": float(values["friction"]),
            "symmetry": str(values["symmetry"]),
            "rests": tuple(pose.name for pose in shape.rest_poses),
            "rooms": tuple(shape.cavities),
            "joints": tuple(part.name for part in shape.parts),
            "anchored": bool(shape.parts),
        }

    def license(self, name: str) -> Decision:
        """Return the license as a decision."""
        why = (
            "given"
            if "license" in self.given
            else "from --license, or else from the nearest license file or the wheel"
            if name
            else "none is stated"
        )
        return Decision(value=name, why=why)

    def _given(self, name: str, found: Decision) -> Decision:
        return Decision(value=self.given[name], why="given") if name in self.given else found

    def _read(self) -> ImportedSurface:
        """Read all visual parts into one surface, in the unit and with the up axis of the asset."""
        parts = [read_part(self.root, part) for part in self.asset.parts if not part.is_touched]
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        joined = join_surfaces(parts, metres=first.metres, unit_is_known=first.unit_is_known, up=first.up)
        return replace(joined, notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)))


def _sides(extent: FloatArray) -> str:
    return " x ".join(f"{100 * side:.3g}" for side in extent.tolist()) + " cm"


def _identifier(text: str) -> str:
    name = "_".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())
    return name if name[:1].isalpha() else f"class_{name}"
