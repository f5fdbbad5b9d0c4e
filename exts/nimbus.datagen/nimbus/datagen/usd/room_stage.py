"""USD stage of a generated room around the stage of its bench, cached between runs."""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.files.atomic import replacing
from nimbus.datagen.files.cache import cache_folder, writing
from nimbus.datagen.rooms.furnishing import Furnishing
from nimbus.datagen.rooms.kinds import KINDS
from nimbus.datagen.rooms.look import TextureSlot
from nimbus.datagen.rooms.modeling import Color, Patch
from nimbus.datagen.rooms.outdoors import paint_outdoors, palette_image
from nimbus.datagen.rooms.plan import Bench
from nimbus.datagen.rooms.room import ROOM_VERSION, Room, make_room
from nimbus.datagen.rooms.settings import RoomSettings
from nimbus.datagen.textures.procedural import procedural_texture
from nimbus.datagen.usd.stage_meshes import add_contact, add_mesh, keep_picture
from nimbus.datagen.version import versioned_hash

_REACH = 1.6
"""Distance from the mount of the bench within which geometry collides [m]; a robot cannot reach farther."""
_ROOT = "/World"


def room_identity(settings: RoomSettings, bench_hash: str) -> str:
    """Return the content hash of a room's stage, from the generator's version, the settings and the bench's content."""
    return versioned_hash(f"{settings.reference} {bench_hash}".encode(), ROOM_VERSION)


def room_file(settings: RoomSettings, *, bench: Bench, stage: Path, bench_hash: str, mount: FloatArray) -> Path:
    """Return the USD stage of a room, which is written on first use.

    Args:
        settings: Settings of the room.
        bench: Bench in the room.
        stage: The bench's own stage.
        bench_hash: Content hash of the bench.
        mount: (3,) position of the robot's mount [m].
    """
    place = versioned_hash(str(stage.absolute()).encode(), ROOM_VERSION)
    path = cache_folder("rooms") / f"{place}-{room_identity(settings, bench_hash)}.usdc"
    if not path.is_file():
        with writing(path.parent):
            made = _Stage(make_room(settings, bench), stage, path.parent, mount).made
            with replacing(path, durable=False, shared=True) as temporary:
                content = temporary.with_suffix(".usdc")
                made.GetRootLayer().Export(str(content))
                content.replace(temporary)
    return path


class _Stage:
    """Writer of one room: a prim per furnishing, with a mesh for each texture and boxes for collisions."""

    def __init__(self, room: Room, bench: Path, folder: Path, mount: FloatArray) -> None:
        from pxr import Usd, UsdGeom

        self._room, self._folder, self._mount = room, folder, mount
        self.made: Any = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageMetersPerUnit(self.made, 1.0)
        UsdGeom.SetStageUpAxis(self.made, UsdGeom.Tokens.z)
        self._refer(bench)
        colors = {color for one in room.furnishings for patch in one.patches if (color := self._color(patch))}
        self._colors = sorted({*colors, self._slot("wall"), self._slot("floor")})
        self._materials: dict[str, Any] = {}
        for one in room.furnishings:
            self._furnish(one)
        up = np.tile((0.0, 0.0, 1.0), (4, 1))
        faces = np.array([[0, 1, 2], [0, 2, 3]], dtype=np.int32)
        self._surface("floor_surface", "floor", [Patch("floor", room.floor, up, faces)])
        self._surface("walls", "backdrop", [_panel(corners, faces) for corners in room.walls])

    def _refer(self, bench: Path) -> None:
        """Reference the bench and hide its floor and walls; their collision geometry stays."""
        from pxr import Usd, UsdGeom, UsdPhysics, Vt

        root = UsdGeom.Xform.Define(self.made, _ROOT).GetPrim()
        self.made.SetDefaultPrim(root)
        source: Any = Usd.Stage.Open(str(bench))
        top = source.GetDefaultPrim() or next(iter(source.GetPseudoRoot().GetChildren()))
        root.GetReferences().AddReference(str(bench.absolute()), top.GetPath())
        root.SetCustomDataByKey("nimbus:classes", Vt.StringArray(sorted(KINDS)))
        for prim in self.made.Traverse():
            role = prim.GetCustomDataByKey("nimbus:role")
            if role in ("floor", "backdrop") and not prim.HasAPI(UsdPhysics.CollisionAPI):
                prim.SetActive(False)

    def _furnish(self, one: Furnishing) -> None:
        from pxr import UsdGeom

        path = f"{_ROOT}/room/{one.name}"
        prim = UsdGeom.Xform.Define(self.made, path).GetPrim()
        for key, value in (("role", "furnishing"), ("class", one.kind), ("shadow", one.casts_shadow)):
            prim.SetCustomDataByKey(f"nimbus:{key}", value)
        self._meshes(path, one.patches)
        nearest = np.clip(self._mount, one.bounds[0], one.bounds[1])
        if one.kind != "ceiling" and np.linalg.norm(nearest - self._mount) < _REACH:
            middle, extent = one.bounds.mean(axis=0), np.maximum(np.ptp(one.bounds, axis=0), 1e-3)
            add_contact(self.made, f"{path}/contact", middle, extent)

    def _surface(self, name: str, role: str, patches: list[Patch]) -> None:
        from pxr import UsdGeom

        path = f"{_ROOT}/room/{name}"
        UsdGeom.Xform.Define(self.made, path).GetPrim().SetCustomDataByKey("nimbus:role", role)
        self._meshes(path, patches)

    def _meshes(self, path: str, patches: list[Patch] | tuple[Patch, ...]) -> None:
        """Add one mesh for plain patches, and one per texture."""
        groups: dict[str, list[Patch]] = {}
        for patch in patches:
            groups.setdefault("" if self._color(patch) else str(patch.material), []).append(patch)
        for slot, group in groups.items():
            self._mesh(f"{path}/{slot or 'plain'}", group, slot)

    def _mesh(self, path: str, patches: list[Patch], slot: str) -> None:
        starts = np.cumsum([0, *(len(patch.vertices) for patch in patches[:-1])])
        add_mesh(
            self.made,
            path,
            points=np.concatenate([patch.vertices for patch in patches]),
            faces=np.concatenate([patch.faces + start for patch, start in zip(patches, starts, strict=True)]),
            normals=np.concatenate([patch.normals for patch in patches]),
            uvs=np.concatenate([self._uvs(patch, slot) for patch in patches]),
            material=self._material(slot),
        )

    def _uvs(self, patch: Patch, slot: str) -> FloatArray:
        """Return texture coordinates: cells of the palette, the whole image of the view outside, or a projection."""
        if not slot:
            u = (self._colors.index(self._color(patch)) + 0.5) / len(self._colors)
            return np.tile((u, 0.5), (len(patch.vertices), 1))
        axis = np.argmax(np.abs(patch.normals), axis=1)
        if slot == "outdoors":
            axis = np.full(len(axis), np.argmin(np.ptp(patch.vertices, axis=0)))
        across, along = np.array([1, 0, 0])[axis], np.array([2, 2, 1])[axis]
        rows = np.arange(len(axis))
        flat = np.column_stack([patch.vertices[rows, across], patch.vertices[rows, along]])
        if slot == "outdoors":
            return (flat - flat.min(axis=0)) / np.ptp(flat, axis=0)
        return flat / self._room.look.textures[slot].period

    def _slot(self, slot: str) -> Color:
        return self._room.look.colors.get(slot, (0.6, 0.58, 0.55))

    def _color(self, patch: Patch) -> Color | None:
        """Return the plain color of a patch; None if it has a texture."""
        if not isinstance(patch.material, str):
            return patch.material
        return None if patch.material in self._room.look.textures else self._slot(patch.material)

    def _material(self, slot: str) -> Any:
        from nimbus.datagen.objects.usd import add_looks

        if slot not in self._materials:
            name = slot or "plain"
            picture = keep_picture(
                self._folder, _image(self._room.look.textures[slot]) if slot else palette_image(self._colors)
            )
            self._materials[slot] = add_looks(self.made, f"{_ROOT}/room/{name}", picture)
        return self._materials[slot]


def _panel(corners: FloatArray, faces: Any) -> Patch:
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    return Patch("wall", corners, np.tile(normal / np.linalg.norm(normal), (4, 1)), faces)


def _image(texture: TextureSlot) -> ImageArray:
    return (
        paint_outdoors(texture.seed) if texture.name == "outdoors" else procedural_texture(texture.name, texture.seed)
    )
