"""Card of a dataset: a README.md with figures, its instructions, and how to load it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from markupsafe import Markup

from nimbus.datagen.datasets.certificates.record import MEANING, summary_of
from nimbus.datagen.datasets.certificates.subject import certificates_of
from nimbus.datagen.datasets.export.publication import CARD_MARK, CARD_PICTURE
from nimbus.datagen.datasets.quality.checks import Examination
from nimbus.datagen.datasets.quality.view import View
from nimbus.datagen.episode.credits import AssetCredit
from nimbus.datagen.errors import quote_words
from nimbus.datagen.files.bounded import read_plain
from nimbus.datagen.media.pages import render_markdown
from nimbus.datagen.store.info import INFO_NAME, read_info
from nimbus.runner.monitor.dashboard_view import duration

_TEMPLATE = Path(__file__).parent / "templates" / "card.md.j2"
_TASKS = 20
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
"""Numbers of frames, each with the Hub's name for datasets that have fewer."""


def render_card(folder: Path, view: View, found: Examination, *, license: str, has_picture: bool) -> str:
    """Render the card.

    Args:
        folder: Folder of the dataset.
        view: The dataset.
        found: Result of its examination.
        license: License of the dataset, as the Hub names it.
        has_picture: True if the folder has a contact sheet.
    """
    is_lerobot = view.format.startswith("lerobot")
    certificates = certificates_of(folder)
    return render_markdown(
        _TEMPLATE,
        name=folder.resolve().name,
        mark=Markup(CARD_MARK),
        license=license,
        robot=view.robot,
        size=Markup(next((name for most, name in _SIZES if found.frame_count < most), "10M<n<100M")),
        is_lerobot=is_lerobot,
        info=Markup(_info(folder)) if is_lerobot else Markup(),
        picture=CARD_PICTURE if has_picture else "",
        figures=list(_figures(view, found)),
        tasks=dict(islice(found.tasks.items(), _TASKS)),
        found=found,
        faults=sorted({finding.check for finding in found.findings}),
        credits=_credits(folder),
        certificates=certificates.certificates if certificates else (),
        meaning=MEANING,
        summary_of=summary_of,
        quote_words=quote_words,
    )


def _credits(folder: Path) -> list[tuple[str, AssetCredit]]:
    """Sources and licenses of imported objects, those with restrictions first; empty for datasets of other formats."""
    if not (folder / INFO_NAME).is_file():
        return []
    credits = read_info(folder).credits
    return sorted(credits.items(), key=lambda item: (not item[1].is_restricted, item[0]))


def _info(folder: Path) -> str:
    """Return ``meta/info.json`` as text that can neither end its fence nor act as HTML."""
    info = read_plain(folder / "meta" / "info.json")
    return json.dumps(info, indent=2, ensure_ascii=False).replace("<", "\\u003c")


def _figures(view: View, found: Examination) -> Iterator[tuple[str, str]]:
    yield "format", view.format
    if view.robot:
        yield "robot", view.robot
    yield "episodes", f"{found.episode_count:,}"
    yield "frames", f"{found.frame_count:,} at {view.fps:g} Hz, {duration(found.frame_count / view.fps)}"
    if found.looks or found.picture_count:
        yield "pictures", f"{found.picture_count:,}"
    for name, (low, _, _) in found.ranges.items():
        yield f"`{name}`", f"{len(low)} numbers"
    if found.tasks:
        yield "instructions", f"{len(found.tasks)}"
