"""Articulated assets of URDF and MJCF: published layouts with synthetic meshes, parts, handles, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh

from nimbus.datagen.assets.articulated.links import Notebook
from nimbus.datagen.assets.articulated.prepare import make_articulated
from nimbus.datagen.assets.card import read_card
from nimbus.datagen.assets.decisions import Value
from nimbus.datagen.assets.found import FoundAsset, found_from_plain
from nimbus.datagen.assets.import_library import import_assets
from nimbus.datagen.assets.layouts import recognize
from nimbus.datagen.objects.libraries import open_library
from nimbus.datagen.objects.prepared.shape_file import AssetShape, read_shape, shape_bytes
from tests.support.refusals import refusal

CASE = (((-0.5, 0, 0), (0.5, 0.5, 0.02)), ((-0.5, 0.48, 0), (0.5, 0.5, 0.6)), ((-0.5, 0, 0.58), (0.5, 0.5, 0.6)))
DRAWER = (((-0.45, 0.0, 0.05), (0.45, 0.02, 0.5)), ((-0.45, 0.02, 0.05), (0.45, 0.4, 0.07)))
HANDLE = (
    ((-0.2, -0.12, 0.28), (0.2, -0.1, 0.3)),
    ((-0.2, -0.1, 0.28), (-0.18, 0, 0.3)),
    ((0.18, -0.1, 0.28), (0.2, 0, 0.3)),
)
"""Boxes of a cabinet of PartNet size, as (lower, upper); the front at -y is turned to -x."""


BOXES = {"case": CASE, "front": DRAWER, "handle": HANDLE, "gone": ()}


def write_partnet(folder: Path, joint: str = "", limit: str = '<limit lower="0" upper="0.35"/>') -> Path:
    """Write a cabinet with one drawer in the layout of PartNet-Mobility."""
    (folder / "textured_objs").mkdir(parents=True)
    for name, boxes in BOXES.items():
        for number, box in enumerate(boxes):
            trimesh.creation.box(bounds=box).export(folder / "textured_objs" / f"{name}-{number}.obj")

    def visuals(*names: str) -> str:
        """Write visuals and collisions of a link, as in PartNet: one mesh per convex part."""
        files = [f"{name}-{number}" for name in names for number in range(max(len(BOXES[name]), 1))]
        geometry = '<geometry><mesh filename="textured_objs/{0}.obj"/></geometry>'
        both = f'<visual name="{{0}}">{geometry}</visual><collision>{geometry}</collision>'
        return "".join(both.format(name) for name in files)

    (folder / "mobility.urdf").write_text(f"""<robot name="p"><link name="base"/>
      <link name="link_0">{visuals("front", "handle", "gone")}</link><link name="link_1">{visuals("case")}</link>
      <joint name="joint_1" type="fixed"><origin rpy="0 0 -1.570796"/><parent link="base"/>
      <child link="link_1"/></joint>
      <joint name="joint_0" type="prismatic"><axis xyz="0 -1 0"/>{limit}
        <parent link="link_1"/><child link="link_0"/></joint>{joint}</robot>""")
    (folder / "semantics.txt").write_text("link_0 slider drawer\nlink_1 heavy furniture_body\n")
    (folder / "meta.json").write_text(json.dumps({"model_cat": "StorageFurniture"}))
    return folder


def only_asset(root: Path) -> FoundAsset:
    (asset,) = (found_from_plain(one) for one in recognize(str(root)))
    return asset


def prepare(root: Path, given: dict[str, Value] | None = None) -> tuple[AssetShape | None, Notebook]:
    book = Notebook({"scale": 0.5} | (given or {}))
    return make_articulated(root, only_asset(root), book), book


@pytest.fixture(scope="module")
def cabinet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("partnet")
    write_partnet(root / "45780")
    return root


def test_partnet_drawer_has_its_named_handle(cabinet: Path) -> None:
    asset = only_asset(cabinet)
    assert (asset.layout, asset.name) == ("partnet", "StorageFurniture_45780")
    shape, book = prepare(cabinet)
    assert shape is not None
    (part,) = shape.parts
    assert (part.name, part.joint.kind, part.joint.range) == ("drawer", "slide", pytest.approx((0.0, 0.175)))
    assert np.allclose(part.joint.axis, (-1, 0, 0), atol=1e-5)
    x, y, z = (part.joint.origin + part.handles[0].position).tolist()
    assert x == pytest.approx(-0.125 - 0.055, abs=0.008) and abs(y) < 0.1 and z == pytest.approx(-0.005, abs=0.006)
    assert part.handles[0].width == pytest.approx(0.01, abs=0.002)
    assert all(press.normal[0] < -0.9 for press in part.pressings) and part.pressings
    assert "by its name" in book.decisions["drawer.handle"].why
    assert only_asset(cabinet).notes == ("mesh 'textured_objs/gone-0.obj' is missing and is omitted",)


def test_a_shape_with_parts_is_read_back(cabinet: Path, tmp_path: Path) -> None:
    import hashlib

    shape, _ = prepare(cabinet)
    assert shape is not None
    content = shape_bytes(shape)
    (tmp_path / "shape.npz").write_bytes(content)
    again = read_shape(tmp_path / "shape.npz", hashlib.sha256(content).hexdigest())
    assert shape_bytes(again) == content
    assert again.parts[0].handles[0].turns == shape.parts[0].handles[0].turns


def test_decisions_of_parts_can_be_overridden(cabinet: Path) -> None:
    shape, book = prepare(
        cabinet, {"drawer.upper": 0.1, "front": "-y", "drawer.friction": 3.0, "drawer.handle": "none"}
    )
    assert shape is not None
    (part,) = shape.parts
    assert part.joint.range == (0.0, 0.1) and part.joint.friction == 3.0 and not part.handles
    assert np.allclose(part.joint.axis, (0, 1, 0), atol=1e-5)
    assert book.decisions["drawer.upper"].why == "given"
    assert prepare(cabinet, {"drawer.moves": "fixed"})[0] is None
    assert "leave no range" in refusal(prepare, cabinet, {"drawer.upper": -1.0})
    assert "'left' is not a position; write auto, none, or x y" in refusal(prepare, cabinet, {"drawer.handle": "left"})


def _both(place: str, size: str) -> str:
    """Write a visual box and a collision box."""
    box = f'type="box" size="{size}" pos="{place}"/>'
    return f'<geom class="visual" {box}<geom {box}'


def test_a_wrong_field_of_a_part_costs_a_line(tmp_path: Path) -> None:
    card, automatic = tmp_path / "asset.yaml", {"drawer.moves": "slide", "drawer.lower": 0.0}

    def read(field: str, value: str) -> dict[str, Value]:
        """Read a card with one decision."""
        card.write_text(f"kind: desk\ndecisions: {{{field}: {{value: {value}}}}}\n")
        return read_card(card, automatic)[0]

    assert read("drawer.lower", "-0.1") == {"drawer.lower": -0.1}
    assert "no decision 'drawer.lowest'; did you mean 'drawer.lower'?" in refusal(read, "drawer.lowest", "1.0")
    assert "no decision 'door.moves'" in refusal(read, "door.moves", "hinge")
    assert "slide" in refusal(read, "drawer.moves", "ball")
    assert "'far' is not a number" in refusal(read, "drawer.upper", "far")
    assert "-1.0 is not a number above 0" in refusal(read, "drawer.friction", "-1.0")


ROBOCASA = f"""<mujoco><compiler angle="radian"/>
  <default><default class="visual"><geom group="1" contype="0" conaffinity="0"/></default>
    <default class="region"><geom group="1" contype="0" conaffinity="0" rgba="0 1 0 0"/></default></default>
  <worldbody><body><body name="object">{_both("0 0 -0.09", "0.15 0.1 0.01")}
    <geom class="region" name="reg_int" type="box" size="1 1 1"/>
    <body name="door" pos="0.15 -0.1 0"><joint name="microjoint" axis="0 0 -1" range="-1.5 0"/>
      {_both("-0.15 0 0", "0.15 0.01 0.08")}{_both("-0.26 -0.04 0", "0.008 0.03 0.05")}
    </body></body><site name="bottom_site"/></body></worldbody></mujoco>"""


def test_robocasa_door_is_found_by_shape(tmp_path: Path) -> None:
    (tmp_path / "microwave_1").mkdir()
    (tmp_path / "microwave_1" / "model.xml").write_text(ROBOCASA)
    asset = only_asset(tmp_path)
    assert (asset.layout, asset.name, len(asset.parts)) == ("robocasa", "microwave_1", 6)
    shape, book = prepare(tmp_path, {"scale": 1.0})
    assert shape is not None
    (door,) = shape.parts
    assert (door.name, door.joint.range) == ("door", pytest.approx((0.0, 1.5)))
    assert np.allclose(door.joint.axis, (0, 0, 1)) and book.decisions["door.closed"].value == "upper"
    assert book.decisions["front"].value == "-y"
    assert np.allclose((door.joint.origin + door.handles[0].position)[1], 0.11, atol=0.01)  # far from the hinge
    assert len(shape.pieces) == 1 and len(door.convex_pieces) == 2


def test_drawers_in_each_other_are_held_still(tmp_path: Path) -> None:
    box = "<geom type='box' size='0.05 0.05 0.02' pos='0 {} 0'/>"
    bodies = "".join(
        f"<body name='{name}'><joint name='{name}' type='slide' axis='0 {way} 0' range='0 0.1'/>{box.format(y)}</body>"
        for name, way, y in (("inner", -1, 0), ("outer", 1, -0.13))
    )
    base = "<geom type='box' size='0.06 0.1 0.01' pos='0 0 -0.03'/>"
    (tmp_path / "desk.xml").write_text(f"<mujoco><worldbody><body>{base}{bodies}</body></worldbody></mujoco>")
    shape, book = prepare(tmp_path, {"scale": 1.0, "inner.closed": "lower", "outer.closed": "lower"})
    assert shape is not None and len(shape.parts) == 1
    assert "stops at" in book.notes[0] and ", against " in book.notes[0] and book.notes[0].endswith("; it is fixed")


def urdf(*joints: str, links: int = 2) -> str:
    visual = '<visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>'
    made = "".join(f'<link name="l{number}">{visual}</link>' for number in range(links))
    return f'<robot name="r">{made}{"".join(joints)}</robot>'


def joint(
    number: int = 1, *, parent: int = 0, kind: str = "revolute", inner: str = '<limit lower="0" upper="1"/>'
) -> str:
    ends = f'<parent link="l{parent}"/><child link="l{number}"/>'
    return f'<joint name="j{number}" type="{kind}">{ends}{inner}</joint>'


HELD = {
    "upside down": (
        joint(inner='<limit lower="1" upper="0"/>'),
        "has its lower limit 1 above its upper limit 0; it is fixed",
    ),
    "mimic": (joint(inner='<limit lower="0" upper="1"/><mimic joint="j9"/>'), "follows 'j9' (mimic); it is fixed"),
    "slide without limits": (joint(kind="prismatic", inner=""), "slides without limits; it is fixed"),
    "floating": (joint(kind="floating", inner=""), "is of type floating; it is fixed"),
    "no axis": (joint(inner='<axis xyz="0 0 0"/><limit lower="0" upper="1"/>'), "has no axis; it is fixed"),
    "no numbers": (joint(inner='<limit lower="x" upper="1"/>'), "has limits that are not numbers; it is fixed"),
}


@pytest.mark.parametrize("case", HELD)
def test_a_joint_with_a_flaw_is_held_still(tmp_path: Path, case: str) -> None:
    text, line = HELD[case]
    (tmp_path / "thing.urdf").write_text(urdf(text))
    asset = only_asset(tmp_path)
    assert not asset.refused and any(note.endswith(line) for note in asset.notes)
    assert make_articulated(tmp_path, asset, Notebook({})) is None


REFUSED = {
    "cycle": (urdf(joint(1), joint(0, parent=1)), "the fixed joints form a cycle"),
    "too many": (urdf(*(joint(number) for number in range(1, 201)), links=201), "has 200 joints; the limit is 24"),
    "robot": (urdf(*(joint(one, parent=one - 1) for one in (1, 2, 3)), links=4), "is part of a chain of moving joints"),
    "entity": ('<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]><robot>&e;</robot>', "declares XML entities"),
    "xacro": (
        '<robot xmlns:xacro="http://ros.org/wiki/xacro"><xacro:property name="r2" value="0.1"/></robot>',
        "expand them first: xacro IN.urdf.xacro > OUT.urdf",
    ),
    "xacro value": (urdf(joint(inner='<origin xyz="${x} 0 0"/>')), "contains xacro macros"),
    "no mesh": (
        '<robot><link name="a"><visual><geometry><mesh filename="../../x.obj"/></geometry></visual></link></robot>',
        "mesh '../../x.obj' is missing and is omitted",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_urdf_costs_one_line(tmp_path: Path, case: str) -> None:
    text, line = REFUSED[case]
    (tmp_path / "in").mkdir()
    (tmp_path / "x.obj").write_text("secret")
    (tmp_path / "in" / "thing.urdf").write_text(text)
    assert line in only_asset(tmp_path / "in").refused


def test_mjcf_includes_stay_below_the_source(tmp_path: Path) -> None:
    (tmp_path / "out.xml").write_text("<mujocoinclude><body><geom type='box' size='1 1 1'/></body></mujocoinclude>")
    root = tmp_path / "in"
    root.mkdir()
    box = "<body name='b'><geom type='box' size='.05 .05 .05' mass='0'/><geom type='sphere' size='.05'/></body>"
    world = f"<worldbody><include file='../out.xml'/>{box}</worldbody>"
    (root / "thing.xml").write_text(f"<mujoco>{world}</mujoco>")
    (root / "again.xml").write_text("<mujoco><include file='again.xml'/></mujoco>")
    (root / "evil.xml").write_text("<!DOCTYPE m [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><mujoco>&e;</mujoco>")
    (root / "web.xml").write_text("<!DOCTYPE html><html></html>")
    found = {asset.name: asset for asset in map(found_from_plain, recognize(str(root)))}
    assert found["thing"].notes == (
        "the included file '../out.xml' is missing below the source and is omitted",
        "a mass of 0 is ignored",
    )
    assert len(found["thing"].parts) == 2 and "includes itself" in found["again"].refused
    assert "entities" in found["evil"].refused and "web" not in found


@pytest.mark.slow
def test_an_imported_cabinet_is_opened_as_library(cabinet: Path, tmp_path: Path) -> None:
    import_assets([cabinet], tmp_path / "lib")
    card = tmp_path / "lib" / "storagefurniture_45780" / "asset.yaml"
    assert "drawer.closed" in card.read_text() and "handles" in (card.parent / "page.html").read_text()
    model = open_library(f"{tmp_path / 'lib'}/").model("storagefurniture_45780", 0)
    assert model.anchored and model.part("drawer").handles
    assert 0.3 < np.ptp(model.bounds, axis=0).max() < 0.36  # PartNet has no unit
