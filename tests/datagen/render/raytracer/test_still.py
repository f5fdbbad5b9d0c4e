import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nimbus.datagen.render.scene_renderer import SceneRenderer
from tests.support.render_scene import layout, stage_and_robot, states

IMAGES = ("rgb", "depth", "instance", "semantic", "normals", "boxes_2d", "visibility")
MOST = 8


def random_moves(seed):
    """Return bodies, some of which move at some steps: far, by a micrometer, or by a rotation in place."""
    rng = np.random.default_rng(seed)
    names, positions, wxyz = states()
    rows = rng.integers(0, len(positions), MOST).cumsum() // 4 % len(positions)
    positions, wxyz = positions[rows], wxyz[rows]
    for body in rng.permutation(len(names))[: rng.integers(0, 4)]:
        steps = np.sort(rng.integers(0, MOST, 2))
        far = rng.choice([1e-6, 0.01, 0.2])
        positions[steps[0] : steps[1], body] += rng.normal(size=3) * far
        turned = wxyz[steps[0] : steps[1], body] + rng.normal(size=4) * rng.choice([0.0, 1e-6, 0.5])
        wxyz[steps[0] : steps[1], body] = turned / np.linalg.norm(turned, axis=-1, keepdims=True)
    return names, positions, wxyz


@pytest.fixture(scope="module")
def renderers():
    """Return renderers by the number of steps in a stack; those without reuse render all steps at once."""
    stage, robot = stage_and_robot()
    stacks = (1, 2, MOST, MOST + 1)
    found = {stack: SceneRenderer(stage, robot, stack=stack, reuse=stack <= MOST) for stack in stacks}
    for renderer in found.values():
        renderer.load(layout(width=76, height=60))
    return found


def rendered(renderer, names, positions, wxyz):
    """Return the images by camera and name."""
    stacks = []
    for start in range(0, len(positions), renderer.stack):
        rows = slice(start, start + renderer.stack)
        stacks.append(renderer.render(names, positions[rows], wxyz[rows]))
    return {
        (camera, name): np.concatenate([getattr(frames[camera], name) for frames in stacks])
        for camera in stacks[0]
        for name in IMAGES
    }


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_reused_pixels_are_those_rendered_afresh(renderers, seed):
    """The images are equal for all stack sizes and all earlier images; each example begins with the images of the
    previous one.
    """
    moves = random_moves(seed)
    expected = rendered(renderers[MOST + 1], *moves)
    for stack in (1, 2, MOST):
        for key, images in rendered(renderers[stack], *moves).items():
            np.testing.assert_array_equal(images, expected[key], err_msg=f"stack {stack}: {key}")


def test_pixels_are_reused_where_nothing_moves(renderers):
    """With the arm at rest, no tile of the front camera is rendered; when an object moves, the tiles around it are."""
    names, positions, wxyz = states()
    positions, wxyz = positions[:1], wxyz[:1]
    renderer = renderers[1]
    renderer.render(names, positions, wxyz)
    front = renderer.cameras[0]

    def stale():
        return renderer._renderer._shown[front].view.stale.numpy().mean()

    renderer.render(names, positions, wxyz)
    assert stale() == 0
    positions = positions.copy()
    positions[0, names.index("items_1")] += (0.0, 0.02, 0.0)
    renderer.render(names, positions, wxyz)
    assert 0 < stale() < 0.3
