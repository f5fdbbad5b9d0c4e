"""CPU milliseconds of robosuite's offscreen RGB views, front and wrist; run by a Python that has robosuite 1.5.

Robosuite does not run with MuJoCo 4, so it needs a separate environment: ``pip install robosuite==1.5.2
mujoco==3.3.0``.

The last line of the output is JSON. The images are checked, because an OpenGL context that is not current gives black
images in almost no time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from importlib import import_module
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")
CAMERAS = {"front": "frontview", "wrist": "robot0_eye_in_hand"}
WIDTH, HEIGHT, VIEWS = 320, 240, 16


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    robosuite: Any = import_module("robosuite")
    env = robosuite.make(
        "PickPlace",
        robots="Panda",
        has_renderer=False,
        has_offscreen_renderer=True,
        use_camera_obs=False,
        camera_names=list(CAMERAS.values()),
    )
    env.reset()
    # The reset makes another context, and freeing the first one leaves no current context: images would be black.
    env.sim._render_context_offscreen.gl_ctx.make_current()
    found: dict[str, float] = {}
    for name, camera in CAMERAS.items():
        image = env.sim.render(camera_name=camera, width=WIDTH, height=HEIGHT)
        times = []
        for _ in range(options.turns):
            start = time.process_time()
            for _ in range(VIEWS):
                image = env.sim.render(camera_name=camera, width=WIDTH, height=HEIGHT)
            times.append((time.process_time() - start) / VIEWS * 1e3)
        found[f"robosuite {name}"] = min(times)
        if image.std() < 1.0 or min(times) < 1.0:
            raise RuntimeError(f"the image of {camera} is empty, or it was not rendered")
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
