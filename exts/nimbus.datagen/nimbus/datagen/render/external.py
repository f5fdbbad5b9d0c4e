"""Rendering by an external program: any engine that exchanges lines of JSON can draw the episodes of any task."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, PrivateAttr

from nimbus.datagen.arrays import FloatArray
from nimbus.datagen.episode.layout import Camera, Layout, Modality, Sensor, SurfaceLook
from nimbus.datagen.episode.observation import CameraFrames, Labels, Observation
from nimbus.datagen.episode.trajectory import Trajectory
from nimbus.datagen.errors import InputError
from nimbus.datagen.files.strict_yaml import StrictModel
from nimbus.datagen.geometry import cameras
from nimbus.datagen.pipeline import RunContext, register_component
from nimbus.datagen.render.camera_model.keypoint_places import with_keypoints
from nimbus.datagen.render.camera_model.lens import Lens, boxes_of
from nimbus.datagen.render.camera_model.sensor import SensorModel, shown_poses
from nimbus.datagen.render.external_process import PROTOCOL, ExternalProgram, ProgramLostError
from nimbus.datagen.render.raytracer.geometry import look_of
from nimbus.datagen.render.render_inputs import RenderInputs, RenderPart
from nimbus.datagen.render.scene_light import DARK, PlacedLamp, glow_of_parts, place_lamps
from nimbus.datagen.render.scene_renderer import SceneRenderer
from nimbus.datagen.render.scene_views import scene_inputs
from nimbus.datagen.stages import Planned, Rendered, Renderer
from nimbus.datagen.tasks.navigation_assets import NavigationAssets

_MADE: tuple[Modality, ...] = ("rgb", "depth", "instance", "semantic", "boxes", "keypoints")
"""Modalities that the program draws, or that are computed from its images."""
_log = logging.getLogger(__name__)


class ExternalSettings(StrictModel):
    """Settings of :class:`ExternalRenderer`."""

    command: Annotated[tuple[str, ...], Field(min_length=1)]
    """Program and arguments, seen from the folder of the pipeline file; ``python`` is the interpreter of Nimbus."""
    stack: Annotated[int, Field(ge=1, le=1024)] = 16
    """Number of steps per request."""
    patience: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Time without output after which the program is killed [s]."""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    """Number of program starts with which a request is tried."""
    options: dict[str, str | float | int | bool] = Field(default_factory=dict)
    """Settings passed to the program."""
    _folder: str = PrivateAttr(default="/")
    """Folder in which the program starts: that of the pipeline file."""

    def seen_from(self, folder: Path) -> Self:
        """Return the settings of a program that starts in a folder, at which relative paths in its command begin."""
        moved = self.model_copy()
        moved._folder = str(folder)
        return moved

    @property
    def folder(self) -> str:
        """Folder in which the program starts."""
        return self._folder


class ExternalRenderer(Renderer[Any]):
    """Renderer that sends scenes, cameras and poses to a program, and receives its images.

    A program that exits or hangs is replaced, and its request is repeated. An episode that no program can draw is a
    fault, which the cell retries and finally quarantines.

    Args:
        settings: Settings of the pipeline file.
        render_failures: Also render failed attempts.
    """

    version: ClassVar[int] = 5
    modalities: ClassVar[tuple[Modality, ...]] = _MADE
    """Modalities that the renderer provides."""

    @classmethod
    def create(cls, context: RunContext, settings: ExternalSettings) -> Self:
        """Make the renderer of a run."""
        return cls(settings, render_failures=context.render_failures or context.keep_failures)

    def __init__(self, settings: ExternalSettings, *, render_failures: bool = False) -> None:
        self._settings, self._render_failures = settings, render_failures
        self._program: ExternalProgram | None = None
        self._scenes: SceneRenderer | None = None
        self._inputs: RenderInputs | None = None
        self._loaded: Layout | None = None
        self._sent: RenderInputs | None = None
        """Inputs that the program has received; they are compared by identity, and therefore kept alive."""
        self._lamps: tuple[PlacedLamp, ...] = ()
        self._glow: tuple[float, ...] = ()

    def process(self, item: Planned[Any]) -> Iterator[Rendered[Any]]:
        """Yield one result for each layout; a failed attempt has no observations unless requested."""
        success = item.trajectory.outcome.success
        for layout in item.layouts:
            is_shown = bool(layout.visual.cameras) and (success or self._render_failures)
            yield Rendered(
                scene=item.scene,
                layout=layout,
                trajectory=item.trajectory,
                labels=self._load(item, layout).labels if is_shown else None,
                observations=self._observe(item, layout) if is_shown else iter(()),
                attempt=item.attempt,
                final=item.final,
            )

    def close(self) -> None:
        """End the program."""
        self._drop()

    def _drop(self) -> None:
        if self._program is not None:
            self._program.close()
        self._program, self._sent = None, None

    def _load(self, item: Planned[Any], layout: Layout) -> RenderInputs:
        """Prepare the parts and labels of an episode."""
        if self._inputs is None or self._loaded is not layout:
            _check_cameras(layout)
            assets = item.scene.assets
            if isinstance(assets, NavigationAssets):
                self._inputs = scene_inputs(assets.scene, layout, item.trajectory, baked=False)
                if assets.scene.is_lit:
                    self._inputs = replace(self._inputs, visual=replace(layout.visual, light=DARK))
                self._lamps = place_lamps(assets.scene, layout.visual.light)
                self._glow = glow_of_parts(assets.scene, layout.visual.light)
            else:
                if self._scenes is None:
                    libraries = tuple(assets.libraries)
                    self._scenes = SceneRenderer(assets.stage, assets.robot, libraries=libraries, light="direct")
                self._inputs = self._scenes.inputs(layout)
            self._loaded = layout
        return self._inputs

    def _observe(self, item: Planned[Any], layout: Layout) -> Iterator[Observation]:
        trajectory = item.trajectory
        motion = trajectory.body_positions, trajectory.body_wxyz
        poses = shown_poses(*motion, rate=trajectory.rate, latency=layout.visual.latency)
        for start in range(0, trajectory.step_count, self._settings.stack):
            steps = slice(start, min(start + self._settings.stack, trajectory.step_count))
            inputs = self._load(item, layout)
            yield Observation(start=start, cameras=self._drawn(inputs, trajectory, poses, steps))

    def _drawn(
        self, inputs: RenderInputs, trajectory: Trajectory, poses: tuple[FloatArray, FloatArray], steps: slice
    ) -> dict[str, CameraFrames]:
        """Draw some steps; a lost program is replaced by another one.

        Raises:
            RuntimeError: No program draws the steps.
        """
        last = ""
        for attempt in range(self._settings.tries):
            try:
                return self._ask(inputs, trajectory, poses, steps)
            except ProgramLostError as error:
                _log.warning("external renderer %s, try %d of %d", error, attempt + 1, self._settings.tries)
                last = str(error)
                self._drop()
            except InputError:
                self._drop()
                raise
        raise RuntimeError(f"'{self._settings.command[0]}' {last}")

    def _ask(
        self, inputs: RenderInputs, trajectory: Trajectory, poses: tuple[FloatArray, FloatArray], steps: slice
    ) -> dict[str, CameraFrames]:
        program = self._started()
        self._send_scene(program, inputs)
        positions, wxyz = poses[0][steps], poses[1][steps]
        rows = cameras.BodyRows(trajectory.body_names)
        views, shown = [], {}
        for camera in inputs.visual.cameras:
            lens = Lens(camera) if any(camera.distortion) else None
            pinhole = lens.pinhole if lens else camera
            world_T_camera = cameras.world_T_camera(*cameras.camera_poses(camera, rows, positions, wxyz))
            shown[camera.name] = (camera, lens, pinhole, world_T_camera)
            matrix = cameras.intrinsics(pinhole)
            views.append(
                {
                    "name": camera.name,
                    "width": pinhole.width,
                    "height": pinhole.height,
                    "intrinsics": matrix.tolist(),
                    "world_T_camera": program.write(f"camera_{camera.name}", world_T_camera),
                }
            )
        request = {
            "type": "render",
            "start": steps.start,
            "count": len(positions),
            "bodies": list(trajectory.body_names),
            "body_positions": program.write("body_positions", positions),
            "body_wxyz": program.write("body_wxyz", wxyz),
            "cameras": views,
        }
        answer = program.ask(request, answer="frames")
        files = answer.get("cameras")
        if not isinstance(files, dict):
            raise program.wrong("sends frames without 'cameras'")
        found = {}
        for name, (camera, lens, pinhole, world_T_camera) in shown.items():
            frames = _frames(program, files.get(name), pinhole, world_T_camera, inputs.labels)
            if "keypoints" in camera.modalities and inputs.labels.keypoints is not None:
                frames = with_keypoints(frames, inputs.labels.keypoints, rows, positions, wxyz)
            frames = (lens.bend(frames) if lens else frames).only(camera.modalities)
            if camera.sensor != Sensor():
                frames = SensorModel(camera).take(frames, first_step=steps.start)
            found[name] = frames
        return found

    def _started(self) -> ExternalProgram:
        if self._program is None:
            own = self._settings
            made = ExternalProgram(own.command, patience=own.patience, cwd=own.folder)
            self._program = made
            hello = {"type": "hello", "protocol": PROTOCOL, "folder": str(made.folder)}
            answer = made.ask(hello | {"options": dict(self._settings.options)}, answer="ready")
            _log.info("external renderer: %.80s on %.40s", answer.get("engine", "ready"), answer.get("device", "-"))
            if answer.get("protocol") != PROTOCOL:
                raise made.wrong(f"uses protocol {str(answer.get('protocol'))[:20]}, expected {PROTOCOL}")
        return self._program

    def _send_scene(self, program: ExternalProgram, inputs: RenderInputs) -> None:
        """Send parts, labels and light, unless the program already has them."""
        if inputs is self._sent:
            return
        surfaces = inputs.visual.surfaces
        glow = self._glow or (0.0,) * len(inputs.parts)
        parts = [
            _part(program, number, part, surfaces.get(part.instance.partition(".")[0], SurfaceLook())) | {"glow": shine}
            for number, (part, shine) in enumerate(zip(inputs.parts, glow, strict=True))
        ]
        message = {
            "type": "scene",
            "instances": list(inputs.labels.instance_names),
            "parts": parts,
            "light": inputs.visual.light,
            "lamps": [{"position": position, "color": color} for position, color in self._lamps],
            "surfaces": surfaces,
        }
        program.ask(message, answer="ready")
        for entry in parts:
            for name in (value for key, value in entry.items() if key in _FILES):
                (program.folder / str(name)).unlink(missing_ok=True)
        self._sent = inputs


_FILES = ("vertices", "faces", "normals", "uvs", "image")


def _part(program: ExternalProgram, number: int, part: RenderPart, surface: SurfaceLook) -> dict[str, Any]:
    """Write the arrays of a part with its texture in the episode."""
    triangles, image = look_of(part, surface)
    arrays = {
        "vertices": triangles.vertices,
        "faces": triangles.faces,
        "normals": triangles.normals,
        "uvs": triangles.uvs,
        "image": image,
    }
    files = {name: program.write(f"part_{number}_{name}", values) for name, values in arrays.items()}
    return {"instance": part.instance, "body": part.body, "tint": surface.color} | files


def _frames(program: ExternalProgram, files: object, camera: Camera, poses: FloatArray, labels: Labels) -> CameraFrames:
    """Read the images of one camera; derived modalities are computed here."""
    if not isinstance(files, dict):
        raise program.wrong(f"sends no frames of camera '{camera.name}'")
    size = (len(poses), camera.height, camera.width)
    instance = program.read(files.get("instance"), size, np.uint8)
    if instance.max(initial=0) >= len(labels.instance_names):
        raise program.wrong(f"draws instance {int(instance.max())}, there are {len(labels.instance_names)}")
    depth = program.read(files.get("depth"), size, np.float32)
    if not np.isfinite(depth).all() or depth.min(initial=0.0) < 0:
        raise program.wrong(f"sends depth of camera '{camera.name}' that is not a distance; write 0 for nothing")
    return CameraFrames(
        rgb=program.read(files.get("rgb"), (*size, 3), np.uint8),
        depth=depth,
        instance=instance,
        semantic=labels.instance_semantics[instance],
        normals=np.zeros((0, *size[1:], 3), dtype=np.int8),
        boxes_2d=boxes_of(instance, len(labels.instance_names)),
        visibility=np.zeros((0, len(labels.instance_names)), dtype=np.float32),
        intrinsics=cameras.intrinsics(camera),
        world_T_camera=poses,
    )


def _check_cameras(layout: Layout) -> None:
    """Refuse modalities that external programs do not provide.

    Raises:
        InputError: A camera stores such a modality.
    """
    for camera in layout.visual.cameras:
        if beyond := [name for name in camera.modalities if name not in _MADE]:
            what = f"camera '{camera.name}' stores {beyond[0]}, which an external renderer does not provide"
            instead = f"write modalities: [{', '.join(name for name in camera.modalities if name in _MADE)}]"
            raise InputError(what, where="cameras", instead=instead)


register_component("render", "external", ExternalRenderer, ExternalSettings)
