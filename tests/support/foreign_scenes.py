"""A furnished room in the formats and with the file names of published scene datasets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from trimesh.visual import TextureVisuals
from trimesh.visual.material import PBRMaterial

from nimbus.datagen.arrays import AnyArray, FloatArray
from tests.support.splat_room import outward_box

WALLS, CHAIR, TABLE = "walls", "chair", "table"
Y_UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
"""Rotation from the world to a y-up file, (x, y, z) -> (x, z, -y)."""


def room_things() -> dict[str, FloatArray]:
    """Return faces of the shell (visible from inside), two chairs and a table by name, z up [m]."""
    shell = outward_box((0.0, 0.0, 0.0), (5.0, 4.0, 2.5))[:, ::-1]
    return {
        WALLS: shell,
        "chair.001": outward_box((1.0, 1.0, 0.0), (1.5, 1.5, 0.9)),
        "chair.002": outward_box((3.5, 1.0, 0.0), (4.0, 1.5, 0.9)),
        TABLE: outward_box((2.2, 2.8, 0.0), (3.4, 3.6, 0.7)),
    }


def colored(corners: FloatArray, color: tuple[int, int, int]) -> trimesh.Trimesh:
    faces = np.arange(3 * len(corners)).reshape(-1, 3)
    paint = np.tile((*color, 255), (3 * len(corners), 1)).astype(np.uint8)
    return trimesh.Trimesh(corners.reshape(-1, 3), faces, vertex_colors=paint, process=False)


def write_glb(path: Path, things: dict[str, FloatArray], turn: AnyArray = Y_UP) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    scene = trimesh.Scene()
    for number, (name, corners) in enumerate(things.items()):
        mesh = colored(corners @ np.asarray(turn).T, (40 * number + 60, 120, 90))
        scene.add_geometry(mesh, node_name=name, geom_name=name)
    scene.export(path)
    return path


def write_plain_glb(path: Path) -> Path:
    """Write the room with only material colors, as modeling programs do."""
    scene = trimesh.Scene()
    for name, corners in room_things().items():
        mesh = colored(corners @ Y_UP.T, (0, 0, 0))
        material = PBRMaterial(baseColorFactor=[200, 60, 40, 255])
        mesh.visual = TextureVisuals(material=material)
        scene.add_geometry(mesh, node_name=name, geom_name=name)
    scene.export(path)
    return path


def write_hm3d(folder: Path) -> Path:
    """Write ``00800-TEEsavR23oF/TEEsavR23oF.glb`` with its semantic mesh and table; z up, as in HM3D."""
    things, where = room_things(), folder / "00800-TEEsavR23oF"
    joined = {"mesh": np.concatenate(list(things.values()))}
    path = write_glb(where / "TEEsavR23oF.glb", joined, np.eye(3))
    scene, lines = trimesh.Scene(), ["HM3D Semantic Annotations"]
    for number, (name, corners) in enumerate(things.items()):
        color = (10 * number + 5, 200 - 30 * number, 77)
        scene.add_geometry(colored(corners, color), node_name=f"m{number}", geom_name=f"m{number}")
        lines.append(f'{number + 1},{bytes(color).hex().upper()},"{name.split(".")[0]}",3')
    scene.export(path.with_name("TEEsavR23oF.semantic.glb"))
    path.with_name("TEEsavR23oF.semantic.txt").write_text("\n".join(lines) + "\n")
    return path


def write_scannet(folder: Path) -> Path:
    """Write ``scene0000_00_vh_clean_2.ply`` with segments and their groups."""
    things, where = room_things(), folder / "scene0000_00"
    where.mkdir(parents=True)
    path = where / "scene0000_00_vh_clean_2.ply"
    mesh = trimesh.util.concatenate([colored(corners, (90, 120, 60)) for corners in things.values()])
    mesh.export(path)
    segments = np.repeat(np.arange(len(things)) * 5, [3 * len(corners) for corners in things.values()])
    path.with_name("scene0000_00_vh_clean_2.0.010000.segs.json").write_text(
        json.dumps({"sceneId": "scene0000_00", "segIndices": segments.tolist()})
    )
    groups = [
        {"id": number - 1, "objectId": number - 1, "segments": [5 * number], "label": name.split(".")[0]}
        for number, name in enumerate(things)
        if number
    ]
    path.with_name("scene0000_00.aggregation.json").write_text(json.dumps({"segGroups": groups}))
    return path


def write_replica(folder: Path) -> Path:
    """Write ``room_0/mesh.ply`` with ``habitat/mesh_semantic.ply`` of quads and ``info_semantic.json``."""
    things, where = room_things(), folder / "room_0"
    (where / "habitat").mkdir(parents=True)
    colored(np.concatenate(list(things.values())), (90, 120, 60)).export(where / "mesh.ply")
    vertices, faces = [], []
    for number, corners in enumerate(things.values()):
        for one, other in zip(corners[: len(corners) // 2], corners[len(corners) // 2 :], strict=True):
            # The box's faces are halves (a, b, c) and (a, c, d), or inverted ones (c, b, a) and (d, c, a).
            quad = [*one, other[2]] if np.allclose(one[0], other[0]) else [*one, other[0]]
            quad = quad if np.allclose(one[0], other[0]) else [one[0], one[1], one[2], other[0]]
            faces.append((len(vertices), number))
            vertices += quad
    lines = ["ply", "format binary_little_endian 1.0", f"element vertex {len(vertices)}"]
    lines += [f"property float {axis}" for axis in "xyz"] + [
        f"property uchar {name}" for name in ("red", "green", "blue")
    ]
    lines += [
        f"element face {len(faces)}",
        "property list uchar int vertex_indices",
        "property int object_id",
        "end_header",
    ]
    content = b"".join(np.array(v, "<f4").tobytes() + bytes((90, 120, 60)) for v in vertices)
    content += b"".join(
        b"\x04" + np.arange(start, start + 4, dtype="<i4").tobytes() + np.int32(number).tobytes()
        for start, number in faces
    )
    (where / "habitat" / "mesh_semantic.ply").write_bytes("\n".join([*lines, ""]).encode() + content)
    names = [name.split(".")[0] for name in things]
    classes = [{"id": number + 1, "name": name} for number, name in enumerate(dict.fromkeys(names))]
    ids = {entry["name"]: entry["id"] for entry in classes}
    objects = [{"id": number, "class_id": ids[name]} for number, name in enumerate(names)]
    info = {"classes": classes, "objects": objects}
    (where / "habitat" / "info_semantic.json").write_text(json.dumps(info))
    return where / "mesh.ply"


def write_hssd(folder: Path) -> Path:
    """Write ``scenes/102343992.scene_instance.json`` with ``stages``, ``objects/a`` and ``semantics/objects.csv``."""
    things = room_things()
    write_glb(folder / "stages" / "102343992.glb", {"floor_and_walls": things[WALLS]})
    chair, table = "a1b2c3", "beef01"
    box = outward_box((-0.25, -0.25, 0.0), (0.25, 0.25, 0.9))
    write_glb(folder / "objects" / "a" / f"{chair}.glb", {"mesh": box})
    write_glb(folder / "objects" / f"{table}.glb", {"mesh": outward_box((-0.6, -0.4, 0.0), (0.6, 0.4, 0.7))})
    (folder / "semantics").mkdir()
    (folder / "semantics" / "objects.csv").write_text(
        f"id,name,main_category\n{chair},x,chair\n{table},y,dining table\n"
    )
    objects: list[dict[str, Any]] = [
        {"template_name": chair, "translation": [1.25, 0.0, -1.25], "rotation": [1, 0, 0, 0]},
        {"template_name": chair, "translation": [3.75, 0.0, -1.25], "rotation": [0.7071068, 0, 0.7071068, 0]},
        {"template_name": table, "translation": [2.8, 0.0, -3.2], "non_uniform_scale": [1, 1, 1]},
    ]
    path = folder / "scenes" / "102343992.scene_instance.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"stage_instance": {"template_name": "stages/102343992"}, "object_instances": objects}))
    return path


def write_front(folder: Path) -> Path:
    """Write ``3D-FRONT/HOUSE.json``, with one chair that has a model and a table that has only a size."""
    things, meshes = room_things(), []
    shell = things[WALLS]
    level = np.abs(np.cross(shell[:, 1] - shell[:, 0], shell[:, 2] - shell[:, 0])[:, 2]) > 1e-6
    kinds = {"Floor": level & (shell[:, :, 2].max(axis=1) < 0.1), "Ceiling": level & (shell[:, :, 2].min(axis=1) > 1)}
    kinds["WallInner"] = ~level
    for kind, rows in kinds.items():
        corners = shell[rows] @ Y_UP.T
        meshes.append(
            {"uid": kind, "type": kind, "xyz": corners.ravel().tolist(), "faces": list(range(3 * int(rows.sum())))}
        )
    furniture = [
        {"uid": "f1", "jid": "0a-b", "category": "Dining Chair", "size": [0.5, 0.9, 0.5]},
        {"uid": "f2", "jid": "missing", "title": "table/dining table", "size": [1.2, 0.7, 0.8]},
    ]
    still = {"rot": [0, 0, 0, 1], "scale": [1, 1, 1]}
    children = [{"ref": mesh["uid"], "pos": [0, 0, 0], **still} for mesh in meshes]
    children += [{"ref": "f1", "pos": [1.25, 0, -1.25], **still}, {"ref": "f2", "pos": [2.8, 0, -3.2], **still}]
    room = {"type": "LivingDiningRoom", "instanceid": "LivingDiningRoom-1", "children": children}
    path = folder / "3D-FRONT" / "0003d406.json"
    model = folder / "3D-FUTURE-model" / "0a-b" / "raw_model.obj"
    for file in (path, model):
        file.parent.mkdir(parents=True)
    path.write_text(json.dumps({"furniture": furniture, "mesh": meshes, "scene": {"room": [room]}}))
    box = outward_box((-0.25, -0.25, 0.0), (0.25, 0.25, 0.9)) @ Y_UP.T
    trimesh.Trimesh(box.reshape(-1, 3), np.arange(3 * len(box)).reshape(-1, 3), process=False).export(model)
    return path


def write_usd(folder: Path) -> Path:
    """Write ``flat.usda`` in centimeters, y up; chairs have a class attribute, the table only its name."""
    lines = [
        '#usda 1.0\n(\n    defaultPrim = "World"\n    metersPerUnit = 0.01\n    upAxis = "Y"\n)\n',
        'def Xform "World" {\n',
    ]
    for name, corners in room_things().items():
        points = ", ".join(str(tuple(point)) for point in np.round(corners @ Y_UP.T * 100, 4).reshape(-1, 3).tolist())
        counts, indices = ", ".join("3" * len(corners)), ", ".join(map(str, range(3 * len(corners))))
        label = '    custom string nimbus:class = "chair"\n' if "chair" in name else ""
        lines.append(
            f'  def Xform "{name.replace(".", "_")}" {{\n{label}    def Mesh "mesh" {{\n'
            f"      point3f[] points = [{points}]\n      int[] faceVertexCounts = [{counts}]\n"
            f"      int[] faceVertexIndices = [{indices}]\n    }}\n  }}\n"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "flat.usda").write_text("".join([*lines, "}\n"]))
    return folder / "flat.usda"


def write_gibson(folder: Path) -> Path:
    """Write ``Adrian.glb`` as in Habitat's version of Gibson: y up, one node per object."""
    return write_glb(folder / "Adrian.glb", room_things())


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def remove(folder: Path) -> None:
    shutil.rmtree(folder)
