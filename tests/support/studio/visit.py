"""A studio in a separate process, and positions of scene points in its page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nimbus.datagen.geometry.transforms import look_at, quat_to_matrix
from nimbus.datagen.ui.browser.scene_view import REGION_GRIP, VIEW_AT, VIEW_FOV, VIEW_FROM
from nimbus.datagen.ui.runs.launch import PACKAGE_FOLDER
from tests.support.studio.browser import Browser

COMMAND = "import sys; from nimbus.runner.cli import main; sys.exit(main())"


@contextmanager
def served(folder: Path, *words: str) -> Iterator[str]:
    """Run ``nimbus studio`` in a folder; return its address."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(PACKAGE_FOLDER), os.environ.get("PYTHONPATH", "")])}
    log = folder / "studio.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "studio", *words], cwd=folder, env=env, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + 300
        while not (found := re.search(r"^open: (http://\S+)$", log.read_text(), re.MULTILINE)):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield found[1]
        assert process.poll() is None, log.read_text()
        assert "Traceback" not in log.read_text(), log.read_text()
    finally:
        process.terminate()
        process.wait(300)


@contextmanager
def visited(address: str, folder: Path) -> Iterator[Browser]:
    """Open a browser that shows the studio's task and its scene."""
    browser = Browser(folder, size=(1200, 780))
    try:
        browser.open(address)
        browser.wait_for("Layouts", within=300)
        browser.settle("ready", within=300)
        browser.dismiss()
        yield browser
    except BaseException:
        browser.picture(folder / "last.png")
        raise
    finally:
        browser.close()


def seen_at(browser: Any, point: tuple[float, float, float]) -> tuple[float, float]:
    """Return the place of a point of the world from the first viewpoint [px]."""
    script = "(b => [b.x, b.y, b.width, b.height])(document.querySelector('canvas').getBoundingClientRect())"
    left, top, width, height = browser.run(script)
    view_T_world = quat_to_matrix(look_at(VIEW_FROM, VIEW_AT)).T
    x, y, z = view_T_world @ (np.asarray(point) - VIEW_FROM)
    focal = height / 2 / np.tan(VIEW_FOV / 2)
    return left + width / 2 - focal * x / z, top + height / 2 + focal * y / z


def drag_region(browser: Any, center: tuple[float, float], height: float, *, by: float) -> None:
    """Drag a region along x by its red arrow [m]."""
    x, y = center
    start = seen_at(browser, (x + 0.6 * REGION_GRIP, y, height))
    browser.drag(start, seen_at(browser, (x + 0.6 * REGION_GRIP + by, y, height)))
