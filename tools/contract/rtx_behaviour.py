"""Behavior of the stand-in's RTX: stages are opened, poses are kept, and sensors see an object in every region."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tools.contract.warp_arrays import warp

_PRIMS = "isaacsim.core.experimental.prims.impl"
_UTILS = "isaacsim.core.experimental.utils.impl"
_MANAGER = "isaacsim.core.simulation_manager.impl.simulation_manager:SimulationManager"
_SENSOR = "isaacsim.sensors.experimental.rtx.impl.tiled_camera_sensor:TiledCameraSensor"


class IsaacSim:
    """Stand-in for RTX that records its calls; in its images, each camera sees the first object of its region."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.opened = ""
        self.poses: dict[int, tuple[Any, Any]] = {}
        self.loading = 3
        self.empty: dict[str, int] = {}
        """Number of reads in which an annotator has no image yet."""
        self.status = "STEPPED"
        """Status of replicator after a step."""
        self.takes_poses = True
        """True if a rejected write raises; otherwise it is only logged."""
        self.refreshed: list[tuple[str, Any]] = []
        """Assigned position of each prim, in order."""
        self.update: Callable[[], None] = lambda: None
        """Function called in each iteration of Kit's loop."""

    def behaviour(self) -> dict[str, Any]:
        def noted(name: str, result: Any = None) -> Any:
            return lambda *args, **kwargs: (self.done.append((name, kwargs)), result)[1]

        def prims(prim: Any, paths: Any, **_: Any) -> None:
            prim.played_paths = [paths] if isinstance(paths, str) else list(paths)

        def pose(prim: Any, translations: Any, orientations: Any) -> None:
            assert len(translations) == len(orientations) == len(prim.played_paths)
            if self.takes_poses:
                self.poses |= dict(zip(prim.played_paths, zip(translations, orientations, strict=True), strict=True))

        def poses(prim: Any) -> tuple[Any, Any]:
            unknown = np.full(3, np.nan), np.array([1.0, 0.0, 0.0, 0.0])
            found = [self.poses.get(path, unknown) for path in prim.played_paths]
            places, turns = (np.array([np.asarray(one[column]) for one in found]) for column in (0, 1))
            return warp(places), warp(turns)

        def sensor(made: Any, paths: Any, *, resolution: Any, annotators: Any) -> None:
            made.played_paths, made.played_size = list(paths), resolution

        def data(made: Any, annotator: str) -> Any:
            if self.empty.get(annotator, 0) > 0:
                self.empty[annotator] -= 1
                return None, {}
            shape = (len(made.played_paths), *made.played_size)
            if annotator == "instance_id_segmentation":
                ids = np.zeros((*shape, 1), np.uint32)
                ids[:, 2:4, 3:6] = np.arange(2, 2 + len(ids))[:, None, None, None]
                roots = [path.rsplit("/", 1)[0] for path in made.played_paths]
                names = {index + 2: f"{root}/body_items_0/visual" for index, root in enumerate(roots)}
                return warp(ids), {"idToLabels": {0: "BACKGROUND", 1: "UNLABELLED", **names}}
            depth = np.full((*shape, 1), np.inf, np.float32)
            depth[:, 2:4] = 1.0
            images = {
                "rgb": np.full((*shape, 3), 9, np.uint8),
                "distance_to_image_plane": depth,
                "normals": np.broadcast_to(np.array([0, 0, 1], np.float32), (*shape, 3)),
            }
            return warp(images[annotator]), {}

        def updated(**options: Any) -> None:
            self.done.append(("update", options))
            self.update()

        def stepped(**options: Any) -> None:
            self.done.append(("step", options))
            self.update()

        def still_loading() -> bool:
            self.loading -= 1
            return self.loading > 0

        @contextmanager
        def backend(name: str) -> Iterator[None]:
            self.done.append(name)
            yield

        def placed(path: str, *, translation: Any) -> None:
            assert self.done[-1] == "usdrt", "there is no other way for a single prim"
            self.refreshed.append((path, translation))

        def current() -> Any:
            from pxr import Usd

            return Usd.Stage.Open(self.opened)

        def opened(path: str) -> tuple[bool, None]:
            self.opened = path
            return Path(path).is_file(), None

        return {
            f"{_UTILS}.app:update_app": updated,
            f"{_UTILS}.app:play": noted("play"),
            f"{_UTILS}.app:stop": noted("stop"),
            f"{_UTILS}.backend:use_backend": backend,
            f"{_UTILS}.stage:open_stage": opened,
            f"{_UTILS}.stage:is_stage_loading": still_loading,
            f"{_UTILS}.stage:get_current_stage": current,
            f"{_UTILS}.xform:set_local_pose": placed,
            f"{_MANAGER}.assets_loading": lambda: False,
            "omni.replicator.core.orchestrator:set_capture_on_play": noted("capture"),
            "omni.replicator.core.orchestrator:step": stepped,
            "omni.replicator.core.orchestrator:get_status": lambda: f"Status.{self.status}",
            "omni.replicator.core.orchestrator:stop": noted("stop capture"),
            "omni.replicator.core.orchestrator:wait_until_complete": noted("complete"),
            f"{_PRIMS}.prim:Prim.__init__": prims,
            f"{_PRIMS}.xform_prim:XformPrim.__init__": prims,
            f"{_PRIMS}.xform_prim:XformPrim.set_local_poses": pose,
            f"{_PRIMS}.xform_prim:XformPrim.get_local_poses": poses,
            f"{_SENSOR}.__init__": sensor,
            f"{_SENSOR}.get_data": data,
        }
