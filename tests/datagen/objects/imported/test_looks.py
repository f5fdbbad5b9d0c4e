"""Looks of imported meshes: few triangles, one texture, and an unchanged rendered image."""

from __future__ import annotations

import numpy as np
import trimesh

from nimbus.datagen.arrays import FloatArray, ImageArray
from nimbus.datagen.geometry.coverage import cover_pixels
from nimbus.datagen.objects.imported.looks import fit_look, image_error, paint_original, reduce_faces
from nimbus.datagen.objects.imported.read import join_surfaces
from nimbus.datagen.objects.imported.surface import ImportedSurface
from nimbus.datagen.objects.shapes.shape import smooth_normals


def checks(color: tuple[int, int, int], side: int = 64) -> ImageArray:
    """Return squares of a color on white."""
    places = np.indices((side, side)) // 16
    return np.where((places.sum(axis=0) % 2 == 0)[..., None], np.array(color), 255).astype(np.uint8)


def ball(texture: ImageArray, *, cut: int = 1, subdivisions: int = 4) -> ImportedSurface:
    """Return a sphere with a texture projected from above, in one map per section of longitude."""
    mesh = trimesh.creation.icosphere(subdivisions=subdivisions, radius=0.03)
    corners = mesh.vertices[mesh.faces]
    turn = (np.arctan2(*mesh.triangles_center.T[:2]) / (2 * np.pi) + 0.5) * cut
    uvs = corners[..., :2] / 0.08 + 0.5 + 0.37 * np.floor(turn)[:, None, None]
    return ImportedSurface(corners=corners, uvs=uvs, texture=texture)


def test_pixels_are_covered_once_by_the_front_face() -> None:
    square = np.array([[[0, 0, 0], [8, 0, 0], [8, 8, 0]], [[0, 0, 0], [8, 8, 0], [0, 8, 0]]], dtype=np.float64)
    both = np.concatenate([square, square[:1] + (0, 0, 1.0), square[:1, ::-1] + (0, 0, 2.0)])
    seen = cover_pixels(both, 8, 8)
    assert sorted(seen.pixel) == list(range(64)) and (seen.face == 2).sum() == 36 and not (seen.face == 3).any()
    assert (cover_pixels(both, 8, 8, both_sides=True).face == 3).sum() == 36
    np.testing.assert_allclose(seen.weights.sum(axis=1), 1)


def test_a_fine_surface_is_baked_without_smears() -> None:
    surface = ball(checks((20, 30, 160)), cut=3)
    look = fit_look(surface, *surface.points(), most_faces=1500, side=512)
    assert look.is_baked and len(look.mesh.faces) <= 1500 and max(look.mesh.texture.shape) <= 512
    assert 0 < look.error < 3
    wrong = paint_original(ball(checks((160, 30, 20)), cut=3))
    assert image_error(wrong, look.mesh) > 4 * look.error  # the measure detects a wrong color


def test_several_materials_become_one_texture() -> None:
    parts = [ball(checks(color), subdivisions=4) for color in ((200, 0, 0), (0, 0, 200))]
    moved = ImportedSurface(corners=parts[1].corners + (0.08, 0, 0), uvs=parts[1].uvs, texture=parts[1].texture)
    surface = join_surfaces([parts[0], moved], unit_is_known=True, up="z")
    look = fit_look(surface, *surface.points(), most_faces=2000, side=512)
    assert look.is_baked and look.error < 3
    colors = seen_colors(look.mesh.texture, look.mesh.uvs)
    is_right = look.mesh.vertices[:, 0] > 0.04
    assert colors[~is_right][:, 2].min() < 60 and colors[~is_right][:, 0].min() > 150
    assert colors[is_right][:, 0].min() < 60 and colors[is_right][:, 2].min() > 150


def seen_colors(texture: ImageArray, uvs: FloatArray) -> ImageArray:
    height, width = texture.shape[:2]
    columns = np.clip(uvs[:, 0] * width, 0, width - 1).astype(int)
    return texture[np.clip((1 - uvs[:, 1]) * height, 0, height - 1).astype(int), columns]


def test_a_picture_that_would_change_keeps_its_triangles() -> None:
    """A small atlas cannot hold a texture of noise."""
    noise = np.random.default_rng(0).integers(0, 2, (512, 512, 1), dtype=np.uint8).repeat(3, axis=2) * 255
    surface = ball(noise, subdivisions=4)
    look = fit_look(surface, *surface.points(), most_faces=1000, side=16)
    assert not look.is_baked and len(look.mesh.faces) == len(surface.corners)


def test_many_faces_are_reduced_fast_and_stay_near() -> None:
    mesh = trimesh.creation.icosphere(subdivisions=6, radius=0.05)
    points, faces = reduce_faces(np.asarray(mesh.vertices), np.asarray(mesh.faces, dtype=np.int32), 6000)
    assert 500 < len(faces) <= 6000
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 0.05, atol=3e-4)


def test_repeated_faces_are_dropped() -> None:
    """A surface whose faces occur 100 times, also from another first corner, looks like the surface itself."""
    surface = ball(checks((20, 30, 160)), subdivisions=1)
    turned = ImportedSurface(
        corners=np.roll(surface.corners, 1, axis=1), uvs=np.roll(surface.uvs, 1, axis=1), texture=surface.texture
    )
    many = join_surfaces([surface, *[turned] * 99], unit_is_known=True, up="z")
    look = fit_look(many, *surface.points())
    assert len(look.mesh.faces) == len(surface.corners) and not look.is_baked


def test_many_faces_at_one_point_share_a_normal() -> None:
    """All pairs of the 40,000 faces of a flat cap would take 13 GB."""
    turns = np.linspace(0, 2 * np.pi, 40_000, endpoint=False)
    rim = np.column_stack([np.cos(turns), np.sin(turns), np.zeros(len(turns))])
    number = np.arange(1, len(rim) + 1)
    faces = np.column_stack([np.zeros_like(number), number, np.roll(number, -1)]).astype(np.int32)
    points = np.vstack([np.zeros(3), rim])
    _, _, normals, _ = smooth_normals(points, faces, np.zeros((len(points), 2)), 0.7)
    np.testing.assert_allclose(normals, np.tile([0.0, 0, 1], (len(normals), 1)), atol=1e-9)
