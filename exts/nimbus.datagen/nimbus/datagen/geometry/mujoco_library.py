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
_asked = os.environ.get(_GL, "")
os.environ[_GL] = _asked if _asked in ("egl", "osmesa") else "disable"  # these two render without windows
import mujoco  # noqa: E402

if _asked:
    os.environ[_GL] = _asked
else:
    del os.environ[_GL]
mujoco.set_mju_user_warning(logging.getLogger("nimbus.mujoco").debug)
