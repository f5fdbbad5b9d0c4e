"""MuJoCo without its log file; all modules import MuJoCo from here.

By default, MuJoCo appends each warning to ``MUJOCO_LOG.TXT`` in the current folder. If that folder belongs to somebody
else, the file may be a link to a private file, and a warning may contain names from a foreign model.
"""

from __future__ import annotations

import logging

import mujoco

__all__ = ["mujoco"]

mujoco.set_mju_user_warning(logging.getLogger("nimbus.mujoco").debug)
