"""Task file of a goal graph: regions, objects, steps, success conditions and instructions, formatted for readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nimbus.datagen.files.yaml_write import write_flow
from nimbus.datagen.propose.catalogue import KindEntry
from nimbus.datagen.propose.framing import frame_work, seen_width
from nimbus.datagen.propose.goal_graph import Goal, GoalGraph, Thing
from nimbus.datagen.propose.packing import TURN, PackedPlaces
from nimbus.datagen.propose.planner import TaskPlan, start_region
from nimbus.datagen.propose.traits import movable_part
from nimbus.datagen.tasks.task_file import Region, presets

_PHRASES = {
    "in": "put {one} into {other}",
    "on": "put {one} on {other}",
    "beside": "put {one} beside {other}",
    "left_of": "put {one} to the left of {other}",
    "right_of": "put {one} to the right of {other}",
    "in_front_of": "put {one} in front of {other}",
    "behind": "put {one} behind {other}",
    "poured_into": "pour what is in {one} into {other}",
    "inserted": "insert {one} into {other}",
    "hung": "hang {one} on {other}",
    "at": "move {one} to the {place} of the table",
    "open": "open {one}",
    "closed": "close {one}",
    "turned": "turn {one} on",
    "pressed": "press the button of {one}",
    "inverted": "turn {one} upside down",
    "held": "take {one} and hold it",
}
"""Plain wording of each relation."""


def write_task(
    graph: GoalGraph,
    plan: TaskPlan,
    places: PackedPlaces,
    catalogue: Mapping[str, KindEntry],
    *,
    goals: Iterable[Goal],
    top: float,
    instructions: Iterable[str] = (),
    libraries: Mapping[str, str] | None = None,
) -> str:
    """Write the text of a task file.

    Args:
        graph: Goal graph of the task.
        plan: Steps and success conditions.
        places: Regions and headings of things, and regions of goals.
        catalogue: Catalogue entries of its kinds.
        goals: Goals in the order of the steps, for the plain wording.
        top: Height of the table [m].
        instructions: Instructions; by default the plain wording.
        libraries: Text for each library in the file, by its name; by default its name.
    """
    plain, named = plain_wording(goals), libraries or {}
    kinds = [catalogue[one.kind] for one in graph.things]
    things = {one.name: one for one in _ordered(graph.things)}
    preset = "shoulder" if any(kind.parts for kind in kinds) else "front"
    handled = {goal.object for goal in graph.goals}
    widths = [
        seen_width(kind, preset, yaw=places.yaws.get(one.name), state=one.state)
        for one, kind in zip(graph.things, kinds, strict=True)
        if one.name in handled and not kind.is_anchored
    ]
    spans = {start_region(one.name): catalogue[one.kind].span for one in graph.things}
    camera = frame_work(preset, places.regions, spans, top=top, widths=widths)
    lines = [
        f"# {plain.replace('{', '').replace('}', '')}",
        "family: proposed",
        f"robot: {write_flow(graph.robot)}",
        f"scene: {write_flow(graph.scene)}",
        "regions:",
        *(f"  {name}: {write_flow(_region(region))}" for name, region in places.regions.items()),
        "objects:",
        *(
            f"  {name}: {_object(one, catalogue[one.kind], places.yaws.get(name), named)}"
            for name, one in things.items()
        ),
        "steps:",
        *_list(plan.steps),
        "success:",
        *_list(plan.success),
        "cameras:",
        f"  {preset}: {write_flow(camera)}",
        "  wrist: wrist",
        f"randomize: {write_flow(_randomization())}",
        "instructions:",
        *(f"  - {write_flow(text)}" for text in (*instructions,) or (plain,)),
    ]
    return "\n".join(lines) + "\n"


def _randomization() -> dict[str, Any]:
    """Return the preset ``medium`` without phrases around instructions, because these are complete sentences."""
    return {name: ranges for name, ranges in presets("randomizations")["medium"].items() if name != "language"}


def plain_wording(goals: Iterable[Goal]) -> str:
    """Return one sentence that names all goals, with things in braces."""
    parts = [
        _PHRASES[goal.relation].format(one=f"{{{goal.object}}}", other=f"{{{goal.target}}}", place=goal.target)
        for goal in goals
    ]
    text = ", then ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _ordered(things: Iterable[Thing]) -> list[Thing]:
    """Sort things so that contents follow their containers."""
    return sorted(things, key=lambda one: bool(one.inside))


def _region(region: Region) -> dict[str, Any]:
    return {"on": region.on, "center": region.center, "size": region.size}


def _object(one: Thing, kind: KindEntry, yaw: float | None, libraries: Mapping[str, str]) -> str:
    entry: dict[str, Any] = {"library": libraries.get(kind.library, kind.library), "kinds": [kind.kind]}
    entry |= {"count": one.count} if one.count > 1 else {}
    entry |= {"region": one.inside or start_region(one.name)}
    if kind.parts:
        entry["yaw"] = ["-5 deg", "5 deg"]
    elif one.state in ("upright", "lying"):
        entry["lying"] = "100 %" if one.state == "lying" else "0 %"
    if yaw is not None:
        entry["yaw"] = [round(yaw - TURN, 2), round(yaw + TURN, 2)]
    if one.state == "open" and (part := movable_part(kind)):
        entry["joints"] = {part.name: ["60 %", "90 %"]}
    return write_flow(entry)


def _list(entries: Iterable[Any], indent: str = "  ") -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield f"{indent}- {entry}"
            continue
        ((name, value),) = entry.items()
        if isinstance(value, list):
            yield f"{indent}- {name}:"
            yield from _list(value, indent + "    ")
        else:
            yield f"{indent}- {name}: {write_flow(value)}"
