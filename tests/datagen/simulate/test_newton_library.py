"""Newton follows only the files of a stage that USD reports, which a foreign scene is checked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from nimbus.datagen.simulate.newton_library import newton

STAGE = """#usda 1.0
def Mesh "sheet" (prepend apiSchemas = ["MaterialBindingAPI"]) {
    point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
    int[] faceVertexCounts = [4]
    int[] faceVertexIndices = [0, 1, 2, 3]
    texCoord2f[] primvars:st = [(0, 0), (1, 0), (1, 1), (0, 1)] (interpolation = "vertex")
    rel material:binding = </look>
}
def Material "look" {
    token outputs:surface.connect = </look/surface.outputs:surface>
    def Shader "surface" {
        uniform token info:id = "UsdPreviewSurface"
        color3f inputs:diffuseColor.connect = </look/image.outputs:rgb>
        token outputs:surface
    }
    def Shader "image" {
        uniform token info:id = "UsdUVTexture"
        TYPE inputs:file = VALUE
        token inputs:sourceColorSpace = "SPACE"
        float3 outputs:rgb
    }
}
"""


@pytest.mark.parametrize("space", ["auto", "raw"])
@pytest.mark.parametrize(("kind", "quotes", "is_opened"), [("asset", "@@", True), ("string", '""', False)])
def test_a_texture_is_an_asset_of_the_stage(tmp_path: Path, kind: str, quotes: str, space: str, is_opened: bool):
    picture = tmp_path / "private.png"
    Image.new("RGB", (4, 4), "red").save(picture)
    stage = tmp_path / "scene.usda"
    text = STAGE.replace("TYPE", kind).replace("VALUE", f"{quotes[0]}{picture}{quotes[1]}").replace("SPACE", space)
    stage.write_text(text)
    builder = newton.ModelBuilder()
    builder.add_usd(str(stage))
    assert [mesh.texture is not None for mesh in builder.shape_source] == [is_opened]


def test_an_address_is_no_texture():
    """Newton would ask the server, and draw the answer."""
    from newton._src.usd import utils
    from pxr import Sdf

    assert newton.ModelBuilder is not None
    assert utils._resolve_asset_path(Sdf.AssetPath("http://127.0.0.1:1/x.png"), None) is None
