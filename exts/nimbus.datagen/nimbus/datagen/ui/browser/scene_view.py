"""Scene in the browser: moving bodies, draggable regions and cameras, samples and reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nimbus.datagen.episode.layout import Camera, PhysicalLayout, SurfaceLook, Vector
from nimbus.datagen.render.bent import bend_part
from nimbus.datagen.textures.color import linear
from nimbus.datagen.ui.browser.baked_lighting import add_lights, baked_glb, unlit_glb
from nimbus.datagen.ui.browser.meshes import mean_color, part_mesh

if TYPE_CHECKING:
    from nimbus.datagen.render.render_inputs import RenderPart
    from nimbus.datagen.tasks.task_file import Region
    from nimbus.datagen.ui.scene_look import PreviewMotion, SceneLook

RADIUS = 0.009
"""Radius of a marker [m]."""

_FACES = np.array([[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]])
"""Faces of an octahedron with corners +x, +y, +z, -x, -y, -z; counter-clockwise from outside."""

Color = tuple[int, int, int]
VIEW_FROM, VIEW_AT, VIEW_FOV = (1.6, -1.0, 1.2), (0.4, 0.0, 0.15), 1.0
"""Initial eye and target [m], and vertical field of view [rad]."""
REGION_GRIP = 0.14
"""Length of the arrows for dragging a region [m]."""

_COARSE_LABELS = 1.5
"""Scale of labels when the scene is drawn at a low resolution."""

_OPENGL_TO_OPENCV = (0.0, 1.0, 0.0, 0.0)
_REGION_COLORS = ((60, 130, 220), (230, 140, 40), (120, 180, 80), (180, 90, 190), (60, 180, 180))
_SAMPLE_COLORS = ((214, 69, 65), (65, 131, 215), (38, 166, 91), (244, 208, 63), (155, 89, 182), (230, 126, 34))


def markers_glb(places: NDArray[Any], colors: Sequence[Color]) -> bytes:
    """Return octahedra at (N, 3) positions [m] in sRGB colors, as GLB without lighting."""
    import trimesh
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import PBRMaterial

    corners = RADIUS * np.vstack([np.eye(3), -np.eye(3)])
    scene, light = trimesh.Scene(), {}
    for color in dict.fromkeys(colors):
        own = places[[one == color for one in colors]]
        name = "dots{:02x}{:02x}{:02x}".format(*color)
        light[name] = linear(np.array(color) / 255).tolist()
        mesh = trimesh.Trimesh(
            vertices=(own[:, None] + corners).reshape(-1, 3),
            faces=(np.arange(len(own))[:, None, None] * len(corners) + _FACES).reshape(-1, 3),
            visual=TextureVisuals(material=PBRMaterial(name=name)),
            process=False,
        )
        scene.add_geometry(mesh)
    return unlit_glb(scene, light)


class SceneView:
    """Scene in the browser, shared by all browsers of this studio.

    Args:
        server: A ``viser.ViserServer``.
        simple: Draw with fewer triangles, and labels that stay legible with fewer pixels.
    """

    def __init__(self, server: Any, *, simple: bool = False) -> None:
        self._server, self._simple = server, simple
        self._bodies: dict[str, Any] = {}
        self._meshes: dict[tuple[str, int], tuple[RenderPart, SurfaceLook, Any]] = {}
        self._handles: dict[str, list[Any]] = {}
        self._frusta: dict[str, Any] = {}
        server.scene.set_up_direction("+z")
        add_lights(server)
        self._view = VIEW_FROM, VIEW_AT
        server.initial_camera.position, server.initial_camera.look_at = self._view
        server.initial_camera.up, server.initial_camera.fov = (0.0, 0.0, 1.0), VIEW_FOV

    def show(self, look: SceneLook) -> None:
        """Draw the parts of a layout in their poses of the first step."""
        surfaces = look.layout.visual.surfaces if look.layout else {}
        wanted: dict[tuple[str, int], tuple[RenderPart, SurfaceLook]] = {}
        for part in look.parts:
            place = sum(body == part.body for body, _ in wanted)
            wanted[part.body, place] = part, surfaces.get(part.instance.partition(".")[0], SurfaceLook())
        with self._server.atomic():
            for key in [key for key, (part, surface, _) in self._meshes.items() if wanted.get(key) != (part, surface)]:
                self._meshes.pop(key)[2].remove()
            for (body, place), (part, surface) in wanted.items():
                if (body, place) not in self._meshes:
                    self._meshes[body, place] = part, surface, self._add(self._path(body, place), part, surface)
            self.place(look.motion, 0)
        self._turn(look.view or (VIEW_FROM, VIEW_AT))

    def _turn(self, view: tuple[Vector, Vector]) -> None:
        """Set the view of a new scene; within a scene, every browser keeps its own view."""
        if view != self._view:
            self._view = view
            cameras = [client.camera for client in self._server.get_clients().values()]
            for camera in (self._server.initial_camera, *cameras):
                camera.position, camera.look_at = view

    def draw_simply(self, simple: bool) -> None:
        """Draw with fewer triangles, or with all of them, from the next :meth:`show` on."""
        self._simple = simple
        for _, _, handle in self._meshes.values():
            handle.remove()
        self._meshes.clear()

    def _add(self, path: str, part: RenderPart, surface: SurfaceLook) -> Any:
        if part.vertex_bodies:
            # Only this kind of mesh can change its vertices; it has one color.
            shape, color = part.triangles, mean_color(part, surface)
            return self._server.scene.add_mesh_simple(path, shape.vertices, shape.faces, color=color, side="double")
        mesh = part_mesh(part, surface, simple=self._simple)
        if self._simple and not part.body and (painted := baked_glb(mesh)) is not None:
            return self._server.scene.add_glb(path, painted)
        return self._server.scene.add_mesh_trimesh(path, mesh)

    def _path(self, body: str, place: int) -> str:
        if not body:
            return f"/world/{place}"
        if body not in self._bodies:
            self._bodies[body] = self._server.scene.add_frame(f"/bodies/{body}", show_axes=False)
        return f"/bodies/{body}/{place}"

    def place(self, motion: PreviewMotion, step: int) -> None:
        """Move every body to its pose in a step, and bend cloths and cables."""
        rows = {name: row for row, name in enumerate(motion.names)}
        with self._server.atomic():
            for name, row in rows.items():
                if (frame := self._bodies.get(name)) is not None:
                    frame.position, frame.wxyz = motion.positions[step, row], motion.wxyz[step, row]
            for part, _, mesh in self._meshes.values():
                # A layout that physics has not loaded has no points: its cloths and cables are in their shapes at rest.
                if part.vertex_bodies and part.vertex_bodies[0] in rows:
                    mesh.vertices = bend_part(part, rows, motion.positions[step], motion.wxyz[step]).vertices

    def show_regions(
        self, regions: Mapping[str, Region], heights: Mapping[str, float], moved: Callable[[str, float, float], None]
    ) -> None:
        """Draw regions as plates that can be dragged over their surface.

        Args:
            regions: Regions by name.
            heights: Heights of their surfaces [m].
            moved: Called with a region's name and the new x, y of its center [m] when it is released.
        """
        self._clear("regions")
        for number, (name, region) in enumerate(regions.items()):
            x, y = region.center
            # Each plate has its own height, because overlapping plates at equal heights would flicker.
            z = heights.get(region.on, 0.0) + 0.002 + 0.001 * number
            grip = self._server.scene.add_transform_controls(
                f"/regions/{name}",
                scale=REGION_GRIP,
                active_axes=(True, True, False),
                disable_rotations=True,
                depth_test=False,
                position=(x, y, z),
            )
            color = _REGION_COLORS[number % len(_REGION_COLORS)]
            self._server.scene.add_box(
                f"/regions/{name}/plate", color=color, dimensions=(*region.size, 0.001), opacity=0.35, cast_shadow=False
            )
            self._server.scene.add_label(
                f"/regions/{name}/label",
                name,
                position=(0.0, region.size[1] / 2, 0.0),
                font_screen_scale=_COARSE_LABELS if self._simple else 1.0,
                anchor="bottom-left",
            )
            grip.on_update(_when_let_go(lambda event, name=name: moved(name, *event.target.position[:2])))
            self._keep("regions", grip)

    def show_cameras(
        self, cameras: Sequence[Camera], moved: Callable[[str, NDArray[np.float64], NDArray[np.float64]], None]
    ) -> None:
        """Draw the frusta of cameras; cameras that are fixed to the world can be dragged and rotated.

        Args:
            cameras: Cameras before randomization.
            moved: Called when a camera is released, with its name, its position (3,) in the world frame [m] and its
                unit quaternion wxyz (4,), OpenGL axes.
        """
        self._clear("cameras")
        self._frusta.clear()
        for camera in cameras:
            parent = f"/bodies/{camera.mount}/camera_{camera.name}" if camera.mount else f"/cameras/{camera.name}"
            pose = {"position": camera.position, "wxyz": camera.wxyz}
            if camera.mount:
                frame = self._server.scene.add_frame(parent, show_axes=False, **pose)
            else:
                frame = self._server.scene.add_transform_controls(parent, scale=0.16, depth_test=False, **pose)
                frame.on_update(
                    _when_let_go(lambda event, name=camera.name: moved(name, event.target.position, event.target.wxyz))
                )
            self._frusta[camera.name] = self._server.scene.add_camera_frustum(
                f"{parent}/frustum",
                fov=camera.vertical_fov,
                aspect=camera.width / camera.height,
                scale=0.06 if camera.mount else 0.12,
                thickness=2.0,
                thickness_units="screen",  # viser draws lines twice if their width is in meters
                color=(40, 40, 40),
                wxyz=_OPENGL_TO_OPENCV,
                cast_shadow=False,
            )
            self._keep("cameras", frame)

    def show_picture(self, camera: str, picture: NDArray[np.uint8]) -> None:
        """Show a camera's image in its frustum.

        Args:
            camera: Name of the camera.
            picture: (H, W, 3) sRGB.
        """
        if camera in self._frusta:
            self._frusta[camera].image = picture

    def show_samples(self, layouts: Sequence[PhysicalLayout]) -> None:
        """Mark the start positions of the objects of many layouts; each group has its own color."""
        self._clear("samples")
        objects = [item for layout in layouts for item in layout.objects]
        if not objects:
            return
        groups = list(dict.fromkeys(item.object_class or item.group for item in objects))
        colors = [
            _SAMPLE_COLORS[groups.index(item.object_class or item.group) % len(_SAMPLE_COLORS)] for item in objects
        ]
        dots = markers_glb(np.array([item.position for item in objects]), colors)
        self._keep("samples", self._server.scene.add_glb("/samples", dots, cast_shadow=False, receive_shadow=False))

    def show_reach(self, reach: Mapping[str, Any], heights: Mapping[str, float]) -> None:
        """Draw the cells of regions, in different colors for reachable and unreachable ones."""
        self._clear("reach")
        for name, found in reach.items():
            for reached, color in ((True, (60, 170, 90)), (False, (200, 60, 60))):
                vertices, faces = _tiles(found, reached, heights.get(name, 0.0) + 0.006)
                if len(faces):
                    tiles = self._server.scene.add_mesh_simple(
                        f"/reach/{name}_{reached}", vertices, faces, color=color, opacity=0.45, side="double"
                    )
                    self._keep("reach", tiles)

    def shown(self, kind: str) -> bool:
        """Return True if something of a kind is shown."""
        return bool(self._handles.get(kind))

    def hide(self, kind: str) -> None:
        """Remove ``samples``, ``reach``, ``regions`` or ``cameras``."""
        self._clear(kind)

    def _keep(self, kind: str, handle: Any) -> None:
        self._handles.setdefault(kind, []).append(handle)

    def _clear(self, kind: str) -> None:
        for handle in self._handles.pop(kind, []):
            handle.remove()


def _when_let_go(done: Callable[[Any], None]) -> Callable[[Any], None]:
    def updated(event: Any) -> None:
        if event.phase == "end":
            done(event)

    return updated


def _tiles(reach: Any, reached: bool, z: float) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """Return the squares of a reach map; each is a little smaller than its cell."""
    side, gap = reach.to_plain((0.0, 0.0))["cell"], 0.003
    corners = [
        (
            reach.origin[0] + (i + a) * side + (gap if a == 0 else -gap),
            reach.origin[1] + (j + b) * side + (gap if b == 0 else -gap),
            z,
        )
        for i, j in np.argwhere(reach.cells == reached)
        for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))
    ]
    count = len(corners) // 4
    faces = (np.arange(count)[:, None, None] * 4 + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3)
    return np.array(corners, dtype=np.float32).reshape(-1, 3), faces.astype(np.uint32)
