"""The checks of ``nimbus verify-isaacsim`` pass for equal images and fail for different ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nimbus.datagen.episode.observation import CameraFrames
from nimbus.datagen.errors import InputError
from nimbus.runner.commands.verify_isaacsim import command
from nimbus.runner.isaac.compare import compare_with_default, equal, first_images, moving_prims

STEPS, HEIGHT, WIDTH = 3, 12, 16


def frames() -> CameraFrames:
    rng = np.random.default_rng(0)
    instance = np.zeros((STEPS, HEIGHT, WIDTH), np.uint8)
    instance[:, 2:6, 2:8], instance[:, 6:10, 8:14] = 1, 2
    depth = np.where(instance > 0, 1.0, 2.0).astype(np.float32)
    depth[-1, :2] = 1.5
    normals = np.zeros((STEPS, HEIGHT, WIDTH, 3), np.int8)
    normals[..., 2] = 127
    return CameraFrames(
        rgb=rng.integers(60, 200, (STEPS, HEIGHT, WIDTH, 3)).astype(np.uint8),
        depth=depth,
        instance=instance,
        semantic=instance,
        normals=normals,
        boxes_2d=np.zeros((STEPS, 3, 4), np.float32),
        visibility=np.zeros((STEPS, 3), np.float32),
        intrinsics=np.eye(3),
        world_T_camera=np.tile(np.eye(4), (STEPS, 1, 1)),
    )


GOOD = frames()
BLACK = np.zeros_like(GOOD.rgb)


def failed(one: CameraFrames, many: CameraFrames) -> set[str]:
    checks = [*first_images({"a": one}), moving_prims({"a": one}), *equal({"a": one}, {"a": many})]
    checks += compare_with_default({"a": one}, {"a": GOOD})
    return {check.name for check in checks if not check.passed}


def test_images_that_are_equal_pass():
    assert failed(GOOD, GOOD) == set()


@pytest.mark.parametrize(
    ("field", "value", "names"),
    [
        ("rgb", BLACK, {"first rgb", "colors", "brightness as by default"}),
        (
            "depth",
            np.zeros_like(GOOD.depth),
            {"first depth", "first normals", "motion is visible", "depth", "depth as by default"},
        ),
        ("normals", np.zeros_like(GOOD.normals), {"first normals"}),
        ("instance", np.zeros_like(GOOD.instance), {"first instance", "labels"}),
        ("semantic", np.roll(GOOD.semantic, 4, axis=2), {"labels as by default"}),
        ("depth", np.repeat(GOOD.depth[:1], STEPS, axis=0), {"depth", "motion is visible"}),
    ],
)
def test_images_that_are_wrong_are_found(field: str, value: np.ndarray, names: set[str]):
    assert failed(replace(GOOD, **{field: value}), GOOD) == names


def test_every_camera_must_see_what_moves():
    still = replace(GOOD, depth=np.repeat(GOOD.depth[:1], STEPS, axis=0))
    assert moving_prims({"a": GOOD, "b": GOOD}).passed
    assert not moving_prims({"a": GOOD, "b": still}).passed


def test_a_mounted_camera_that_is_a_step_behind_is_found():
    carried = GOOD.world_T_camera.copy()
    carried[:, 0, 3] = 0.01 * np.arange(STEPS)
    known = replace(GOOD, world_T_camera=carried, depth=GOOD.depth + 0.01 * np.arange(STEPS)[:, None, None])
    late = replace(known, depth=known.depth[[0, 0, 1]])
    name = "mounted cameras at the last step"
    found = {check.name: check.passed for check in compare_with_default({"a": late}, {"a": known})}
    assert found[name] is False
    assert {check.name: check.passed for check in compare_with_default({"a": known}, {"a": known})}[name] is True


def test_a_neighbour_in_the_picture_is_found():
    seen, deep = GOOD.instance.copy(), GOOD.depth.copy()
    seen[:, 0, :4], deep[:, :2] = 2, deep[:, :2] + 0.001
    assert failed(GOOD, replace(GOOD, instance=seen, depth=deep)) == {"labels", "depth"}


def test_without_isaac_sim_the_command_is_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NIMBUS_ISAACSIM", "/nowhere")
    with pytest.raises(InputError, match="does not name a Python of Isaac Sim"):
        command()
