"""MuJoCo without its effects on and from the current folder. All modules import it from here.

By default, its library appends each warning to ``MUJOCO_LOG.TXT`` in the current folder, through links. A warning may
contain a name from the model, so a folder of another user with a robot and such a link could write to any file of this
user. Its Python package imports GLFW for windows, which Nimbus does not open. GLFW runs an interpreter that imports
modules from the current folder, and it loads ``libglfw.so`` from there. Both are prevented with the import, because
every process that imports MuJoCo needs it, also short ones.
"""

from __future__ import annotations

import logging
import sys

_WINDOWS = "glfw"
_is_hidden = sys.modules.setdefault(_WINDOWS, None) is None  # pyright: ignore[reportArgumentType, reportCallIssue]
try:
    import mujoco
finally:
    if _is_hidden:
        del sys.modules[_WINDOWS]

__all__ = ["mujoco"]

mujoco.set_mju_user_warning(logging.getLogger("nimbus.mujoco").debug)
