"""An external renderer of Nimbus in one file: MuJoCo casts the rays. Run as ``render: {external: {command: ...}}``.

It shares no code with Nimbus: it reads lines of JSON and NPY files, as any other engine would; see
docs/external-renderer.md.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np


class Scene:
    """Meshes of one scene; each moves with its body."""

    def __init__(self, message: dict[str, Any], folder: Path) -> None:
        spec = mujoco.MjSpec()
        bodies = {"": spec.worldbody}
        drawn: list[tuple[int, np.ndarray]] = []
        names = {name: number for number, name in enumerate(message["instances"])}
        for number, part in enumerate(message["parts"]):
            vertices, faces, uvs, image = (np.load(folder / part[key]) for key in ("vertices", "faces", "uvs", "image"))
            corners = vertices[faces]
            area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
            faces = faces[area > 1e-12]
            if not len(faces):
                continue
            if part["body"] not in bodies:
                bodies[part["body"]] = spec.worldbody.add_body(name=part["body"], mocap=True)
            mesh = spec.add_mesh(name=f"mesh_{number}", uservert=vertices.ravel(), userface=faces.ravel())
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
            bodies[part["body"]].add_geom(
                name=f"{len(drawn)}",
                type=mujoco.mjtGeom.mjGEOM_MESH,
                meshname=f"mesh_{number}",
                contype=0,
                conaffinity=0,
            )
            drawn.append((names.get(part["instance"], 0), image.reshape(-1, 3).mean(axis=0)))
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        order = [int(self.model.geom(geom).name) for geom in range(self.model.ngeom)]  # the compiler sorts by body
        self.instances = np.array([drawn[place][0] for place in order], dtype=np.uint8)
        self.pictures = np.array([drawn[place][1] for place in order])

    def pose(self, names: list[str], positions: np.ndarray, wxyz: np.ndarray) -> None:
        """Move the bodies."""
        for row, name in enumerate(names):
            body = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, name)
            if body >= 0 and (slot := int(self.model.body_mocapid[body])) >= 0:
                self.data.mocap_pos[slot], self.data.mocap_quat[slot] = positions[row], wxyz[row]
        mujoco.mj_kinematics(self.model, self.data)

    def draw(self, pose: np.ndarray, matrix: np.ndarray, width: int, height: int) -> tuple[np.ndarray, ...]:
        """Cast a ray for each pixel: return the color, depth and instance of each."""
        y, x = np.mgrid[:height, :width] + 0.5
        rays = np.stack([(x - matrix[0, 2]) / matrix[0, 0], (y - matrix[1, 2]) / matrix[1, 1], np.ones_like(x)], -1)
        lengths = np.linalg.norm(rays, axis=-1)
        rays = rays / lengths[..., None]
        directions = np.ascontiguousarray(rays.reshape(-1, 3) @ pose[:3, :3].T)
        geoms, apart = np.zeros(len(directions), dtype=np.int32), np.zeros(len(directions))
        origin = np.ascontiguousarray(pose[:3, 3])
        mujoco.mj_multiRay(
            self.model, self.data, origin, directions.ravel(), None, 1, -1, geoms, apart, None, len(directions), 1e3
        )
        hit = geoms >= 0
        depth = np.where(hit, apart / lengths.ravel(), 0.0).astype(np.float32).reshape(height, width)
        chosen = np.maximum(geoms, 0)
        instance = np.where(hit, self.instances[chosen], 0).astype(np.uint8).reshape(height, width)
        fade = 1.0 / (1.0 + 0.05 * np.square(apart))
        colors = self.pictures[chosen] * np.where(hit, fade, 0.0)[:, None]
        return colors.clip(0, 255).astype(np.uint8).reshape(height, width, 3), depth, instance


def main() -> None:
    """Answer requests line by line until the input ends."""
    folder, scene = Path(), None
    for line in sys.stdin:
        message = json.loads(line)
        answer: dict[str, Any] = {"type": "ready", "protocol": 1}
        if message["type"] == "hello":
            folder = Path(message["folder"])
            if crash := message["options"].get("crash_file"):  # the process crashes once, for tests of the watchdog
                if not os.path.exists(str(crash)):
                    Path(str(crash)).write_text("ended")
                    raise SystemExit("ended as asked")
        elif message["type"] == "scene":
            scene = Scene(message, folder)
        elif message["type"] == "render" and scene is not None:
            answer = {"type": "frames", "cameras": render(scene, message, folder)}
        say(answer)


def say(message: dict[str, Any]) -> None:
    """Write a message as one line of JSON."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def render(scene: Scene, message: dict[str, Any], folder: Path) -> dict[str, dict[str, str]]:
    """Render the steps of a request; return the files of each camera."""
    positions, wxyz = np.load(folder / message["body_positions"]), np.load(folder / message["body_wxyz"])
    poses = {view["name"]: np.load(folder / view["world_T_camera"]) for view in message["cameras"]}
    made: dict[str, list[tuple[np.ndarray, ...]]] = {name: [] for name in poses}
    for step in range(message["count"]):
        scene.pose(message["bodies"], positions[step], wxyz[step])
        for view in message["cameras"]:
            size = view["width"], view["height"]
            made[view["name"]].append(scene.draw(poses[view["name"]][step], np.array(view["intrinsics"]), *size))
        say({"type": "alive"})
    files = {}
    for name, frames in made.items():
        files[name] = {}
        for kind, values in zip(("rgb", "depth", "instance"), zip(*frames, strict=True), strict=True):
            np.save(folder / f"{name}_{kind}.npy", np.stack(values))
            files[name][kind] = f"{name}_{kind}.npy"
    return files


if __name__ == "__main__":
    main()
