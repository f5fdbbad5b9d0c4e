"""MuJoCo with its warnings in a log. All modules import it from here.

By default, its library appends each warning to ``MUJOCO_LOG.TXT`` in the current folder, through links. A warning may
contain a name from the model, so a folder of another user with a robot and such a link could write to any file of this
user. The callback is set with the import, because every process that compiles a model needs it, also short ones.
"""

from __future__ import annotations

import logging

import mujoco

__all__ = ["mujoco"]

mujoco.set_mju_user_warning(logging.getLogger("nimbus.mujoco").debug)
