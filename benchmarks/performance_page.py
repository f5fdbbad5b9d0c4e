"""The page ``docs/performance.md``, made from the figures of ``performance.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Figures = dict[str, Any]
_HEAD = """# Performance

Measured on {date} with {machine}, by `python benchmarks/performance.py --write`. The baseline is the commit in
`benchmarks/baseline`; both checkouts take turns on the same machine. CPU time counts all threads. Lower is better,
except for what is counted an hour.

"""


def render(figures: Figures) -> str:
    """Write the page; parts that were not measured say why."""
    parts = (_episodes, _views, _opengl, _robosuite, _growth)
    return _HEAD.format(**figures) + "\n".join(line for part in parts for line in part(figures)) + "\n"


def _table(*rows: tuple[object, ...]) -> Iterator[str]:
    head, *body = rows
    yield from (f"| {' | '.join(map(str, head))} |", "|" + "---|" * len(head))
    yield from (f"| {' | '.join(map(str, row))} |" for row in body)
    yield ""


def _found(figures: Figures, part: str) -> Figures:
    """Figures of a part; without any, a reason under ``skipped``."""
    return figures.get(part, {"skipped": "it was not run"})


def _episodes(figures: Figures) -> Iterator[str]:
    found = _found(figures, "episodes")
    yield "## Episodes\n"
    if "skipped" in found:
        yield f"Not measured: {found['skipped']}.\n"
        return
    rows: list[tuple[object, ...]] = [("", "baseline", "now", "ratio")]
    for task in ("sort_trash", "pick_and_place"):
        old, new = found[f"{task} baseline"], found[f"{task} now"]
        cpu, hour = new["cpu_s"] / old["cpu_s"], new["per_hour"] / old["per_hour"]
        rows.append(
            (f"CPU of one more stored `{task}` [s]", f"{old['cpu_s']:.1f}", f"{new['cpu_s']:.1f}", f"{cpu:.2f}")
        )
        counts = f"{old['per_hour']:,.0f}", f"{new['per_hour']:,.0f}"
        rows.append((f"stored `{task}` an hour", *counts, f"{hour:.2f}"))
    yield from _table(*rows)


def _views(figures: Figures) -> Iterator[str]:
    found = _found(figures, "views")
    yield "## A view\n"
    if "skipped" in found:
        yield f"Not measured: {found['skipped']}.\n"
        return
    yield "CPU ms a view of 320 x 240, all modalities, 64 consecutive rows of an episode of `sort_trash`.\n"
    rows: list[tuple[object, ...]] = [("", "baseline", "now", "ratio")]
    for case in dict.fromkeys(name.rpartition(" ")[0] for name in found):
        old, new = found[f"{case} baseline"], found[f"{case} now"]
        label = case.replace(",none", ", no shadows").replace("both", "both cameras in a call")
        rows.append((label, f"{old:.1f}", f"{new:.1f}", f"{new / old:.2f}"))
    yield from _table(*rows)


def _opengl(figures: Figures) -> Iterator[str]:
    found = _found(figures, "opengl")
    yield "## Against MuJoCo's OpenGL renderer\n"
    if "skipped" in found:
        yield f"Not measured: {found['skipped']}.\n"
        return
    yield "Software OpenGL (EGL); it makes rgb, depth and segmentation in three passes. Both cameras, CPU ms a view.\n"
    rows: list[tuple[object, ...]] = [
        ("", "OpenGL", "rgb", "rgb, depth, masks", "everything", "OpenGL over everything")
    ]
    for light, row in found.items():
        times = (f"{row[name]:.1f}" for name in ("opengl", "rgb", "nimbus", "everything"))
        rows.append((light.removeprefix("both ").replace("_", " "), *times, f"{row['ratio_everything']:.1f}"))
    yield from _table(*rows)


def _robosuite(figures: Figures) -> Iterator[str]:
    found = _found(figures, "robosuite")
    yield "## Against robosuite\n"
    if "skipped" in found:
        yield f"Not measured: {found['skipped']}.\n"
        return
    yield "rgb of 320 x 240 with shadows, CPU ms a view; robosuite's PickPlace with a Panda in a process of its own.\n"
    rows: list[tuple[object, ...]] = [("camera", "robosuite", "Nimbus", "ratio")]
    for camera in ("front", "wrist"):
        theirs, ours = found[f"robosuite {camera}"], found[f"nimbus {camera}"]
        rows.append((camera, f"{theirs:.1f}", f"{ours:.1f}", f"{theirs / ours:.1f}"))
    yield from _table(*rows)


def _growth(figures: Figures) -> Iterator[str]:
    found = _found(figures, "growth")
    yield "## Growth\n"
    if "skipped" in found:
        yield f"Not measured: {found['skipped']}.\n"
        return
    yield "CPU ms a view, best of the turns, one camera in a call.\n"
    for title, key in (("objects of 1,300 faces more", "objects"), ("image", "pixels")):
        lines = ((name, f"{row['front']:.1f}", f"{row['wrist']:.1f}") for name, row in found[key].items())
        yield from _table((title, "front", "wrist"), *lines)
    yield from _table(("cameras in a call", "ms a view"), *((n, f"{ms:.1f}") for n, ms in found["cameras"].items()))
