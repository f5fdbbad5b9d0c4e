"""Regions, cameras and spots as prims in the session layer of the viewport's stage; this layer is never saved."""
# The type stubs of pxr declare that every Define returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import math
from typing import Any

from nimbus.datagen.ui.remote.messages import MarkersData

ROOT = "/NimbusMarks"
_COLORS = {"sample": (0.84, 0.27, 0.25), "reached": (0.24, 0.67, 0.35), "unreached": (0.78, 0.24, 0.24)}
_REGION_COLORS = ((0.24, 0.51, 0.86), (0.9, 0.55, 0.16), (0.47, 0.71, 0.31), (0.7, 0.35, 0.75))
_LIFT, _SPOT_LIFT = 0.002, 0.005
"""Heights of regions and spots above the surface [m]; coplanar faces would flicker."""
_FRUSTUM = 0.12
"""Length of the drawn frustum of a camera [m]."""
_MOVED = 1e-4
"""Displacement [m], or change of a component of a quaternion, that counts as a move."""
_LINE = 0.003
"""Width of lines [m]."""


class StageMarkers:
    """Markers on a stage, and the poses in which they were drawn; the stage may be closed at any time."""

    def __init__(self) -> None:
        self._markers: MarkersData = {"regions": [], "cameras": [], "spots": []}
        self._drawn: dict[str, tuple[str, tuple[float, ...]]] = {}
        self._seen: dict[str, tuple[float, ...]] = {}

    def draw(self, stage: Any, markers: MarkersData | None = None) -> None:
        """Replace the drawn markers; without ``markers``, draw the previous ones on a stage that was just opened."""
        self._markers = self._markers if markers is None else markers
        self._drawn.clear()
        self._seen.clear()
        if stage is None:
            return
        from pxr import Usd, UsdGeom

        with Usd.EditContext(stage, stage.GetSessionLayer()):
            stage.RemovePrim(ROOT)
            if not any(self._markers.values()):
                return
            UsdGeom.Scope.Define(stage, ROOT)
            for number, region in enumerate(self._markers["regions"]):
                self._draw_region(stage, number, region)
            for camera in self._markers["cameras"]:
                self._draw_camera(stage, camera)
            for kind, color in _COLORS.items():
                spots = [spot for spot in self._markers["spots"] if spot["kind"] == kind]
                _draw_squares(stage, f"{ROOT}/{kind}", spots, color)

    def take_moves(self, stage: Any) -> list[tuple[str, Any]]:
        """Return the ids and new poses of markers that the user has moved and released."""
        found: list[tuple[str, Any]] = []
        for name, (place, drawn) in list(self._drawn.items()):
            prim = stage.GetPrimAtPath(place) if stage is not None else None
            if not prim:
                continue
            now = _pose(prim)
            rests = self._seen.get(name) == now
            self._seen[name] = now
            if rests and max(abs(one - other) for one, other in zip(now, drawn, strict=True)) > _MOVED:
                self._drawn[name] = place, now
                rounded = [round(value, 4) for value in now]
                is_camera = name.endswith(".pose")
                found.append((name, {"position": rounded[:3], "wxyz": rounded[3:]} if is_camera else rounded[:2]))
        return found

    def _draw_region(self, stage: Any, number: int, region: dict[str, Any]) -> None:
        x, y, z = region["center"]
        place = f"{ROOT}/{_name('region', region['name'])}"
        a, b = (0.5 * side for side in region["size"])
        corners = [(-a, -b, 0.0), (a, -b, 0.0), (a, b, 0.0), (-a, b, 0.0)]
        plate = _draw_mesh(stage, place, corners, _REGION_COLORS[number % len(_REGION_COLORS)], opacity=0.35)
        self._place(plate, region["id"], (x, y, z + _LIFT + 0.001 * number), (1.0, 0.0, 0.0, 0.0))

    def _draw_camera(self, stage: Any, camera: dict[str, Any]) -> None:
        from pxr import Gf, UsdGeom

        up = _FRUSTUM * math.tan(0.5 * camera["vertical_fov"])
        side = up * camera["aspect"]
        a, b, c, d = (Gf.Vec3f(x, y, -_FRUSTUM) for x, y in ((-side, -up), (side, -up), (side, up), (-side, up)))
        eye = Gf.Vec3f(0.0)
        curves: Any = UsdGeom.BasisCurves.Define(stage, f"{ROOT}/{_name('camera', camera['name'])}")
        curves.CreateTypeAttr(UsdGeom.Tokens.linear)
        curves.CreatePointsAttr([a, b, c, d, a, a, eye, b, eye, c, eye, d, eye])
        curves.CreateCurveVertexCountsAttr([5, 2, 2, 2, 2])
        curves.CreateWidthsAttr([_LINE])
        curves.SetWidthsInterpolation(UsdGeom.Tokens.constant)
        curves.CreateDisplayColorAttr([Gf.Vec3f(0.1, 0.1, 0.1)])
        self._place(curves, camera["id"], camera["position"], camera["wxyz"])

    def _place(self, shape: Any, name: str, position: Any, wxyz: Any) -> None:
        """Set the pose of a shape; a shape with an id is observed for moves.

        The shape itself has the pose, not a parent, because the gizmo moves the prim that the user clicks.
        """
        from pxr import Gf, UsdGeom

        shape.AddTranslateOp().Set(Gf.Vec3d(*position))
        shape.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(*wxyz))
        if name:
            self._drawn[name] = str(shape.GetPath()), _pose(shape.GetPrim())


def _pose(prim: Any) -> tuple[float, ...]:
    """Return position [m] and unit quaternion wxyz with a positive w."""
    from pxr import UsdGeom

    matrix: Any = UsdGeom.Xformable(prim).GetLocalTransformation().RemoveScaleShear()  # a gizmo may also scale the prim
    turn = matrix.ExtractRotationQuat()
    values = turn.GetReal(), *turn.GetImaginary()
    sign = 1.0 if values[0] >= 0 else -1.0
    return (*matrix.ExtractTranslation(), *(sign * value for value in values))


def _name(kind: str, name: str) -> str:
    from pxr import Tf

    return f"{kind}_{Tf.MakeValidIdentifier(name)}"


def _draw_squares(stage: Any, place: str, spots: list[dict[str, Any]], color: Any) -> None:
    corners = []
    for spot in spots:
        (x, y, z), half = spot["position"], 0.5 * spot["size"]
        z += _SPOT_LIFT
        corners += [(x - half, y - half, z), (x + half, y - half, z), (x + half, y + half, z), (x - half, y + half, z)]
    if corners:
        _draw_mesh(stage, place, corners, color, opacity=0.6)


def _draw_mesh(stage: Any, place: str, corners: list[Any], color: Any, *, opacity: float) -> Any:
    """Draw quads of four corners (3,) [m] each."""
    from pxr import Gf, UsdGeom

    mesh: Any = UsdGeom.Mesh.Define(stage, place)
    mesh.CreatePointsAttr([Gf.Vec3f(*corner) for corner in corners])
    mesh.CreateFaceVertexCountsAttr([4] * (len(corners) // 4))
    mesh.CreateFaceVertexIndicesAttr(list(range(len(corners))))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    mesh.CreateDoubleSidedAttr(True)
    mesh.CreateDisplayColorAttr([Gf.Vec3f(*color)])
    mesh.CreateDisplayOpacityAttr([opacity])
    return mesh
