"""What a test does to each control of the editor, and what must come of it; a new control needs an entry."""

from __future__ import annotations

import re

TEXTS = {
    "rate": "30",
    "regions.*.on": "floor",
    "regions.*.center": "[0.47, 0.03]",
    "regions.*.size": "[0.21, 0.22]",
    "objects.*.count": "[1, 2]",
    "objects.*.kinds": "[can]",
    "objects.*.yaw": "[-30 deg, 30 deg]",
    "objects.*.lying": "20 %",
    "objects.*.scale": "[90 %, 95 %]",
    "objects.*.distinct": "true",
    "objects.*.anchored": "true",
    "objects.*.joints": "{door: 30 %}",
    "cameras": "front",
    "cameras.*.mount": "hand",
    "cameras.*.position": "[1.1, 0.2, 0.8]",
    "cameras.*.look_at": "[0.4, 0.1, 0.0]",
    "cameras.*.up": "[0, 1, 0]",
    "cameras.*.wxyz": "[1, 0, 0, 0]",
    "cameras.*.vertical_fov": "50 deg",
    "cameras.*.size": "[160, 120]",
    "instructions": "Put it away.\nTidy up.",
    "text": "robot: panda\n",
}
"""New value of each field, by its id with a star for names that the task has given."""

CHOICES = {
    "robot": "ur5",
    "scene": "table",
    "objects.*.library": "blocks",
    "objects.*.region": "other",
    "randomize": "small",
    "vary also": "mass",
    "no longer": "materials",
    "steps for each of": "items",
    "success for each of": "items",
}
"""New choice of each field."""

CHANGE_THE_TASK = (
    *("remove regions.*", "add a region", "remove objects.*", "add objects", "remove cameras.*", "add a camera"),
    *("steps down", "steps remove", "steps add", "success add", "success remove", "undo"),
)
"""Buttons that change the text of the task."""

ACTIONS = {
    "this one": ("show_layout", {"seed": 0, "index": 0}),
    "next": ("show_layout", {"seed": 0, "index": 1}),
    "sample": ("sample", {"seed": 0}),
    "reach": ("reach", {}),
    "clear": ("clear", {}),
    "plan": ("plan", {"seed": 0, "index": 0}),
    "pictures": ("photograph", {}),
    "examine": ("examine", {}),
}
"""Buttons that ask for long work, and what they ask."""

BY_THEMSELVES = (
    *("start from", "save", "save as", "reload", "save over", "redo", "seed", "episode"),
    *("steps", "steps up", "steps skill", "steps change", "success", "success up", "success down"),
    *("success predicate", "success change"),
)
"""Those that have a test of their own among the tests of the extension in Kit."""


def pattern(name: str) -> str:
    """An id with stars for the names that the task has given."""
    return re.sub(r"^((?:remove )?(?:regions|objects|cameras))\.[^.]+", r"\1.*", name)
