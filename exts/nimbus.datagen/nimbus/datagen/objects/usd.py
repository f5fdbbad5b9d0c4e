"""Writer of an object's USD file, with its texture beside it."""
# The stubs of pxr say that every Define and Apply returns None.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image as PillowImage

from nimbus.datagen.arrays import FloatArray, IndexArray
from nimbus.datagen.files.atomic import replacing, write_atomic
from nimbus.datagen.files.cache import writing
from nimbus.datagen.objects.model import MovingPart, ObjectModel

if TYPE_CHECKING:
    from pxr import Usd


def write_usd(model: ObjectModel, path: Path) -> None:
    """Write a USD file and its PNG texture atomically; another process may write the same file.

    The root prim is a rigid body with its mass, the visual mesh, invisible collision pieces, and ``nimbus:`` metadata.
    With moving parts, the root is an articulation, and ``base`` and the parts below it are the rigid bodies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    texture = path.with_suffix(".png")
    # On a full disk Pillow raises its own error. The free space shows the cause; it is read before the temporary file
    # is removed.
    with replacing(texture, durable=False, shared=True) as temporary, writing(path.parent):
        PillowImage.fromarray(model.texture).save(temporary, format="PNG")
    with writing(path.parent):
        write_atomic(path, _text(model, texture.name), durable=False, shared=True)


def _text(model: ObjectModel, texture: str) -> str:
    from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    root = UsdGeom.Xform.Define(stage, f"/{model.kind}").GetPrim()
    stage.SetDefaultPrim(root)
    looks = add_looks(stage, str(root.GetPath()), texture)
    touch = add_touch(stage, str(root.GetPath()), model.friction)
    if model.parts:
        from nimbus.datagen.objects.articulated.usd import add_bodies

        add_bodies(stage, root, model, looks, touch)
    else:
        add_body(root, model, model.mass)
        add_visual(stage, str(root.GetPath()), model, looks)
        add_contact(stage, str(root.GetPath()), model, touch, ball=model.ball)
    names = {"library": model.library, "kind": model.kind, "class": model.object_class}
    for name, value in {**names, "category": model.category, "symmetry": model.symmetry}.items():
        root.CreateAttribute(f"nimbus:{name}", Sdf.ValueTypeNames.String, custom=True).Set(value)
    root.CreateAttribute("nimbus:variant", Sdf.ValueTypeNames.Int, custom=True).Set(model.variant)
    for name, point in model.keypoints.items():
        attribute = root.CreateAttribute(f"nimbus:keypoints:{name}", Sdf.ValueTypeNames.Point3d, custom=True)
        attribute.Set(Gf.Vec3d(*point.tolist()))
    for name, frame in model.frames.items():
        attribute = root.CreateAttribute(f"nimbus:frames:{name}", Sdf.ValueTypeNames.Matrix4d, custom=True)
        attribute.Set(Gf.Matrix4d(frame.T.tolist()))
    return stage.GetRootLayer().ExportToString()


def add_looks(stage: Usd.Stage, path: str, texture: str) -> Any:
    """Add a textured material below a prim."""
    from pxr import Sdf, UsdShade

    material = UsdShade.Material.Define(stage, f"{path}/looks/surface")
    surface = UsdShade.Shader.Define(stage, f"{path}/looks/surface/preview")
    surface.CreateIdAttr("UsdPreviewSurface")
    surface.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(0.6)
    reader = UsdShade.Shader.Define(stage, f"{path}/looks/surface/st")
    reader.CreateIdAttr("UsdPrimvarReader_float2")
    reader.CreateInput("varname", Sdf.ValueTypeNames.String).Set("st")
    image = UsdShade.Shader.Define(stage, f"{path}/looks/surface/image")
    image.CreateIdAttr("UsdUVTexture")
    image.CreateInput("file", Sdf.ValueTypeNames.Asset).Set(Sdf.AssetPath(f"./{texture}"))
    image.CreateInput("sourceColorSpace", Sdf.ValueTypeNames.Token).Set("sRGB")
    for wrap in ("wrapS", "wrapT"):
        image.CreateInput(wrap, Sdf.ValueTypeNames.Token).Set("repeat")
    coordinates = reader.CreateOutput("result", Sdf.ValueTypeNames.Float2)
    image.CreateInput("st", Sdf.ValueTypeNames.Float2).ConnectToSource(coordinates)
    color = image.CreateOutput("rgb", Sdf.ValueTypeNames.Float3)
    surface.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).ConnectToSource(color)
    material.CreateSurfaceOutput().ConnectToSource(surface.CreateOutput("surface", Sdf.ValueTypeNames.Token))
    return material


def add_visual(stage: Usd.Stage, path: str, thing: ObjectModel | MovingPart, looks: Any) -> None:
    """Add the visual mesh below a prim."""
    from pxr import Sdf, UsdGeom, UsdShade, Vt

    mesh = _mesh(stage, f"{path}/visual", thing.vertices, thing.faces)
    mesh.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(thing.normals.astype(np.float32)))
    mesh.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
    st = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.vertex)
    st.Set(Vt.Vec2fArray.FromNumpy(thing.uvs.astype(np.float32)))
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(looks)


def add_body(prim: Any, thing: ObjectModel | MovingPart, mass: float) -> None:
    """Make a prim a rigid body."""
    from pxr import Gf, UsdPhysics

    UsdPhysics.RigidBodyAPI.Apply(prim)
    moments, axes = _principal(thing.inertia)
    physics = UsdPhysics.MassAPI.Apply(prim)
    physics.CreateMassAttr(mass)
    physics.CreateCenterOfMassAttr(Gf.Vec3f(*thing.center_of_mass.tolist()))
    physics.CreateDiagonalInertiaAttr(Gf.Vec3f(*moments.tolist()))
    physics.CreatePrincipalAxesAttr(Gf.Quatf(*axes))


def add_touch(stage: Usd.Stage, path: str, friction: float) -> Any:
    """Add a contact material below a prim."""
    from pxr import UsdPhysics, UsdShade

    material = UsdShade.Material.Define(stage, f"{path}/looks/contact")
    physics = UsdPhysics.MaterialAPI.Apply(material.GetPrim())
    physics.CreateStaticFrictionAttr(friction)
    physics.CreateDynamicFrictionAttr(friction)
    physics.CreateRestitutionAttr(0.0)
    return material


def add_contact(stage: Usd.Stage, path: str, thing: ObjectModel | MovingPart, touch: Any, *, ball: float = 0.0) -> None:
    """Add the collision shapes of a body below a prim; a radius ``ball`` [m] replaces the pieces with a sphere."""
    from pxr import UsdGeom, UsdPhysics

    if ball:
        sphere = UsdGeom.Sphere.Define(stage, f"{path}/contact_0")
        sphere.CreateRadiusAttr(ball)
        sphere.CreateExtentAttr([(-ball,) * 3, (ball,) * 3])
        _touches(sphere, touch)
        return
    for index, (vertices, faces) in enumerate(thing.convex_pieces):
        mesh = _mesh(stage, f"{path}/contact_{index}", vertices, faces)
        _touches(mesh, touch)
        UsdPhysics.MeshCollisionAPI.Apply(mesh.GetPrim()).CreateApproximationAttr(UsdPhysics.Tokens.convexHull)


def _touches(shape: Any, material: Any) -> None:
    """Convert a shape to invisible contact geometry."""
    from pxr import UsdGeom, UsdPhysics, UsdShade

    shape.CreatePurposeAttr(UsdGeom.Tokens.guide)
    UsdPhysics.CollisionAPI.Apply(shape.GetPrim())
    binding = UsdShade.MaterialBindingAPI.Apply(shape.GetPrim())
    binding.Bind(material, UsdShade.Tokens.weakerThanDescendants, "physics")


def _mesh(stage: Usd.Stage, path: str, vertices: FloatArray, faces: IndexArray) -> Any:
    from pxr import UsdGeom, Vt

    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(vertices.astype(np.float32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(faces.astype(np.int32).ravel()))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(faces), 3, dtype=np.int32)))
    mesh.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(np.array([vertices.min(0), vertices.max(0)], dtype=np.float32)))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    return mesh


def _principal(inertia: FloatArray) -> tuple[FloatArray, tuple[float, float, float, float]]:
    """Return principal moments (3,) [kg m²], and the rotation of the principal axes as wxyz."""
    from scipy.spatial.transform import Rotation

    moments, axes = np.linalg.eigh(inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    x, y, z, w = Rotation.from_matrix(axes).as_quat().tolist()
    return moments, (w, x, y, z)
