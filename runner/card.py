"""``nimbus card DATASET``: a README.md with figures and pictures; with YAML front matter where LeRobot reads it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from nimbus.datagen.datasets.certificates.record import MEANING, summary_of
from nimbus.datagen.datasets.certificates.subject import certificates_of
from nimbus.datagen.datasets.export.publication import CARD, CARD_MARK, CARD_PICTURE, is_own_card
from nimbus.datagen.datasets.quality.checks import Examination, examine
from nimbus.datagen.datasets.quality.thresholds import Thresholds
from nimbus.datagen.datasets.quality.view import View, open_view
from nimbus.datagen.errors import InputError
from nimbus.datagen.store.publish import disk, replace_text
from nimbus.runner.monitor.dashboard_view import duration
from nimbus.runner.sheet import write_sheet
from nimbus.runner.system import threads as threads  # one thread each

_PICTURES = 2_000
"""Pictures looked at for the verdict of QA: a card is no replacement for it."""


def command(args: argparse.Namespace) -> int:
    """Write the card and its picture."""
    view = open_view(args.folder)
    path = args.out or args.folder / CARD
    if path.exists() and not is_own_card(path):
        raise InputError("a card that somebody wrote", where=str(path), instead="give --out FILE")
    picture = path.with_name(CARD_PICTURE)
    if picture.exists() and not is_own_card(path):
        raise InputError("a picture that somebody made", where=str(picture), instead="give --out in another folder")
    found = examine(view, Thresholds(pictures=_PICTURES))
    with disk(path):
        has_picture = write_sheet(view, picture)
    replace_text(path, card(args.folder, view, found, license=args.license, has_picture=has_picture))
    sys.stdout.write(f"card: {path}\n")
    return 0


def card(folder: Path, view: View, found: Examination, *, license: str, has_picture: bool) -> str:
    """The text of a dataset's card.

    Args:
        folder: Of the dataset.
        view: The dataset.
        found: What QA says of it.
        license: Of the dataset, as the Hub names it.
        has_picture: Whether a contact sheet lies beside it.
    """
    is_lerobot = view.format.startswith("lerobot")
    parts = [_front(view, found, license) if is_lerobot else "", CARD_MARK, "", f"# {folder.resolve().name}", ""]
    parts += [f"![episodes from beginning to end]({CARD_PICTURE})", ""] if has_picture else []
    parts += ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in _figures(view, found)), ""]
    if found.tasks:
        rows = [f"| {_plain(text)} | {count} |" for text, count in [*found.tasks.items()][:20]]
        parts += ["## Instructions", "", "| instruction | episodes |", "|---|---|", *rows, ""]
    parts += ["## Loading", "", *_loading(folder, is_lerobot=is_lerobot), ""]
    parts += [*_proof(folder, found), ""]
    if is_lerobot:
        info = json.loads((folder / "meta" / "info.json").read_text(encoding="utf-8"))
        parts += ["## meta/info.json", "", "```json", json.dumps(info, indent=2, ensure_ascii=False), "```", ""]
    return "\n".join(parts)


def _front(view: View, found: Examination, license: str) -> str:
    """What the Hub reads; ``n<1K`` and the like are its words."""
    sizes = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
    size = next((name for most, name in sizes if found.frame_count < most), "10M<n<100M")
    lines = ["---", f"license: {json.dumps(license)}", "task_categories:", "- robotics", "tags:", "- LeRobot"]
    lines += [f"- {json.dumps(view.robot)}"] if view.robot else []
    lines += ["size_categories:", f"- {size}", "configs:", "- config_name: default", "  data_files: data/*/*.parquet"]
    return "\n".join([*lines, "---", ""])


def _figures(view: View, found: Examination) -> Iterator[tuple[str, str]]:
    yield "format", view.format
    if view.robot:
        yield "robot", _plain(view.robot)
    yield "episodes", f"{found.episode_count:,}"
    yield "frames", f"{found.frame_count:,} at {view.fps:g} Hz, {duration(found.frame_count / view.fps)}"
    if found.looks or found.picture_count:
        yield "pictures", f"{found.picture_count:,}"
    for name, (low, _, _) in found.ranges.items():
        yield f"`{name}`", f"{len(low)} numbers"
    if found.tasks:
        yield "instructions", f"{len(found.tasks)}"


def _loading(folder: Path, *, is_lerobot: bool) -> list[str]:
    name = folder.resolve().name
    if is_lerobot:
        return [
            "```python",
            "from lerobot.datasets.lerobot_dataset import LeRobotDataset",
            "",
            f'dataset = LeRobotDataset("{name}", root="{name}")',
            "```",
        ]
    return [
        "```python",
        "from pathlib import Path",
        "",
        "from nimbus.datagen.store.episode_file.read import EpisodeFile",
        "",
        f'for path in sorted(Path("{name}/episodes").glob("*.hdf5")):',
        "    with EpisodeFile(path) as episode:",
        "        trajectory = episode.trajectory()",
        "```",
        "",
        f"`nimbus export {name} --to lerobot --out {name}_lerobot` writes it for LeRobot.",
    ]


def _proof(folder: Path, found: Examination) -> Iterator[str]:
    yield "## Quality"
    yield ""
    seen = f"{found.pictures_looked_at:,} of {found.picture_count:,} pictures looked at"
    faults = sorted({finding.check for finding in found.findings})
    verdict = "found nothing" if not faults else f"found: {', '.join(faults)}"
    yield f"`nimbus qa` {verdict} ({seen})."
    certificates = certificates_of(folder)
    if certificates:
        yield ""
        yield "| certificate | | |"
        yield "|---|---|---|"
        for one in certificates.certificates:
            holds = {True: "holds", False: "**broken**", None: "not checked"}[one.holds]
            yield f"| {one.name} | {holds} | {_plain(MEANING.get(one.name, ''))}: {_plain(summary_of(one))} |"


def _plain(text: str) -> str:
    """Text that cannot break out of a table's cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
