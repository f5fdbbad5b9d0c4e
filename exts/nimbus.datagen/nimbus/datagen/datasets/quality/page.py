"""HTML page of quality findings: a single file with embedded style, plots and images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from nimbus.datagen.datasets.quality.checks import Examination
from nimbus.datagen.datasets.quality.finding import CHECKS
from nimbus.datagen.datasets.quality.signals import ACTION, STATE
from nimbus.datagen.datasets.quality.view import View
from nimbus.datagen.errors import Severity
from nimbus.datagen.media.pages import jpeg_uri, render_html

_TEMPLATE = Path(__file__).parent / "templates" / "qa.html.j2"
_LISTED = 200
_TALL = 120
"""Height of an image on the page [px]."""
_BINS = 24


@dataclass(frozen=True)
class CheckRow:
    """Row of the table of checks."""

    name: str
    meaning: str
    level: str
    found: str


def render_page(name: str, view: View, found: Examination, *, certificates: Markup | None = None) -> str:
    """Render the page of a dataset's quality checks.

    Args:
        name: Name of the dataset.
        view: View of the dataset.
        found: Result of the checks.
        certificates: HTML table of the dataset's certificates; None if it has none.
    """
    fails = sum(finding.severity is Severity.FAIL for finding in found.findings)
    return render_html(
        _TEMPLATE,
        title=name,
        subtitle=_subtitle(view, found),
        fails=fails,
        warns=len(found.findings) - fails,
        findings=sorted(found.findings, key=lambda finding: finding.severity is not Severity.FAIL),
        max_rows=_LISTED,
        certificates=certificates or Markup(),
        checks=list(_check_rows(found)),
        found=found,
        histogram=_histogram,
        ranges={STATE: "range of states", ACTION: "range of actions"},
        joint_names=view.joint_names,
        starts=_starts(found),
        lights={
            name: values
            for name, values in found.drawn.items()
            if name.startswith("light ") and len(np.unique(values)) > 1
        },
        jpeg_uri=jpeg_uri,
        tall=_TALL,
    )


def _subtitle(view: View, found: Examination) -> str:
    is_whole = found.pictures_looked_at >= found.picture_count
    looked = "all images" if is_whole else f"{found.pictures_looked_at:,} images"
    parts = [view.format, f"{found.episode_count:,} episodes", f"{found.frame_count:,} frames", f"{view.fps:g} Hz"]
    parts += [view.robot] if view.robot else []
    return " · ".join([*parts, f"{looked} checked"])


def _check_rows(found: Examination) -> Iterator[CheckRow]:
    counts = Counter((finding.check, finding.severity) for finding in found.findings)
    for name, meaning in CHECKS.items():
        texts = [f"{counts[name, level]} {level.value}" for level in Severity if counts[name, level]]
        level = "fail" if counts[name, Severity.FAIL] else "warn" if texts else "ok"
        yield CheckRow(name, meaning, level, ", ".join(texts) or found.unchecked.get(name, "nothing"))


def _histogram(values: Iterable[float]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the counts (N,) of values in bins, and the edges (N + 1,) of the bins."""
    numbers = np.asarray([*values], np.float64)
    return np.histogram(numbers, bins=min(_BINS, max(1, len(np.unique(numbers)))))


def _starts(found: Examination) -> list[tuple[float, float]]:
    """Return the initial positions (x, y) of all objects in all plans [m]."""
    names = [name.removesuffix(" x [m]") for name in found.drawn if name.endswith(" x [m]")]
    x, y = (np.concatenate([np.zeros(0), *(found.drawn[f"{name} {axis} [m]"] for name in names)]) for axis in "xy")
    return list(zip(x.tolist(), y.tolist(), strict=True))
