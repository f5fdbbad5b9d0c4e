"""The studio's fields: what is typed or chosen in each, and what stands in the task's file then."""

from __future__ import annotations

from typing import Any

from controls import Place

from nimbus.datagen.files.scene_files import scene_folder
from nimbus.datagen.panel.forms import SkillForm

SORT = (scene_folder("tasks") / "sort_trash.yaml").read_text()

FIELDS: dict[Place, tuple[Any, tuple[str | int, ...], Any]] = {
    ("Robot and scene", "robot"): ("ur5", ("robot",), "ur5"),
    ("Robot and scene", "scene"): ("table", ("scene",), "table"),
    ("Robot and scene", "rate"): ("10", ("rate",), 10),
    ("Regions", "start on"): ("floor", ("regions", "start", "on"), "floor"),
    ("Regions", "start center"): ("[0.45, 5 cm]", ("regions", "start", "center"), (0.45, "5 cm")),
    ("Regions", "start size"): ("[0.2, 0.2]", ("regions", "start", "size"), (0.2, 0.2)),
    ("Objects", "items library"): ("blocks", ("objects", "items", "library"), "blocks"),
    ("Objects", "items region"): ("items", ("objects", "items", "region"), "items"),
    ("Objects", "items count"): ("[1, 3]", ("objects", "items", "count"), (1, 3)),
    ("Objects", "items kinds"): ("[can, cup]", ("objects", "items", "kinds"), ("can", "cup")),
    ("Objects", "items yaw"): ("", ("objects", "items", "yaw"), None),
    ("Objects", "items lying"): ("50 %", ("objects", "items", "lying"), "50 %"),
    ("Objects", "items scale"): ("[90 %, 110 %]", ("objects", "items", "scale"), ("90 %", "110 %")),
    ("Objects", "items distinct"): ("true", ("objects", "items", "distinct"), True),
    ("Objects", "items anchored"): ("true", ("objects", "items", "anchored"), True),
    ("Objects", "items joints"): ("{door: 30 %}", ("objects", "items", "joints"), {"door": "30 %"}),
    ("Randomization", "how much"): ("small", ("randomize",), "small"),
    ("Randomization", "camera.position [cm]"): (3.0, ("randomize", "camera", "position"), "3 cm"),
    ("Randomization", "camera.rotation [deg]"): (2.0, ("randomize", "camera", "rotation"), "2 deg"),
    ("Randomization", "light.intensity [%]"): ((50.0, 90.0), ("randomize", "light", "intensity"), ("50 %", "90 %")),
    ("Randomization", "light.temperature [K]"): (
        (4000.0, 5000.0),
        ("randomize", "light", "temperature"),
        ("4000 K", "5000 K"),
    ),
    ("Randomization", "materials.tint [%]"): (10.0, ("randomize", "materials", "tint"), "10 %"),
    ("Randomization", "mass.factor [%]"): ((70.0, 130.0), ("randomize", "mass", "factor"), ("70 %", "130 %")),
    ("Randomization", "friction.factor [%]"): ((70.0, 130.0), ("randomize", "friction", "factor"), ("70 %", "130 %")),
    ("Randomization", "vary also"): (
        "gains",
        ("randomize", "gains"),
        {"stiffness": ("95 %", "105 %"), "damping": ("95 %", "105 %")},
    ),
    ("Randomization", "no longer"): ("mass", ("randomize", "mass"), None),
    ("Cameras", "cameras"): ("front", ("cameras",), "front"),
    ("Language", "instructions"): ("One.\nTwo.", ("instructions",), ("One.", "Two.")),
}
"""What is typed or chosen, where it stands in the file then, and what stands there."""


def parameter_labels(form: SkillForm) -> list[str]:
    """Of the fields of a skill's or a predicate's parameters."""
    return [
        parameter.name if parameter.required or parameter.choices else f"{parameter.name} (may be empty)"
        for parameter in form.parameters
    ]
