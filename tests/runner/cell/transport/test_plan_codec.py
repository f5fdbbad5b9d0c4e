from __future__ import annotations

import importlib
import json
import struct
import zlib
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.episode.layout import EpisodeKey, Layout
from nimbus.datagen.episode.trajectory import Outcome, Trajectory
from nimbus.datagen.execute.planner import run_attempt
from nimbus.datagen.files.codec import flatten, to_json
from nimbus.datagen.random_streams import generator
from nimbus.datagen.randomize.tabletop import draw_physical, draw_visual
from nimbus.datagen.simulate.newton import NewtonSimulation
from nimbus.datagen.stages import Planned, Randomized, Request, Scene
from nimbus.runner.cell.transport.plan_codec import VERSION, WireError, decode, encode
from tests.support import one_can
from tests.support.synthetic import failure, make_layout, make_rendered, make_trajectory

SCENE = make_rendered().scene
PREFIX = struct.Struct("<8sIIQQ")


def planned(**changes: Any) -> Planned:
    item = Planned(
        scene=SCENE,
        layouts=(make_layout(3), make_layout(3, variant=1)),
        trajectory=make_trajectory(3),
        attempt=2,
        final=False,
        times={"plan": 1.25, "load": 1e-9},
    )
    return replace(item, **changes)


def content_of(item: Planned | Randomized) -> bytes:
    return b"".join(encode(item))


def assert_equal(found: Any, wanted: Any, path: str = "item") -> None:
    """Check that values are equal in type, order and every bit."""
    assert type(found) is type(wanted), path
    if isinstance(wanted, np.ndarray):
        assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes()), path
    elif hasattr(wanted, "__dataclass_fields__"):
        for field in fields(wanted):
            assert_equal(getattr(found, field.name), getattr(wanted, field.name), f"{path}.{field.name}")
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted), path
        for name in wanted:
            assert_equal(found[name], wanted[name], f"{path}.{name}")
    elif isinstance(wanted, tuple | list):
        assert len(found) == len(wanted), path
        for row, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_equal(one, other, f"{path}.{row}")
    else:
        assert repr(found) == repr(wanted), path


def test_a_plan_comes_back_bit_for_bit() -> None:
    item = planned()
    assert_equal(replace(decode(content_of(item), SCENE), scene=SCENE), item)


def test_a_plan_that_was_really_executed_comes_back_bit_for_bit() -> None:
    task, assets = one_can.task(), one_can.assets()
    simulation = NewtonSimulation(assets.stage, assets.robot, rate=task.rate)
    physical = draw_physical(task, assets, seed=0, index=0)
    trajectory = run_attempt(task, simulation, physical, streams=partial(generator, 0, 0, "attempt", 0), planner="ompl")
    key = EpisodeKey(task=task.name, task_hash=task.content_hash, seed=0, index=0)
    visual = draw_visual(task, assets.stage, assets.robot, physical, key=key)
    item = planned(layouts=(Layout(key=key, physical=physical, visual=visual),), trajectory=trajectory)
    assert_equal(decode(content_of(item), SCENE), item)
    assert trajectory.step_count > 20


def test_a_failed_plan_without_steps_comes_back_too() -> None:
    trajectory = replace(make_trajectory(steps=0, outcome=failure()), segments=(), contacts={})
    item = planned(trajectory=trajectory)
    assert_equal(decode(content_of(item), SCENE), item)


def test_layouts_that_are_to_be_planned_and_rendered_in_one_go_come_back(tmp_path: Path) -> None:
    (tmp_path / "map.txt").write_text("....\n.##.\n")
    robot: Any = importlib.import_module("tests.support.point_robot")
    scene = next(iter(robot.MapLoader(tmp_path / "map.txt", []).process(Request(index=4, variants=(0, 2)))))
    item = next(iter(robot.StartAndGoal(seed=1, log=[]).process(scene)))
    decoded = decode(content_of(item), scene)
    assert_equal(replace(decoded, scene=SCENE), replace(item, scene=SCENE))
    assert decoded.scene is scene
    stored, decoded_text = (to_json(layout) for layout in (item.layouts[0], decoded.layouts[0]))
    assert stored == decoded_text, "a whole number in a vector of floats must not turn into a float on the way"


BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])


@settings(max_examples=30)
@given(st.lists(BITS, max_size=12), st.floats(), st.dictionaries(st.text(), st.lists(BITS, max_size=3), max_size=3))
def test_any_numbers_and_names_come_back_even_those_that_are_none(
    values: list[float], rate: float, contacts: dict[str, list[float]]
) -> None:
    row = np.array(values)
    changes: dict[str, Any] = {"rate": rate, "time": row, "contacts": {k: np.array(v) for k, v in contacts.items()}}
    item = planned(trajectory=replace(make_trajectory(), **changes))
    assert_equal(decode(content_of(item), SCENE), item)


def test_arrays_of_any_memory_layout_come_back_in_rows() -> None:
    whole = np.arange(24.0).reshape(4, 6)
    for array in (np.asfortranarray(whole), whole[::2, ::-1], np.broadcast_to(whole[0], (5, 6)), whole[:, :0]):
        decoded = cast(
            Planned, decode(content_of(planned(trajectory=replace(make_trajectory(), actions=array))), SCENE)
        )
        assert_equal(decoded.trajectory.actions, np.array(array, order="C"))


def test_what_was_decoded_outlives_the_buffer() -> None:
    buffer = bytearray(content_of(planned()))
    decoded = cast(Planned, decode(memoryview(buffer), SCENE))
    buffer[:] = bytes(len(buffer))
    assert_equal(decoded, planned())


def test_raw_arrays_begin_at_multiples_of_64_bytes() -> None:
    content = content_of(planned())
    *_, header_bytes = PREFIX.unpack_from(content)
    header = json.loads(content[PREFIX.size :][:header_bytes])
    start = PREFIX.size + header_bytes
    assert start % 64 == 0
    entry = header["arrays"][header["fields"]["trajectory"]["joint_positions"]["__array__"]]
    assert entry["offset"] % 64 == 0 and entry["shape"] == [20, 9] and entry["dtype"] == "<f8"
    raw = np.frombuffer(content, "<f8", 180, start + entry["offset"])
    assert np.array_equal(raw, make_trajectory(3).joint_positions.ravel())


def test_every_field_of_a_trajectory_is_in_the_header() -> None:
    content = content_of(planned())
    header = json.loads(content[PREFIX.size :][: PREFIX.unpack_from(content)[4]])
    assert set(header["fields"]) == {field.name for field in fields(Planned)} - {"scene"}
    assert set(header["fields"]["trajectory"]) == {field.name for field in fields(Trajectory)}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"attempt": "2"}, "attempt: Expected `int`, got `str`"),
        ({"final": 1}, "final: Expected `bool`, got `int`"),
        ({"times": {3: 1.0}}, "Expected `str`, got `int` - at `key` in"),
        (
            {"trajectory": replace(make_trajectory(), time=np.zeros(3, np.float32))},
            "trajectory.time: expected an array of float64, found float32",
        ),
        ({"trajectory": replace(make_trajectory(), time=cast(Any, [0.0]))}, "expected an array of float64, found list"),
        (
            {"trajectory": replace(make_trajectory(), outcome=cast(Any, "won"))},
            "outcome: Expected `object`, got `str`",
        ),
        (
            {"layouts": (replace(make_layout(), key=cast(Any, 1)),)},
            r"layouts\[0\].key: Expected `object`, got `int`",
        ),
    ],
)
def test_a_field_that_holds_something_else_than_it_says_is_not_sent(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(TypeError, match=what):
        encode(planned(**changes))


CONTENT = content_of(planned())


@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
def test_no_changed_byte_passes(position: int, change: int) -> None:
    damaged = bytearray(CONTENT)
    damaged[position] ^= change
    with pytest.raises(WireError):
        decode(bytes(damaged), SCENE)


@given(st.integers(0, len(CONTENT) + 100))
def test_no_cut_or_lengthened_content_passes(length: int) -> None:
    changed = CONTENT[:length].ljust(length, b"\0")
    if length == len(CONTENT):
        assert_equal(decode(changed, SCENE), planned())
    else:
        with pytest.raises(WireError):
            decode(changed, SCENE)


@given(st.binary(max_size=300))
def test_no_other_bytes_pass(content: bytes) -> None:
    with pytest.raises(WireError):
        decode(content, SCENE)
    with pytest.raises(WireError):
        decode(CONTENT[:8] + content, SCENE)


def test_another_version_is_named() -> None:
    other = CONTENT[:8] + struct.pack("<I", VERSION + 1) + CONTENT[12:]
    with pytest.raises(WireError, match=f"version {VERSION + 1}, this is version {VERSION}"):
        decode(other, SCENE)


def sealed(content: bytes) -> bytes:
    """Return content with a matching checksum, as a bug in Nimbus could write it."""
    return content[:12] + struct.pack("<I", zlib.crc32(content[16:])) + content[16:]


def with_header(change: Any) -> bytes:
    """Return the same content with a changed header, as if it had been written so."""
    magic, version, _, _, header_bytes = PREFIX.unpack_from(CONTENT)
    header = json.loads(CONTENT[PREFIX.size : PREFIX.size + header_bytes])
    change(header)
    text = json.dumps(header).encode()
    text = text.ljust(len(text) + -(PREFIX.size + len(text)) % 64)
    rest = CONTENT[PREFIX.size + header_bytes :]
    sizes = (PREFIX.size + len(text) + len(rest), len(text))
    return sealed(PREFIX.pack(magic, version, 0, *sizes) + text + rest)


def _first_array(**changes: Any) -> Any:
    return lambda header: header["arrays"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_first_array(dtype="<i8"), "expected an array of float64, found int64"),
        (_first_array(dtype="O"), "type 'O' is not allowed"),
        (_first_array(dtype="<c16"), "is not allowed"),
        (_first_array(dtype=["<f8"]), "invalid header"),
        (_first_array(shape=[1 << 40]), "shape"),
        (_first_array(shape=[-20]), "shape"),
        (_first_array(shape=[20.0]), "shape"),
        (_first_array(shape=[0] + [2**31 - 1] * 7), "invalid header"),
        (_first_array(shape=[1] * 9), "shape"),
        (_first_array(shape=20), "invalid header"),
        (_first_array(offset=8), "bytes at 8"),
        (_first_array(offset=1 << 20), "bytes at 1048576 of"),
        (_first_array(offset=-64), "shape"),
        (_first_array(extra=1), "invalid header"),
        (lambda header: header["arrays"].pop(), "expected an array of float64, found dict"),
        (lambda header: header["arrays"].append(header["arrays"][0]), "arrays without a field"),
        (lambda header: header["fields"].pop("attempt"), "missing required field `attempt`"),
        (lambda header: header["fields"].update(scene=None), "unknown field `scene`"),
        (lambda header: header["fields"].update(attempt=True), "attempt: Expected `int`, got `bool`"),
        (lambda header: header["fields"].update(layouts={}), "layouts: Expected `array`, got `object`"),
        (lambda header: header["fields"]["trajectory"].update(time=1), "time: expected an array of float64, found int"),
        (
            lambda header: header["fields"]["trajectory"].update(time=None),
            "time: expected an array of float64, found NoneType",
        ),
        (lambda header: header["fields"]["trajectory"]["outcome"].update(reason="Bored"), "Invalid enum value 'Bored'"),
        (
            lambda header: header["fields"]["layouts"][0]["visual"]["light"]["color"].pop(),
            "Expected `array` of length 3",
        ),
        (lambda header: header.update(kind="stored"), "invalid header: KeyError"),
        (lambda header: header.update(kind="randomized"), "unknown field"),
        (lambda header: header.clear(), "invalid header"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_and_says_why(change: Any, what: str) -> None:
    with pytest.raises(WireError, match=what):
        decode(with_header(change), SCENE)


@settings(max_examples=300)
@given(st.integers(16, PREFIX.unpack_from(CONTENT)[4] + PREFIX.size - 1), st.integers(1, 255))
def test_a_damaged_header_with_a_good_checksum_gives_an_item_of_the_right_shape_or_an_error(
    position: int, change: int
) -> None:
    damaged = bytearray(CONTENT)
    damaged[position] ^= change
    try:
        item = decode(sealed(bytes(damaged)), SCENE)
    except WireError:
        return
    assert isinstance(item, Planned) and isinstance(item.trajectory.outcome, Outcome)
    assert all(array.dtype == np.float64 for array in _arrays(item.trajectory))


def _arrays(trajectory: Trajectory) -> list[np.ndarray]:
    _, arrays = flatten(trajectory)
    assert len(arrays) == 13
    return arrays


def test_the_scene_is_the_renderers_own() -> None:
    own = Scene(request=Request(index=3), assets="loaded here", provenance=SCENE.provenance)
    assert decode(CONTENT, own).scene is own
    assert b"loaded here" not in content_of(planned(scene=own))
