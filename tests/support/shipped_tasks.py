"""Shipped tasks, by kind."""

from __future__ import annotations

from nimbus.datagen.files.scene_files import scene_file, scene_names
from nimbus.datagen.files.strict_yaml import read

MANIPULATION = [name for name in scene_names("tasks") if "steps" in read(scene_file("tasks", name, kind="task")).data]
"""Names of the tasks with steps."""
NAVIGATION = [name for name in scene_names("tasks") if name not in MANIPULATION]
"""Names of the tasks with goals."""
