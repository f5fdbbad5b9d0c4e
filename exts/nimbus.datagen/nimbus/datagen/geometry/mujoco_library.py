"""MuJoCo without its windows and its log file; all modules import MuJoCo from here.

The current folder may be a dataset of other people. MuJoCo's window library, which Nimbus does not use, would load
shared libraries and Python modules from it, and MuJoCo would append each warning to a file ``MUJOCO_LOG.TXT`` there.
That file may be a link to a private file, and a warning may contain names from a foreign model.
"""

from __future__ import annotations

import logging
import os

__all__ = ["mujoco"]

_GL = "MUJOCO_GL"
_asked = os.environ.get(_GL)
if _asked not in ("egl", "osmesa"):  # these two render without windows
    os.environ[_GL] = "disable"
import mujoco  # noqa: E402

os.environ.pop(_GL, None)
if _asked is not None:
    os.environ[_GL] = _asked
mujoco.set_mju_user_warning(logging.getLogger("nimbus.mujoco").debug)
