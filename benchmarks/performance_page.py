"""Page ``docs/performance.md``, made from the figures of ``performance.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
PIPELINES_TITLE = "## Pipelines\n"
"""Title of the last section of the page; ``paper.py`` writes that section."""
Figures = dict[str, Any]
_HEAD = """# Performance

This page is for users who compare the cost of Nimbus with an earlier version or with other renderers. CPU time counts
all threads. Lower is better, except for rates per hour. The baseline is the commit in `benchmarks/baseline`; both
checkouts take turns on the same machine. `python benchmarks/performance.py --write` measures everything and writes this
page, except for its last section.

Measured on {date} with {machine}.

"""


def render(figures: Figures) -> str:
    """Return the page up to its last section; parts without figures state the reason."""
    lines = (line for part, (title, write) in _SECTIONS.items() for line in _section(title, write, figures.get(part)))
    return _HEAD.format(**figures) + "\n".join(lines) + "\n"


def _section(title: str, write: Callable[[Figures], Iterator[str]], found: Figures | None) -> Iterator[str]:
    """Return the title and the text of a section; without figures, the text is the reason under ``skipped``."""
    found = found or {"skipped": "it was not run"}
    yield f"## {title}\n"
    if "skipped" in found:
        yield f"Not measured: {found['skipped']}.\n"
    else:
        yield from write(found)


def _table(*rows: tuple[object, ...]) -> Iterator[str]:
    head, *body = rows
    yield from (f"| {' | '.join(map(str, head))} |", "|" + "---|" * len(head))
    yield from (f"| {' | '.join(map(str, row))} |" for row in body)
    yield ""


def _episodes(found: Figures) -> Iterator[str]:
    yield (
        f"CPU seconds, {found['turns']} turn(s), at a load of {found['load']} on this machine (other programs ran). "
        "Rates per hour assume that all cores work.\n"
    )
    rows: list[tuple[object, ...]] = [("", "baseline", "now", "ratio")]
    for task in dict.fromkeys(name.partition(" ")[0] for name in found if " " in name):
        old, new = found[f"{task} baseline"], found[f"{task} now"]
        cpu, hour = new["cpu_s"] / old["cpu_s"], new["per_hour"] / old["per_hour"]
        rows.append(
            (f"CPU per stored episode of `{task}` [s]", f"{old['cpu_s']:.1f}", f"{new['cpu_s']:.1f}", f"{cpu:.2f}")
        )
        if old.get("steps") and new.get("steps"):
            steps, times = (old["steps"], new["steps"]), [one["cpu_s"] / one["steps"] * 1e3 for one in (old, new)]
            rows.append((f"recorded steps of such an episode of `{task}`", *steps, f"{steps[1] / steps[0]:.2f}"))
            cells = (f"{time:.1f}" for time in times)
            rows.append((f"CPU per recorded step of `{task}` [ms]", *cells, f"{times[1] / times[0]:.2f}"))
        counts = f"{old['per_hour']:,.0f}", f"{new['per_hour']:,.0f}"
        rows.append((f"stored episodes of `{task}` per hour", *counts, f"{hour:.2f}"))
    yield from _table(*rows)


def _views(found: Figures) -> Iterator[str]:
    yield "CPU ms per view of 320 x 240, all modalities, 64 consecutive rows of an episode of `sort_trash`.\n"
    rows: list[tuple[object, ...]] = [("", "baseline", "now", "ratio")]
    for case in dict.fromkeys(name.rpartition(" ")[0] for name in found):
        old, new = found[f"{case} baseline"], found[f"{case} now"]
        label = case.replace(",none", ", no shadows").replace("both", "both cameras in one call")
        rows.append((label, f"{old:.1f}", f"{new:.1f}", f"{new / old:.2f}"))
    yield from _table(*rows)


def _opengl(found: Figures) -> Iterator[str]:
    yield (
        "Software OpenGL (EGL), which renders rgb, depth and segmentation in three passes. "
        "Both cameras, CPU ms per view.\n"
    )
    rows: list[tuple[object, ...]] = [
        ("", "OpenGL", "rgb", "rgb, depth, masks", "all modalities", "OpenGL ÷ all modalities")
    ]
    for light, row in found.items():
        times = (f"{row[name]:.1f}" for name in ("opengl", "rgb", "nimbus", "everything"))
        rows.append((light.removeprefix("both ").replace("_", " "), *times, f"{row['ratio_everything']:.1f}"))
    yield from _table(*rows)


def _robosuite(found: Figures) -> Iterator[str]:
    yield "rgb of 320 x 240 with shadows, CPU ms per view; robosuite's PickPlace with a Panda in a separate process.\n"
    rows: list[tuple[object, ...]] = [("camera", "robosuite", "Nimbus", "ratio")]
    for camera in ("front", "wrist"):
        theirs, ours = found[f"robosuite {camera}"], found[f"nimbus {camera}"]
        rows.append((camera, f"{theirs:.1f}", f"{ours:.1f}", f"{theirs / ours:.1f}"))
    yield from _table(*rows)


def _growth(found: Figures) -> Iterator[str]:
    yield "CPU ms per view, best of the turns, one camera in one call.\n"
    for title, key in (("further objects of 1,000 to 1,300 faces", "objects"), ("image", "pixels")):
        lines = ((name, f"{row['front']:.1f}", f"{row['wrist']:.1f}") for name, row in found[key].items())
        yield from _table((title, "front", "wrist"), *lines)
    yield from _table(("cameras in one call", "ms per view"), *((n, f"{ms:.1f}") for n, ms in found["cameras"].items()))


_SECTIONS: dict[str, tuple[str, Callable[[Figures], Iterator[str]]]] = {
    "episodes": ("Episodes", _episodes),
    "views": ("Rendering", _views),
    "opengl": ("Compared with MuJoCo's OpenGL renderer", _opengl),
    "robosuite": ("Compared with robosuite", _robosuite),
    "growth": ("Scaling", _growth),
}
"""Title and text of each part of the figures, in the order of the page."""
