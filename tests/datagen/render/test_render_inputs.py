"""The renderer runs without USD and without a simulator."""

from __future__ import annotations

import subprocess
import sys

_FOREIGN = {"newton", "pxr", "mujoco", "scipy", "pydantic"}


def test_core_of_the_renderer_needs_no_usd():
    code = f"""
import sys
import nimbus.datagen.render.stacked
found = {_FOREIGN} & set(sys.modules)
assert not found, found
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
